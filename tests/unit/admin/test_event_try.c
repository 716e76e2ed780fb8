/* The operation "event try" returns the answer that a key would get. When the commit takes long, it
 * returns 503, and the sequencer may still use its memory. */
#include <pthread.h>

#include "testing.h"
#include "base/log.h"
#include "base/rate.h"
#include "office.h"
#include "admin/admin.h"
#include "admin/event_try.h"
#include "store/audit/audit_log.h"

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool held;       /* a batch that was begun does not end */
	bool impatient;  /* a wait with a limit ends at once */
	bool failed;     /* the outcome of a batch is unknown */
	bool empty;      /* no bucket has a token */
	uint64_t bucket; /* the last one that was checked */
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int __real_store_register_batch(struct store *store, unsigned sequencer,
                                struct registration_batch *batch, struct error *error);
int __wrap_store_register_batch(struct store *store, unsigned sequencer,
                                struct registration_batch *batch, struct error *error);
bool __real_thread_wait_until(pthread_cond_t *changed, pthread_mutex_t *mutex, int64_t until_us);
bool __wrap_thread_wait_until(pthread_cond_t *changed, pthread_mutex_t *mutex, int64_t until_us);
struct rate_state __real_rate_take(struct rate_limiter *limiter, uint64_t id, int64_t rate,
                                   int64_t capacity, int64_t now_us);
struct rate_state __wrap_rate_take(struct rate_limiter *limiter, uint64_t id, int64_t rate,
                                   int64_t capacity, int64_t now_us);

int __wrap_store_register_batch(struct store *store, unsigned sequencer,
                                struct registration_batch *batch, struct error *error)
{
	pthread_mutex_lock(&seen.mutex);
	while (seen.held)
		pthread_cond_wait(&seen.changed, &seen.mutex);
	pthread_mutex_unlock(&seen.mutex);
	if (seen.failed)
		return ERR_UNKNOWN_OUTCOME;
	return __real_store_register_batch(store, sequencer, batch, error);
}

bool __wrap_thread_wait_until(pthread_cond_t *changed, pthread_mutex_t *mutex, int64_t until_us)
{
	return !seen.impatient && __real_thread_wait_until(changed, mutex, until_us);
}

struct rate_state __wrap_rate_take(struct rate_limiter *limiter, uint64_t id, int64_t rate,
                                   int64_t capacity, int64_t now_us)
{
	seen.bucket = id;
	struct rate_state state = __real_rate_take(limiter, id, rate, capacity, now_us);
	if (seen.empty)
		state = (struct rate_state){.retry_after_seconds = 7};
	return state;
}

static void hold(bool held)
{
	pthread_mutex_lock(&seen.mutex);
	seen.held = held;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.mutex);
}

static struct event_tried try(struct office *office, const char *client_ref, const char *content,
                              struct buf *answer)
{
	struct event_tried tried;
	struct event_try given = {.channel_id = slice_of(office->sample.channel_id),
	                          .client_ref = slice_of(client_ref),
	                          .content = slice_of(content)};
	buf_clear(answer);
	assert_int_equal(event_try(&office->service, &given, &tried, answer, NULL), OK);
	buf_add_byte(answer, '\0');
	return tried;
}

TEST_CASE_ON(a_late_commit_is_told_and_found_again, struct office *office)
{
	BUF_AUTO struct buf answer = {.limit = 8192};
	hold(true);
	seen.impatient = true;
	struct event_tried late = try(office, "late", "{}", &answer);
	assert_int_equal(late.status, 503);
	assert_int_equal(late.retry_after_seconds, 2);
	assert_string_equal(late.event_id, "");
	assert_non_null(strstr(answer.data, "\"code\":\"temporarily_unavailable\""));
	assert_non_null(strstr(answer.data, "\"incident_id\":\"inc_"));
	seen.impatient = false;
	hold(false);
	struct event_tried again = try(office, "late", "{}", &answer);
	assert_int_equal(again.status, 200);
	assert_true(again.replayed);
	assert_non_null(strstr(answer.data, again.event_id));
}

TEST_CASE_ON(no_try_is_left_when_the_service_stops, struct office *office)
{
	BUF_AUTO struct buf answer = {.limit = 8192};
	hold(true);
	seen.impatient = true;
	for (int i = 0; i < 20; i++) {
		char client_ref[2] = {(char)('a' + i), 0};
		assert_int_equal(try(office, client_ref, "{}", &answer).status, 503);
	}
	hold(false); /* the sequencer answers them when the office closes */
}

TEST_CASE_ON(an_account_has_one_bucket, struct office *office)
{
	BUF_AUTO struct buf answer = {.limit = 8192};
	assert_int_equal(try(office, "one", "{}", &answer).status, 201);
	uint64_t bucket = seen.bucket;
	sample_add_channel(&office->sample, MODALITY_HASH_ONLY);
	seen.empty = true;
	struct event_tried refused = try(office, "one", "text", &answer);
	assert_true(seen.bucket == bucket);
	assert_int_equal(refused.status, 429);
	assert_int_equal(refused.retry_after_seconds, 7);
	assert_non_null(strstr(answer.data, "\"code\":\"rate_limited\""));
	seen.empty = false;
	assert_int_equal(try(office, "one", "text", &answer).status, 201);
}

/* ---- its audit record ---- */

static int operate(struct office *office, const struct admin_caller *caller, const char *client_ref,
                   struct buf *answer)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	struct json *arguments;
	struct admin admin = {
		.settings = &office->settings, .store = office->sample.store, .service = &office->service};
	buf_clear(answer);
	const char *text =
		arena_printf(&arena, "{\"channel\":\"%s\",\"client_ref\":\"%s\",\"content\":\"{}\"}",
	                 office->sample.channel_id, client_ref);
	assert_int_equal(json_parse(&arena, slice_of(text), NULL, &arguments, NULL), OK);
	return admin_run(&admin, admin_find(slice_of("event try")), arguments, caller, answer, NULL);
}

/* Counts the audit records and stores the last one. */
static size_t count_records(struct office *office, struct arena *arena, struct json **ret_last)
{
	struct audit_record_list acts;
	struct audit_filter filter = {.operation = slice_of("event try"),
	                              .since_us = TIME_NONE,
	                              .until_us = TIME_NONE,
	                              .order = ORDER_DESCENDING,
	                              .limit = 10};
	assert_int_equal(store_list_audit_records(office->sample.store, &filter, arena, &acts, NULL),
	                 OK);
	*ret_last = NULL;
	if (acts.count)
		assert_int_equal(json_parse(arena, acts.items[0].document, NULL, ret_last, NULL), OK);
	return acts.count;
}

static void assert_came_of_it(const struct json *act, const char *made, const char *found,
                              const char *outcome)
{
	const char *const members[] = {"made", "found"}, *const ids[] = {made, found};
	struct slice text;
	for (size_t i = 0; i < 2; i++) {
		struct json *things = json_member(act, members[i]);
		assert_int_equal(json_get_text(things, "event_id", &text), ids[i] != NULL);
		assert_true(!ids[i] || slice_is(text, ids[i]));
	}
	assert_int_equal(json_get_text(act, "outcome", &text), outcome != NULL);
	assert_true(!outcome || slice_is(text, outcome));
}

TEST_CASE_ON(its_audit_record_states_the_result, struct office *office)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	BUF_AUTO struct buf answer = {.limit = 8192};
	struct json *act;
	hold(true);
	seen.impatient = true;
	assert_int_equal(operate(office, NULL, "late", &answer), OK);
	assert_int_equal(count_records(office, &arena, &act), 1);
	assert_came_of_it(act, NULL, NULL, "unknown");
	seen.impatient = false;
	hold(false);
	struct event_tried late = try(office, "late", "{}", &answer);
	assert_int_equal(operate(office, NULL, "late", &answer), OK);
	assert_int_equal(count_records(office, &arena, &act), 2);
	assert_came_of_it(act, NULL, late.event_id, NULL);
	assert_int_equal(operate(office, NULL, "fresh", &answer), OK);
	struct event_tried fresh = try(office, "fresh", "{}", &answer);
	assert_true(fresh.replayed);
	assert_int_equal(count_records(office, &arena, &act), 3);
	assert_came_of_it(act, fresh.event_id, NULL, NULL);
}

TEST_CASE_ON(a_commit_that_failed_is_one_whose_outcome_is_unknown, struct office *office)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	BUF_AUTO struct buf answer = {.limit = 8192};
	struct json *act;
	seen.failed = true;
	assert_int_equal(operate(office, NULL, "failed", &answer), OK);
	seen.failed = false;
	assert_int_equal(count_records(office, &arena, &act), 1);
	assert_came_of_it(act, NULL, NULL, "unknown");
	seen.empty = true; /* a refused operation leaves no audit record */
	assert_int_equal(operate(office, NULL, "refused", &answer), OK);
	assert_int_equal(count_records(office, &arena, &act), 1);
}

TEST_CASE_ON(who_has_lost_his_session_tries_nothing, struct office *office)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	BUF_AUTO struct buf answer = {.limit = 8192};
	struct json *act;
	struct admin_caller caller = {
		.actor = {.via = "console", .node = "here", .user_id = "usr_1", .email = "a@example.org"},
		.is_user = true,
		.role = ROLE_OWNER,
		.session_id = "ses_ended",
	};
	memcpy(caller.account_id, office->sample.account_id, ID_SIZE);
	assert_int_equal(operate(office, &caller, "gone", &answer), ERR_FORBIDDEN);
	assert_int_equal(count_records(office, &arena, &act), 0);
	assert_int_equal(try(office, "gone", "{}", &answer).status, 201);
}

static int begin(void **state)
{
	static struct office office;
	log_set_level(LOG_ERROR + 1);
	seen.held = seen.impatient = seen.failed = seen.empty = false;
	office_open(&office, MODALITY_CONTENT, 10);
	*state = &office;
	return 0;
}

static int end(void **state)
{
	hold(false); /* in case a test failed before releasing it */
	office_close(*state);
	return 0;
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, begin, end);
}
