/* Registrations that wait for a commit which is held back. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "db/db.h"
#include "harness.h"
#include "http/http_internal.h"
#include "http/loop.h"
#include "store/store_internal.h"

#define WAITING (KEPT_MAX + 50)

static struct harness harness;
static struct db_connection *writer;
static int descriptors[WAITING];

static const struct loop *the_loop(void)
{
	return harness.server->loops;
}

static void await_under_way(int64_t wanted)
{
	while (atomic_load(&the_loop()->under_way) != wanted)
		usleep(1000);
}

/* Waits until the server has handled all input. */
static void await_turns(void)
{
	uint64_t turns = atomic_load(&the_loop()->turns);
	while (atomic_load(&the_loop()->turns) < turns + 3)
		usleep(1000);
}

static void begin(int descriptor, int number)
{
	char body[64], text[512];
	int size = snprintf(body, sizeof body, "{\"client_ref\":\"%d\",\"payload\":{}}", number);
	snprintf(text, sizeof text,
	         "POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
	         "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
	         harness.key[MODALITY_CONTENT][MODE_LIVE], size, body);
	harness_send(descriptor, text, strlen(text));
}

static void expect_created(int descriptor)
{
	struct reply reply;
	harness_read(descriptor, false, &reply);
	reply_expect(&reply, 201, NULL);
}

/* No time-out may end a test, however slow the machine is. */
static void be_patient(struct settings *settings)
{
	settings->http_connections = settings->http_connections_per_address = WAITING;
	settings->http_idle_timeout = settings->http_transfer_timeout = settings->http_deadline =
		3600 * US_PER_SECOND;
	settings->rate_live = 10 * WAITING;
}

static int start(void **state)
{
	memset(descriptors, -1, sizeof descriptors);
	file_allow_many();
	harness_start(&harness, be_patient);
	return 0;
}

/* Also after a failed test, so that the next one starts clean. */
static int stop(void **state)
{
	for (int i = 0; i < WAITING; i++)
		if (descriptors[i] >= 0)
			close(descriptors[i]);
	if (writer)
		db_give(writer);
	writer = NULL;
	harness_stop(&harness);
	return 0;
}

static void hold_commits(void)
{
	writer = db_take_writer(harness.service.store->db);
}

static void let_commit(void)
{
	db_give(writer);
	writer = NULL;
}

static void probe_connections(int count)
{
	for (int i = 0; i < count; i++)
		descriptors[i] = harness_connect(&harness);
}

static void hang_up(int number)
{
	struct linger at_once = {.l_onoff = 1};
	setsockopt(descriptors[number], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(descriptors[number]);
	descriptors[number] = -1;
}

/* Most connections are kept, the rest suspended; after a while all are. */
TEST_CASE(test_many)
{
	hold_commits();
	probe_connections(WAITING);
	for (int i = 0; i < WAITING; i++)
		begin(descriptors[i], i);
	await_under_way(WAITING);
	int64_t until_us = clock_monotonic_us() + US_PER_SECOND / 4;
	while (clock_monotonic_us() < until_us)
		await_turns();
	let_commit();
	for (int i = 0; i < WAITING; i++)
		expect_created(descriptors[i]);
	await_under_way(0);
}

/* A client that disconnects before its answer leaves its registration to the sequencer. Only a
 * connection that was idle before is polled while it waits. */
TEST_CASE(test_reset)
{
	struct reply reply;
	probe_connections(8);
	for (int i = 0; i < 8; i++) {
		begin(descriptors[i], 100 + i);
		expect_created(descriptors[i]);
	}
	await_under_way(0);
	await_turns();
	hold_commits();
	for (int i = 0; i < 8; i++)
		begin(descriptors[i], i);
	await_under_way(8);
	await_turns();
	for (int i = 0; i < 8; i += 2)
		hang_up(i);
	await_turns();
	let_commit();
	for (int i = 1; i < 8; i += 2)
		expect_created(descriptors[i]);
	await_under_way(0);
	harness_post(&harness, &reply, "/v1/events", harness.key[MODALITY_CONTENT][MODE_LIVE],
	             "{\"client_ref\":\"0\",\"payload\":{}}");
	assert_string_equal(reply_header(&reply, "Idempotent-Replayed"), "true");
	reply_expect(&reply, 200, NULL);
}

/* It does not count as an answer that was lost for lack of memory, either. */
TEST_CASE(test_gone)
{
	hold_commits();
	probe_connections(8);
	for (int i = 0; i < 8; i++)
		begin(descriptors[i], i);
	await_under_way(8);
	for (int i = 0; i < 8; i++)
		hang_up(i);
	let_commit();
	await_under_way(0);
	assert_int_equal(harness.server->metrics.answers_lost, 0);
	assert_int_equal(harness.server->metrics.answers_rescued, 0);
}

TEST_MAIN_EACH(start, stop)
