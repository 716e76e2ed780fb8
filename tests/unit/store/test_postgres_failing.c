/* The store on a server, with each call of libpq failing in turn, or the connection ending before
 * each answer. A fault is reported as a fault, never as missing, corrupt or refused; a commit
 * without an answer as one with an unknown outcome. A failed operation succeeds when it is
 * repeated, and takes effect once. test-store-postgres_failing postgresql://… postgresql://…   (two
 * empty databases) */
#include <unistd.h>

#include <libpq-fe.h>
#include <sys/socket.h>

#include "testing.h"
#include "failing.h"
#include "registering.h"
#include "sample.h"
#include "store/certifications/certifications.h"
#include "store/events/segments.h"
#include "store/store_internal.h"

#define EVENTS 1100 /* more rows than two chunks of a long result have */
#define TRIES 400
#define PAUSE_US 25000

static const char *url;
static struct sample sample;
static struct arena arena;
static struct error error;

/* ---- each call failing ---- */

enum how { CALLS, WAITS, CUTS };

static int cut_at; /* checks of a connection until it is cut; 0: it is not */
static bool was_cut;

int __real_PQisBusy(PGconn *connection);
int __wrap_PQisBusy(PGconn *connection);
int __wrap_PQisBusy(PGconn *connection)
{
	if (cut_at && --cut_at == 0) {
		was_cut = true;
		shutdown(PQsocket(connection), SHUT_RDWR);
	}
	return __real_PQisBusy(connection);
}

static void arm(enum how how, int at)
{
	error = (struct error){0};
	was_cut = false;
	cut_at = how == CUTS ? at : 0;
	if (how != CUTS)
		failing_arm(how == CALLS ? FAILING_MEMORY | FAILING_POSTGRES : FAILING_POSTGRES_WAIT, at);
}

/* Returns what failed; NULL: nothing. */
static const char *disarm(void)
{
	cut_at = 0;
	const char *failed = failing_disarm();
	return was_cut ? "cut" : failed;
}

static bool is_fault(int result)
{
	return result == ERR_UNAVAILABLE || result == ERR_NO_MEMORY || result == ERR_UNKNOWN_OUTCOME;
}

/* Shortly after a failed attempt to connect no other is made. */
#define REPEAT(code, expression)                                                                   \
	do {                                                                                           \
		for (int try_number = 0; try_number < TRIES; try_number++) {                               \
			code = (expression);                                                                   \
			if (code != ERR_UNAVAILABLE)                                                           \
				break;                                                                             \
			usleep(PAUSE_US);                                                                      \
		}                                                                                          \
		assert_int_equal(code, OK);                                                                \
	} while (0)

/* Each call fails in turn; after each the same succeeds. */
#define IN_TURN(expression)                                                                        \
	do {                                                                                           \
		for (enum how how = CALLS; how <= CUTS; how++) {                                           \
			const char *failed = "";                                                               \
			for (int at = 1; failed; at++) {                                                       \
				arm(how, at);                                                                      \
				int code = (expression);                                                           \
				failed = disarm();                                                                 \
				if (failed ? code && !is_fault(code) : code)                                       \
					fail_msg("%s, %d, %s: %d %s", #expression, at, failed, code, error.cause);     \
				REPEAT(code, expression);                                                          \
			}                                                                                      \
		}                                                                                          \
	} while (0)

/* ---- the store ---- */

static int open_store(void)
{
	return store_open(&(struct db_options){.url = url}, &sample.store, &error);
}

static int set_up(void **state)
{
	sample = (struct sample){.now_us = clock_now_us() - US_PER_SECOND};
	struct store *store;
	if (store_open(&(struct db_options){.url = url, .create = true}, &store, &error))
		return -1;
	sample_fill(&sample, store, MODALITY_HASH_ONLY, 100000);
	arena_init(&arena, (size_t)64 << 20);
	sample_register(&sample, MODE_LIVE, EVENTS);
	return 0;
}

static int tear_down(void **state)
{
	store_close(sample.store);
	arena_free(&arena);
	return 0;
}

static void no_problem(void *context, const char *text)
{
	(void)context;
	fail_msg("%s", text);
}

static int64_t count_events(void)
{
	struct check_report report;
	struct check_listener listener = {.problem = no_problem};
	assert_int_equal(store_check(sample.store, &listener, &report, &error), OK);
	return report.events;
}

TEST_CASE(opens)
{
	store_close(sample.store);
	for (int at = 1;; at++) {
		arm(CALLS, at);
		int result = open_store();
		const char *failed = disarm();
		if (!result && failed)
			store_close(sample.store);
		if (!failed) {
			assert_int_equal(result, OK);
			break;
		}
		if (result && !is_fault(result))
			fail_msg("%s: %d %s", failed, result, error.cause);
	}
	assert_int_equal(count_events(), EVENTS);
}

static int64_t registered;

static int register_one(bool *ret_replayed)
{
	char ref[32];
	snprintf(ref, sizeof ref, "n-%lld", (long long)registered);
	struct registration item = {.account = sample.account,
	                            .channel = sample.channel,
	                            .chain = sample.live_chain,
	                            .key = 1,
	                            .declaration = {.modality = MODALITY_HASH_ONLY,
	                                            .client_ref = slice_of(ref),
	                                            .occurred_at_us = TIME_NONE},
	                            .content_bytes = -1,
	                            .arena = &arena};
	struct registration *items[] = {&item};
	error = (struct error){0};
	int result = register_items(sample.store, items, 1, ++sample.now_us, &error);
	*ret_replayed = item.replayed;
	return result ? result : item.result;
}

TEST_CASE(reads_all_or_tells)
{
	struct event event;
	IN_TURN(store_get_event(sample.store, sample.account, sample.live_chain, EVENTS, &arena, &event,
	                        &error));
	assert_int_equal(event.sequence, EVENTS);
	static struct sha256 hashes[EVENTS + 1];
	IN_TURN(store_read_chain_hashes(sample.store, sample.account, sample.live_chain, 0, EVENTS,
	                                hashes, &error));
	IN_TURN(store_ready(sample.store, &error));
	IN_TURN(store_confirm(sample.store, &error));
}

/* A repeated registration is a replay only if the outcome was unknown. */
TEST_CASE(registers_once)
{
	int unknown = 0, result;
	for (enum how how = CALLS; how <= CUTS; how++) {
		const char *failed = "";
		for (int at = 1; failed; at++, registered++) {
			bool replayed;
			arm(how, at);
			result = register_one(&replayed);
			failed = disarm();
			assert_true(failed ? !result || is_fault(result) : !result);
			if (!result)
				continue;
			int before = result;
			unknown += result == ERR_UNKNOWN_OUTCOME;
			REPEAT(result, register_one(&replayed));
			assert_true(!replayed || before == ERR_UNKNOWN_OUTCOME);
			REPEAT(result, register_one(&replayed));
			assert_true(replayed);
		}
	}
	assert_true(unknown > 0);
	REPEAT(result, store_ready(sample.store, &error));
	assert_int_equal(count_events(), EVENTS + registered);
}

TEST_CASE(changes_all_or_nothing)
{
	struct account_change change = ACCOUNT_UNCHANGED;
	change.email = "owner@example.org";
	IN_TURN(store_change_account(sample.store, slice_of(sample.account_id), &change, sample.now_us,
	                             &error));
	struct account_record account;
	IN_TURN(store_find_account(sample.store, slice_of(sample.account_id), sample.now_us, &arena,
	                           &account, &error));
	assert_string_equal(account.email, "owner@example.org");
}

/* The copy is complete, or an error is returned. */
TEST_CASE(backs_up_or_tells)
{
	char path[] = "/tmp/unit-postgres-XXXXXX";
	close(mkstemp(path));
	struct db *db = sample.store->db;
	const char *failed = "";
	for (int at = 1; failed; at++) {
		error = (struct error){0};
		failing_arm(FAILING_MEMORY | FAILING_FILES | FAILING_POSTGRES, at);
		int result = db_backup(db, path, &error);
		failed = failing_disarm();
		if (failed ? result && !is_fault(result) : result)
			fail_msg("%d, %s: %d %s", at, failed, result, error.cause);
		REPEAT(result, store_ready(sample.store, &error));
	}
	unlink(path);
}

int main(int count, char **arguments)
{
	if (count < 2)
		return 2;
	url = arguments[1];
	return tests_run(set_up, tear_down, NULL, NULL);
}
