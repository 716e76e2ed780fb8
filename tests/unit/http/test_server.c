/* Starting, stopping, the operator's listener, and many clients at once. */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "admin/readiness.h"
#include "http/http_internal.h"

static struct harness harness;

TEST_CASE(test_settings)
{
	static const char *const bad[] = {
		"",       "8080",  "localhost:8080", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:80a",
		"::1:80", "[::1]", "[127.0.0.1]:80"};
	assert_int_equal(http_listen_port("127.0.0.1:8080"), 8080);
	assert_int_equal(http_listen_port("[::1]:0"), 0);
	harness_start(&harness, NULL);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct settings settings = harness.settings;
		struct service service = harness.service;
		struct http_server *server = NULL;
		struct error error = {0};
		settings.service_listen = bad[i];
		assert_int_equal(http_listen_port(bad[i]), -1);
		service.settings = &settings;
		if (http_start(&service, NULL, &server, &error) != ERR_VALIDATION)
			fail_msg("%s", bad[i]);
		assert_null(server);
	}
	/* An address in use. */
	struct settings settings = harness.settings;
	struct service service = harness.service;
	struct http_server *server = NULL;
	struct error error = {0};
	char listen[32];
	snprintf(listen, sizeof listen, "127.0.0.1:%u", http_port(harness.server));
	settings.service_listen = listen;
	service.settings = &settings;
	assert_int_equal(http_start(&service, NULL, &server, &error), ERR_IO);
	assert_non_null(strstr(error.cause, listen));
	/* Without an operator's listener, and on IPv6. */
	settings.service_listen = "[::1]:0";
	settings.service_admin_listen = "";
	if (http_start(&service, NULL, &server, &error) == 0) {
		assert_true(http_port(server) > 0);
		assert_int_equal(http_monitor_port(server), 0);
		http_stop(server);
	}
	http_stop(NULL);
	harness_stop(&harness);
}

/* Each metric has its two comment lines and a value, in the order of the table, and nothing
 * else. */
static void assert_every_metric(const char *page)
{
	static const char *const heads[] = {
#define WHOLE(name, type, help) "# HELP " name " " help "\n# TYPE " name " " type "\n" name,
#define HEAD(name, type, help) WHOLE("constancia_" name, type, help)
#define PROCESS(member, name, type, unit, help) WHOLE(name, type, help)
#define SERIES(member, name, type, help)                                                           \
	"# HELP constancia_" name " " help "\n# TYPE constancia_" name " " type "\n",
#define HTTP_COUNTER(member, name, type, help) HEAD(name, type, help)
#define COUNTER(member, name, type, unit, help) HEAD(name, type, help)
#define GAUGE(member, name, type, unit, help) HEAD(name, type, help)
#include "service/metrics.def"
	};
	size_t count = 0;
	for (const char *at = page; (at = strstr(at, "# HELP")); at++)
		count++;
	assert_int_equal(count, sizeof heads / sizeof *heads);
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		const char *found = strstr(page, heads[i]);
		if (!found)
			fail_msg("not there, or not in its place: %s", heads[i]);
		page = found + strlen(heads[i]);
	}
}

/* A request is counted after its answer, so a client may read the metrics before that. */
static void ask_for_metrics(struct reply *reply, const char *awaited)
{
	for (int tries = 0; tries < 1000; tries++) {
		harness_ask_operators(&harness, reply, "/metrics");
		if (strstr(reply->body, awaited))
			return;
		usleep(10000);
	}
}

TEST_CASE(test_admin)
{
	struct reply reply;
	harness_start(&harness, NULL);
	harness_post(&harness, &reply, "/v1/events", harness.key[MODALITY_CONTENT][MODE_LIVE],
	             "{\"client_ref\":\"a\",\"payload\":{}}");
	reply_expect(&reply, 201, NULL);
	harness_ask_operators(&harness, &reply, "/livez");
	reply_expect(&reply, 200, NULL);
	harness_ask_operators(&harness, &reply, "/readyz");
	assert_non_null(strstr(reply.body, "\"ready\":true"));
	reply_expect(&reply, 200, NULL);
	watch_check_store(&harness.service);
	ask_for_metrics(&reply, "route=\"/v1/events\",method=\"POST\"");
	assert_non_null(strstr(
		reply.body,
		"constancia_http_requests_total{route=\"/v1/events\",method=\"POST\",status=\"201\"} 1\n"));
	assert_non_null(
		strstr(reply.body,
	           "constancia_http_request_seconds_bucket{route=\"/v1/events\",le=\"+Inf\"} 1\n"));
	assert_non_null(strstr(reply.body, "\nconstancia_events_registered_total 1\n"));
	assert_every_metric(reply.body);
	reply_expect(&reply, 200, NULL);
	harness_ask_operators(&harness, &reply, "/v1/events");
	reply_expect(&reply, 404, NULL);
	http_drain(harness.server, clock_monotonic_us() + US_PER_SECOND);
	harness_ask_operators(&harness, &reply, "/readyz");
	assert_non_null(strstr(reply.body, "stopping"));
	reply_expect(&reply, 503, NULL);
	harness_stop(&harness);
}

static void watch_everything(struct settings *settings)
{
	settings->store_disk_warn = 101; /* no disk has that much free space */
	settings->store_backup_warn = US_PER_DAY;
}

static void expect_ready(const char *wanted, int status)
{
	struct reply reply;
	harness_ask_operators(&harness, &reply, "/readyz");
	if (!strstr(reply.body, wanted))
		fail_msg("%s: %s", wanted, reply.body);
	reply_expect(&reply, status, NULL);
}

/* The state of disks and backups and a lack of space, whatever the machine has. */
TEST_CASE(test_watched)
{
	struct service *service = &harness.service;
	harness_start(&harness, watch_everything);
	expect_ready("\"last_backup_at\":null", 200);
	watch_check_store(service);
	watch_check_disks(service);
	expect_ready("the disk of the data directory is nearly full", 200);
	expect_ready("the disk of the store directory is nearly full", 200);
	expect_ready("the disk of the content directory is nearly full", 200);
	expect_ready("no backup of the store has been recorded", 200);
	assert_int_equal(store_note_backup(service->store, 1700000000000000, NULL), 0);
	watch_check_store(service);
	expect_ready("the last backup of the store was made at 2023-11-14T22:13:20", 200);
	assert_int_equal(store_note_backup(service->store, clock_now_us(), NULL), 0);
	watch_check_store(service);
	struct stores_state stores = {0};
	struct readiness readiness;
	readiness_read(service, &stores, &readiness);
	assert_int_equal(readiness_count(&readiness, CONCERN_BACKUP), 0);
	assert_true(readiness_count(&readiness, CONCERN_DISK) >= 3);
	/* A batch failed for lack of space: not ready until one succeeds, or a test write does. */
	atomic_store(&service->lacks_space, true);
	expect_ready("the store's disk is full", 503);
	struct reply reply;
	harness_post(&harness, &reply, "/v1/events", harness.key[MODALITY_CONTENT][MODE_LIVE],
	             "{\"client_ref\":\"a\",\"payload\":{}}");
	reply_expect(&reply, 201, NULL);
	expect_ready("\"ready\":true", 200);
	atomic_store(&service->lacks_space, true);
	watch_check_store(service);
	expect_ready("\"ready\":true", 200);
	harness_stop(&harness);
}

/* A connection from before the drain is answered and then closed. */
TEST_CASE(test_drain)
{
	struct reply reply;
	static const char request[] = "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n";
	harness_start(&harness, NULL);
	int descriptor = harness_connect(&harness);
	harness_send(descriptor, request, strlen(request));
	harness_read(descriptor, false, &reply);
	assert_false(reply.closed);
	reply_free(&reply);
	http_drain(harness.server, clock_monotonic_us() + US_PER_SECOND);
	harness_send(descriptor, request, strlen(request));
	harness_read(descriptor, false, &reply);
	assert_true(reply.closed);
	reply_expect(&reply, 404, "not_found");
	close(descriptor);
	harness_stop(&harness);
}

#define CLIENTS 16
#define ROUNDS 40

struct worker {
	pthread_t thread;
	int number;
	int good;
};

static void one_round(struct worker *worker, int descriptor, int round)
{
	char body[256], request[512];
	struct reply reply;
	int size = snprintf(body, sizeof body, "{\"client_ref\":\"%d-%d\",\"payload\":{\"n\":%d}}",
	                    worker->number, round / 2, round / 2);
	snprintf(request, sizeof request,
	         "POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
	         "Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
	         harness.key[MODALITY_CONTENT][MODE_LIVE], size, body);
	harness_send(descriptor, request, strlen(request));
	harness_read(descriptor, false, &reply);
	worker->good += reply.status == (round % 2 ? 200 : 201);
	reply_free(&reply);
	snprintf(request, sizeof request,
	         "GET /v1/events?limit=5 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n",
	         harness.key[MODALITY_CONTENT][MODE_LIVE]);
	harness_send(descriptor, request, strlen(request));
	harness_read(descriptor, false, &reply);
	worker->good += reply.status == 200;
	reply_free(&reply);
}

static void *work(void *context)
{
	struct worker *worker = context;
	int descriptor = harness_connect(&harness);
	for (int round = 0; round < ROUNDS; round++)
		one_round(worker, descriptor, round);
	close(descriptor);
	return NULL;
}

static void fast(struct settings *settings)
{
	settings->rate_live = 1000000;
	settings->http_loops = 4;
}

TEST_CASE(test_many)
{
	struct worker workers[CLIENTS] = {0};
	struct reply reply;
	harness_start(&harness, fast);
	for (int i = 0; i < CLIENTS; i++) {
		workers[i].number = i;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].good, 2 * ROUNDS);
	}
	char part[64];
	snprintf(part, sizeof part, "\"sequence\":%d,", CLIENTS * ROUNDS / 2);
	char path[64];
	snprintf(path, sizeof path, "/v1/events?seq_from=%d", CLIENTS * ROUNDS / 2);
	harness_ask(&harness, &reply, "GET", path, harness.key[MODALITY_CONTENT][MODE_LIVE], NULL, NULL,
	            0);
	assert_non_null(strstr(reply.body, part));
	reply_expect(&reply, 200, NULL);
	harness_stop(&harness);
}

/* ---- readers ---- */

struct reading {
	struct task task;
	sem_t *begun, *goes_on;
};

static void read_long(struct task *task)
{
	struct reading *reading = (struct reading *)task;
	sem_post(reading->begun);
	while (sem_wait(reading->goes_on) != 0)
		;
}

static void await(sem_t *semaphore)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	assert_int_equal(sem_timedwait(semaphore, &until), 0);
}

/* However many slow requests of an account are in progress, the next one of another account is read
 * at once. */
TEST_CASE(test_one_account_leaves_a_reader_to_the_others)
{
	enum { LONG = 8 };
	sem_t begun, goes_on, others_begun;
	struct reading readings[LONG + 1];
	harness_start(&harness, NULL);
	struct worker_pool *readers = harness.server->workers[LANE_READERS];
	sem_init(&begun, 0, 0);
	sem_init(&goes_on, 0, 0);
	sem_init(&others_begun, 0, 0);
	for (size_t i = 0; i <= LONG; i++) {
		readings[i] = (struct reading){.task = {.run = read_long, .owner = 1 + i / LONG},
		                               .begun = i < LONG ? &begun : &others_begun,
		                               .goes_on = &goes_on};
		assert_true(worker_submit(readers, &readings[i].task));
		if (i < 2)
			await(&begun);
	}
	await(&others_begun);
	for (size_t i = 0; i <= LONG; i++)
		sem_post(&goes_on);
	for (size_t i = 2; i < LONG; i++)
		await(&begun);
	harness_stop(&harness);
}

TEST_MAIN(NULL, NULL)
