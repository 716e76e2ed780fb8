/* Notices queued for endpoints, and their deliveries. */
#include "testing.h"
#include "sample.h"
#include "store/events/segments.h"
#include "store/notices/deliveries.h"
#include "store/notices/endpoint.h"
#include "store/notices/mails.h"
#include "store/notices/notices.h"
#include "store/notices/replay.h"
#include "store/notices/webhooks.h"
#include "store/transaction.h"

#define FAILURES_MAX 5

struct fixture {
	struct sample sample;
	struct arena arena;
	struct error error;
	/* of the last endpoint that was created */
	int64_t endpoint;
	char endpoint_id[ID_SIZE];
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	arena_init(&fixture->arena, (size_t)64 << 20);
	sample_open(&fixture->sample, MODALITY_CONTENT, 100);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sample_close(&fixture->sample);
	arena_free(&fixture->arena);
	free(fixture);
	return 0;
}

static struct webhook_record find(struct fixture *fixture)
{
	struct webhook_record record;
	assert_int_equal(store_find_webhook(fixture->sample.store, slice_of(fixture->endpoint_id),
	                                    &fixture->arena, &record, &fixture->error),
	                 OK);
	return record;
}

static void add_endpoint(struct fixture *fixture, const char *types)
{
	assert_int_equal(store_create_webhook(fixture->sample.store,
	                                      slice_of(fixture->sample.account_id),
	                                      "https://example.org/hook", types, fixture->sample.now_us,
	                                      fixture->endpoint_id, &fixture->error),
	                 OK);
	struct db_connection *connection = begin_read(fixture->sample.store, NULL);
	assert_int_equal(db_failure(connection), OK);
	struct db_query *query =
		db_query(connection, "SELECT endpoint FROM webhook_endpoints WHERE endpoint_id = $1");
	db_bind_string(query, fixture->endpoint_id);
	assert_true(db_step(query));
	fixture->endpoint = db_integer(query, 0);
	assert_int_equal(end_read(connection, db_end(query, NULL)), OK);
}

static void add_threshold(struct fixture *fixture, int64_t credits)
{
	char threshold_id[ID_SIZE];
	assert_int_equal(store_create_threshold(fixture->sample.store,
	                                        slice_of(fixture->sample.account_id), credits,
	                                        threshold_id, &fixture->error),
	                 OK);
}

static void move(struct fixture *fixture, int64_t credits)
{
	struct credit_movement movement = {.credits = credits, .kind = "adjustment"};
	struct credit_outcome outcome;
	fixture->sample.now_us += 1000;
	assert_int_equal(store_move_credits(fixture->sample.store, slice_of(fixture->sample.account_id),
	                                    &movement, fixture->sample.now_us, &outcome,
	                                    &fixture->error),
	                 OK);
}

/* Causes a notice for each threshold below 90. */
static void cause(struct fixture *fixture)
{
	move(fixture, -95);
	move(fixture, 95);
}

static int collect(void *context, int64_t account, int64_t endpoint)
{
	struct fixture *fixture = context;
	assert_int_equal(account, fixture->sample.account);
	assert_int_equal(endpoint, fixture->endpoint);
	return 77;
}

static bool is_due(struct fixture *fixture, int64_t at_us)
{
	int result =
		store_each_due_webhook(fixture->sample.store, at_us, collect, fixture, &fixture->error);
	assert_true(!result || result == 77);
	return result == 77;
}

static struct delivery_batch load(struct fixture *fixture, int64_t at_us, size_t expected)
{
	struct delivery_batch batch;
	assert_int_equal(store_load_deliveries(fixture->sample.store, fixture->sample.account,
	                                       fixture->endpoint, at_us, 100, &fixture->arena, &batch,
	                                       &fixture->error),
	                 OK);
	assert_int_equal(batch.count, expected);
	return batch;
}

static struct attempt_record result_of(struct fixture *fixture, const struct delivery *delivery,
                                       enum delivery_end end, int64_t next_us)
{
	return (struct attempt_record){
		.account = fixture->sample.account,
		.endpoint = fixture->endpoint,
		.notice = delivery->notice,
		.attempts = delivery->attempts,
		.tries = delivery->tries,
		.end = end,
		.at_us = fixture->sample.now_us,
		.duration_us = 10,
		.next_at_us = next_us,
		.http_status = end == DELIVERY_DONE ? 200 : 0,
		.error = "no answer",
	};
}

static void record(struct fixture *fixture, struct attempt_record *records, size_t count)
{
	int result = store_record_attempts(fixture->sample.store, records, count, FAILURES_MAX,
	                                   fixture->sample.now_us, &fixture->error);
	if (result)
		print_error("%s\n", fixture->error.cause);
	assert_int_equal(result, OK);
}

static void record_one(struct fixture *fixture, const struct delivery *delivery,
                       enum delivery_end end, int64_t next_us)
{
	struct attempt_record one = result_of(fixture, delivery, end, next_us);
	record(fixture, &one, 1);
}

TEST_CASE_ON(test_a_notice_is_queued_once_for_who_wants_it_then, struct fixture *fixture)
{
	add_threshold(fixture, 10);
	move(fixture, -95);
	move(fixture, 95);
	add_endpoint(fixture, "certification.completed");
	add_endpoint(fixture, "balance.low,certification.failed");
	int64_t now_us = fixture->sample.now_us;
	assert_false(is_due(fixture, now_us + US_PER_DAY));
	cause(fixture);
	now_us = fixture->sample.now_us;
	int64_t next_us;
	assert_int_equal(store_next_delivery(fixture->sample.store, &next_us, NULL), OK);
	assert_true(next_us <= now_us && is_due(fixture, next_us) && !is_due(fixture, next_us - 1));
	struct delivery_batch batch = load(fixture, now_us, 1);
	assert_string_equal(batch.url, "https://example.org/hook");
	assert_string_equal(batch.endpoint_id, fixture->endpoint_id);
	assert_string_equal(batch.items[0].type, "balance.low");
	assert_string_equal(batch.items[0].mode, "live");
	assert_memory_equal(batch.items[0].notice_id, "ntc_", 4);
}

/* A node whose clock is ahead queues for all nodes. */
TEST_CASE_ON(test_due_at_once_by_the_clock_of_all, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	add_threshold(fixture, 10);
	add_endpoint(fixture, NULL);
	fixture->sample.now_us = store_now_us(store) + US_PER_DAY;
	cause(fixture);
	assert_true(is_due(fixture, store_now_us(store)));
	struct delivery delivery = load(fixture, store_now_us(store), 1).items[0];
	record_one(fixture, &delivery, DELIVERY_DONE, 0);
	assert_int_equal(store_replay_notice(store, slice_of(delivery.notice_id),
	                                     slice_of(fixture->endpoint_id), fixture->sample.now_us,
	                                     NULL),
	                 OK);
	assert_true(is_due(fixture, store_now_us(store)));
	load(fixture, store_now_us(store), 1);
}

/* The result of an attempt whose delivery was removed in the meantime is not stored. */
TEST_CASE_ON(test_an_attempt_at_what_is_gone_is_not_kept, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	add_threshold(fixture, 10);
	add_endpoint(fixture, NULL);
	cause(fixture);
	struct delivery delivery = load(fixture, fixture->sample.now_us, 1).items[0];
	assert_int_equal(
		store_delete_webhook(store, slice_of(fixture->endpoint_id), fixture->sample.now_us, NULL),
		OK);
	int64_t removed;
	assert_int_equal(store_forget_notices(store, 0, 1000, &removed, NULL), OK);
	record_one(fixture, &delivery, DELIVERY_DONE, 0);
	assert_int_equal(sample_number(&fixture->sample, "SELECT count(*) FROM webhook_attempts"), 0);
}

/* The longest address, which doubles its length in JSON, can still be recorded. */
TEST_CASE_ON(test_the_owner_of_any_address_is_told_that_it_is_disabled, struct fixture *fixture)
{
	struct account_change change = ACCOUNT_UNCHANGED;
	change.email = "owner@example.org";
	assert_int_equal(store_change_account(fixture->sample.store,
	                                      slice_of(fixture->sample.account_id), &change,
	                                      fixture->sample.now_us, NULL),
	                 OK);
	char url[2049] = "https://example.org/";
	memset(url + strlen(url), '"', sizeof url - 1 - strlen(url));
	for (int64_t credits = 10; credits < 15; credits++)
		add_threshold(fixture, credits);
	add_endpoint(fixture, NULL);
	assert_int_equal(store_change_webhook(fixture->sample.store, slice_of(fixture->endpoint_id),
	                                      url, NULL, NULL),
	                 OK);
	cause(fixture);
	struct delivery_batch batch = load(fixture, fixture->sample.now_us, 5);
	for (int i = 0; i < 5; i++)
		record_one(fixture, &batch.items[i], DELIVERY_USED_UP, 0);
	assert_string_equal(find(fixture).disabled_by, "failures");
	(void)sample_find_mail(&fixture->sample, &fixture->arena);
}

TEST_CASE_ON(test_attempts_are_recorded_once_whatever_is_repeated, struct fixture *fixture)
{
	add_threshold(fixture, 10);
	add_endpoint(fixture, NULL);
	cause(fixture);
	int64_t now_us = fixture->sample.now_us, later_us = now_us + 60 * US_PER_SECOND;
	struct delivery delivery = load(fixture, now_us, 1).items[0];
	for (int i = 0; i < 3; i++) /* as after a commit with an unknown outcome */
		record_one(fixture, &delivery, DELIVERY_AGAIN, later_us);
	load(fixture, later_us - 1, 0);
	assert_false(is_due(fixture, later_us - 1));
	assert_true(is_due(fixture, later_us));
	struct delivery again = load(fixture, later_us, 1).items[0];
	assert_int_equal(again.attempts, 1);
	record_one(fixture, &again, DELIVERY_DONE, 0);
	record_one(fixture, &again, DELIVERY_USED_UP, 0); /* by a node that lost the lease */
	struct webhook_record endpoint = find(fixture);
	assert_int_equal(endpoint.failures, 0);
	assert_int_equal(endpoint.waiting, 0);
	struct delivery_list list;
	assert_int_equal(store_list_deliveries(fixture->sample.store, slice_of(fixture->endpoint_id),
	                                       "delivered", 0, 10, &fixture->arena, &list, NULL),
	                 OK);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].attempts, 2);
	assert_int_equal(list.items[0].last.http_status, 200);
	struct attempt_list attempts;
	assert_int_equal(store_list_attempts(fixture->sample.store, slice_of(fixture->endpoint_id),
	                                     slice_of(again.notice_id), &fixture->arena, &attempts,
	                                     NULL),
	                 OK);
	assert_int_equal(attempts.count, 2);
	assert_string_equal(attempts.items[0].error, "no answer");
	assert_int_equal(store_next_delivery(fixture->sample.store, &now_us, NULL), OK);
	assert_true(now_us == INT64_MAX);
}

TEST_CASE_ON(test_failures_in_a_row_disable_and_an_acknowledgment_between_them_does_not,
             struct fixture *fixture)
{
	for (int64_t credits = 10; credits < 19; credits++)
		add_threshold(fixture, credits);
	add_endpoint(fixture, NULL);
	cause(fixture);
	struct delivery_batch batch = load(fixture, fixture->sample.now_us, 9);
	for (int i = 0; i < 9; i++) {
		struct attempt_record one =
			result_of(fixture, &batch.items[i], i == 3 ? DELIVERY_DONE : DELIVERY_USED_UP, 0);
		record(fixture, &one, 1);
		record(fixture, &one, 1); /* counted once */
		struct webhook_record endpoint = find(fixture);
		assert_int_equal(endpoint.failures, i < 3 ? i + 1 : i == 3 ? 0 : i - 3);
		assert_int_equal(endpoint.disabled_at_us != TIME_NONE, i == 8);
	}
	struct delivery_counts counts;
	assert_int_equal(store_count_deliveries(fixture->sample.store, &counts, NULL), OK);
	assert_int_equal(counts.disabled, 1);
}

/* Endpoints for all types, and accounts without another one, get nothing more than before. */
TEST_CASE_ON(test_what_is_sealed_is_for_endpoints_that_name_it, struct fixture *fixture)
{
	struct sample *sample = &fixture->sample;
	sample_register(sample, MODE_LIVE, 2);
	add_endpoint(fixture, NULL);
	add_endpoint(fixture, "certification.completed");
	sample_seal(sample);
	assert_int_equal(sample_number(sample, "SELECT count(*) FROM notices"), 0);
	add_endpoint(fixture, "balance.low,event.sealed");
	sample_register(sample, MODE_LIVE, 3);
	sample_register(sample, MODE_TEST, 1);
	sample_seal(sample);
	assert_int_equal(sample_number(sample, "SELECT count(*) FROM notices"), 1);
	assert_int_equal(sample_number(sample, "SELECT count(*) FROM webhook_deliveries"), 1);
	struct delivery_batch batch = load(fixture, sample->now_us + US_PER_DAY, 1);
	char expected[256];
	snprintf(expected, sizeof expected,
	         "{\"sealed_at\":\"1970-01-01T00:00:00.000000Z\",\"segments\":[{\"channel_id\":\"%s\","
	         "\"segment_id\":\"seg_2\",\"seq_from\":3,\"seq_to\":5,\"event_count\":3}]}",
	         sample->channel_id);
	assert_string_equal(batch.items[0].type, "event.sealed");
	assert_string_equal(batch.items[0].data.data, expected);
	/* While it is disabled nothing is written. */
	assert_int_equal(store_switch_webhook(sample->store, slice_of(fixture->endpoint_id), "user",
	                                      sample->now_us, NULL),
	                 OK);
	sample_register(sample, MODE_LIVE, 1);
	sample_seal(sample);
	assert_int_equal(sample_number(sample, "SELECT count(*) FROM notices"), 1);
}

/* The list for SQL is that of the types. */
TEST_CASE(test_opt_in_types)
{
	size_t listed = 0;
	for (int type = 0; type <= NOTICE_WEBHOOK_TEST; type++) {
		const char *name = notice_type_text((enum notice_type)type);
		char quoted[80];
		snprintf(quoted, sizeof quoted, "'%s'", name);
		bool opt_in = notice_type_is_opt_in(slice_of(name));
		assert_int_equal(strstr(OPT_IN_TYPES, quoted) != NULL, opt_in);
		listed += opt_in;
	}
	assert_int_equal(listed, 2);
}

static int64_t count_audit_records(struct fixture *fixture)
{
	return sample_number(&fixture->sample,
	                     "SELECT count(*) FROM acts WHERE operation = 'webhook disable'");
}

/* Once, whatever is recorded twice; and only for the URL that was sent to. */
TEST_CASE_ON(test_a_receiver_that_is_gone_disables_its_endpoint, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	add_threshold(fixture, 10);
	add_endpoint(fixture, NULL);
	cause(fixture);
	int64_t now_us = fixture->sample.now_us, later_us = now_us + 60 * US_PER_SECOND;
	struct delivery_batch batch = load(fixture, now_us, 1);
	struct attempt_record one = result_of(fixture, &batch.items[0], DELIVERY_AGAIN, later_us);
	one.gone = true;
	one.http_status = 410;
	one.url_digest = sha256_of("https://example.org/former", 26);
	record(fixture, &one, 1);
	assert_false(one.disabled);
	assert_true(find(fixture).disabled_at_us == TIME_NONE);

	struct delivery again = load(fixture, later_us, 1).items[0];
	one = result_of(fixture, &again, DELIVERY_AGAIN, later_us);
	one.gone = true;
	one.http_status = 410;
	one.url_digest = sha256_of(batch.url, strlen(batch.url));
	struct attempt_record repeated = one;
	record(fixture, &one, 1);
	assert_true(one.disabled);
	assert_string_equal(find(fixture).disabled_by, "gone");
	assert_int_equal(count_audit_records(fixture), 1);
	struct delivery_counts counts;
	assert_int_equal(store_count_deliveries(store, &counts, NULL), OK);
	assert_int_equal(counts.disabled, 1);
	assert_int_equal(counts.held, 1);
	assert_int_equal(
		store_switch_webhook(store, slice_of(fixture->endpoint_id), NULL, later_us, NULL), OK);
	record(fixture, &repeated, 1); /* as after a commit with an unknown outcome */
	assert_false(repeated.disabled);
	assert_true(find(fixture).disabled_at_us == TIME_NONE);
	assert_int_equal(count_audit_records(fixture), 1);
	load(fixture, later_us, 1);
}

TEST_CASE_ON(test_the_order_of_the_ends_counts_within_one_transaction, struct fixture *fixture)
{
	for (int64_t credits = 10; credits < 16; credits++)
		add_threshold(fixture, credits);
	add_endpoint(fixture, NULL);
	cause(fixture);
	struct delivery_batch batch = load(fixture, fixture->sample.now_us, 6);
	struct attempt_record records[6];
	for (int i = 0; i < 6; i++) { /* the acknowledgment came last but is reported first */
		records[i] =
			result_of(fixture, &batch.items[i], i == 0 ? DELIVERY_DONE : DELIVERY_USED_UP, 0);
		records[i].at_us += i == 0 ? 1000 : i;
	}
	record(fixture, records, 6);
	int disabled = 0;
	for (int i = 0; i < 6; i++)
		disabled += records[i].disabled;
	assert_int_equal(disabled, 1);
	assert_string_equal(find(fixture).disabled_by, "failures");
}

/* So that an endpoint with more notices than can be attempted is disabled nevertheless. */
TEST_CASE_ON(test_a_retry_goes_before_what_was_never_tried, struct fixture *fixture)
{
	add_threshold(fixture, 10);
	add_endpoint(fixture, NULL);
	cause(fixture);
	struct delivery first = load(fixture, fixture->sample.now_us, 1).items[0];
	cause(fixture);
	cause(fixture);
	int64_t later_us = fixture->sample.now_us + 1000;
	record_one(fixture, &first, DELIVERY_AGAIN, later_us);
	struct delivery_batch batch = load(fixture, later_us - 1, 2);
	assert_int_equal(batch.items[0].tries + batch.items[1].tries, 0);
	assert_true(batch.items[0].notice < batch.items[1].notice);
	batch = load(fixture, later_us, 3);
	assert_int_equal(batch.items[0].notice, first.notice);
	assert_int_equal(batch.items[0].tries, 1);
}

TEST_CASE_ON(test_a_disabled_endpoint_keeps_what_waits, struct fixture *fixture)
{
	add_threshold(fixture, 10);
	add_endpoint(fixture, NULL);
	cause(fixture);
	struct store *store = fixture->sample.store;
	int64_t now_us = fixture->sample.now_us;
	struct slice id = slice_of(fixture->endpoint_id);
	struct delivery delivery = load(fixture, now_us, 1).items[0];
	assert_int_equal(store_switch_webhook(store, id, "user", now_us, NULL), OK);
	assert_false(is_due(fixture, now_us));
	struct delivery_batch batch;
	assert_int_equal(store_load_deliveries(store, fixture->sample.account, fixture->endpoint,
	                                       now_us, 10, &fixture->arena, &batch, NULL),
	                 ERR_NOT_FOUND);
	record_one(fixture, &delivery, DELIVERY_AGAIN, now_us + 5); /* was in progress */
	assert_false(is_due(fixture, now_us + 10));
	cause(fixture); /* not for this endpoint */
	assert_int_equal(store_replay_notice(store, slice_of(delivery.notice_id), id, now_us, NULL),
	                 ERR_REFUSED);
	assert_int_equal(store_switch_webhook(store, id, NULL, now_us, NULL), OK);
	assert_true(is_due(fixture, now_us + 10));
	load(fixture, now_us + 10, 1);
}

TEST_CASE_ON(test_a_replay_begins_a_fresh_schedule, struct fixture *fixture)
{
	add_threshold(fixture, 10);
	add_endpoint(fixture, NULL);
	cause(fixture);
	struct store *store = fixture->sample.store;
	int64_t now_us = fixture->sample.now_us;
	struct slice id = slice_of(fixture->endpoint_id);
	struct delivery delivery = load(fixture, now_us, 1).items[0];
	record_one(fixture, &delivery, DELIVERY_AGAIN, now_us);
	delivery = load(fixture, now_us, 1).items[0];
	assert_int_equal(delivery.tries, 1);
	assert_int_equal(store_replay_notice(store, slice_of(delivery.notice_id), id, now_us, NULL),
	                 OK);
	record_one(fixture, &delivery, DELIVERY_USED_UP, 0); /* was in progress before the replay */
	delivery = load(fixture, now_us, 1).items[0];
	assert_int_equal(delivery.tries, 0);
	record_one(fixture, &delivery, DELIVERY_DONE, 0);
	load(fixture, now_us, 0);
	assert_int_equal(store_replay_notice(store, slice_of(delivery.notice_id), id, now_us + 9, NULL),
	                 OK);
	delivery = load(fixture, now_us + 9, 1).items[0];
	assert_int_equal(delivery.tries, 0);
	assert_int_equal(delivery.attempts, 2);
}

/* Adds `count` notices without deliveries. */
static void add_notices(struct fixture *fixture, int count)
{
	struct db_connection *connection = begin_write(fixture->sample.store, NULL);
	assert_int_equal(db_failure(connection), OK);
	for (int i = 0; i < count; i++) {
		char id[ID_SIZE];
		snprintf(id, sizeof id, "ntc_%06d", i);
		struct db_query *query = db_query(
			connection, "INSERT INTO notices (account, notice_id, type, mode, created_at, data)"
						" VALUES ($1, $2, 'balance.low', 'live', $3, '{}')");
		db_bind_integer(query, fixture->sample.account);
		db_bind_string(query, id);
		db_bind_integer(query, fixture->sample.now_us + i);
		assert_int_equal(db_execute(query, NULL, NULL), OK);
	}
	assert_int_equal(end_write(connection, OK, NULL), OK);
}

TEST_CASE_ON(test_a_long_replay_goes_in_pieces_and_is_taken_up_again, struct fixture *fixture)
{
	add_endpoint(fixture, NULL);
	add_notices(fixture, 1201);
	struct slice id = slice_of(fixture->endpoint_id);
	int64_t now_us = fixture->sample.now_us;
	struct replay_range range = {REPLAY_FAILED, INT64_MIN, INT64_MAX};
	struct replay_place place = {0};
	assert_int_equal(
		store_replay_batch(fixture->sample.store, id, &range, now_us, &place, &fixture->error), OK);
	assert_true(place.queued == 0 && place.more);
	place = (struct replay_place){0};
	range = (struct replay_range){REPLAY_MISSED, now_us + 1, now_us + 1200};
	assert_int_equal(
		store_replay_batch(fixture->sample.store, id, &range, now_us, &place, &fixture->error), OK);
	assert_int_equal(place.queued, 499);
	assert_true(place.more);
	/* Interrupted, and requested again. */
	place = (struct replay_place){.more = true};
	now_us += 1000;
	for (int pieces = 0; place.more; pieces++) {
		assert_true(pieces < 3);
		assert_int_equal(
			store_replay_batch(fixture->sample.store, id, &range, now_us, &place, &fixture->error),
			OK);
	}
	assert_int_equal(place.queued, 700);
	assert_int_equal(find(fixture).waiting, 1199);
	/* In the order of the notices. */
	struct delivery_batch batch = load(fixture, now_us + US_PER_SECOND, 100);
	for (size_t i = 0; i < 100; i++) {
		char expected[ID_SIZE];
		snprintf(expected, sizeof expected, "ntc_%06zu", i + 1);
		assert_string_equal(batch.items[i].notice_id, expected);
	}
}

TEST_CASE_ON(test_what_is_replayed_and_what_is_new_go_in_turns, struct fixture *fixture)
{
	add_notices(fixture, 50);
	add_endpoint(fixture, NULL);
	struct replay_range range = {REPLAY_MISSED, INT64_MIN, INT64_MAX};
	struct replay_place place = {0};
	assert_int_equal(store_replay_batch(fixture->sample.store, slice_of(fixture->endpoint_id),
	                                    &range, fixture->sample.now_us, &place, &fixture->error),
	                 OK);
	fixture->sample.now_us += US_PER_SECOND;
	for (int64_t credits = 10; credits < 14; credits++)
		add_threshold(fixture, credits);
	cause(fixture);
	struct delivery_batch batch = load(fixture, fixture->sample.now_us, 54);
	for (size_t i = 0; i < 54; i++) {
		bool fresh = strncmp(batch.items[i].notice_id, "ntc_0000", 8) != 0;
		assert_int_equal(fresh, i < 8 && i % 2 == 0);
	}
	/* Attempted deliveries come first, as always. */
	struct delivery last = batch.items[53];
	record_one(fixture, &last, DELIVERY_AGAIN, fixture->sample.now_us);
	batch = load(fixture, fixture->sample.now_us, 54);
	assert_int_equal(batch.items[0].notice, last.notice);
}

TEST_CASE_ON(test_what_is_stale_is_brought_up_to_date, struct fixture *fixture)
{
	add_threshold(fixture, 10);
	add_endpoint(fixture, NULL);
	cause(fixture);
	int64_t now_us = fixture->sample.now_us;
	struct delivery delivery = load(fixture, now_us, 1).items[0];
	record_one(fixture, &delivery, DELIVERY_AGAIN, now_us + 50);
	assert_int_equal(store_replay_notice(fixture->sample.store, slice_of(delivery.notice_id),
	                                     slice_of(fixture->endpoint_id), now_us, NULL),
	                 OK);
	delivery = load(fixture, now_us, 1).items[0];
	struct attempt_record nothing = {.account = fixture->sample.account,
	                                 .endpoint = fixture->endpoint};
	record(fixture, &nothing, 1);
	assert_true(is_due(fixture, now_us)); /* it is due */
	record_one(fixture, &delivery, DELIVERY_AGAIN, now_us + 70);
	record(fixture, &nothing, 1);
	assert_false(is_due(fixture, now_us + 69));
	assert_int_equal(find(fixture).waiting, 1);
}

TEST_CASE_ON(test_what_is_deleted_and_what_is_old_goes, struct fixture *fixture)
{
	add_threshold(fixture, 10);
	add_endpoint(fixture, NULL);
	struct store *store = fixture->sample.store;
	int64_t removed;
	cause(fixture);
	int64_t now_us = fixture->sample.now_us;
	assert_int_equal(store_forget_notices(store, now_us + 1, 1000, &removed, NULL), OK);
	assert_int_equal(removed, 0); /* the endpoint waits for it */
	struct delivery delivery = load(fixture, now_us, 1).items[0];
	record_one(fixture, &delivery, DELIVERY_DONE, 0);
	assert_int_equal(store_forget_notices(store, now_us - US_PER_SECOND, 1000, &removed, NULL), OK);
	assert_int_equal(removed, 0);
	assert_int_equal(store_forget_notices(store, now_us + 1, 1000, &removed, NULL), OK);
	assert_int_equal(removed, 1);
	cause(fixture);
	assert_int_equal(store_delete_webhook(store, slice_of(fixture->endpoint_id), now_us, NULL), OK);
	assert_false(is_due(fixture, now_us + US_PER_DAY));
	assert_int_equal(store_forget_notices(store, 0, 1000, &removed, NULL), OK);
	assert_int_equal(removed, 2); /* the delivery and the endpoint; the notice is young */
	assert_int_equal(store_forget_notices(store, INT64_MAX, 1000, &removed, NULL), OK);
	assert_int_equal(removed, 1);
}

/* ---- between a read and the change that follows ---- */

static void (*meanwhile)(struct fixture *fixture);
static struct fixture *meanwhile_of;

struct db_connection *__real_begin_write(struct store *store, struct error **error);
struct db_connection *__wrap_begin_write(struct store *store, struct error **error);
struct db_connection *__wrap_begin_write(struct store *store, struct error **error)
{
	void (*once)(struct fixture *) = meanwhile;
	meanwhile = NULL;
	if (once)
		once(meanwhile_of);
	return __real_begin_write(store, error);
}

static char replayed_id[ID_SIZE];

static void replay(struct fixture *fixture)
{
	assert_int_equal(store_replay_notice(fixture->sample.store, slice_of(replayed_id),
	                                     slice_of(fixture->endpoint_id), fixture->sample.now_us,
	                                     NULL),
	                 OK);
}

TEST_CASE_ON(test_what_is_replayed_while_it_is_forgotten_stays, struct fixture *fixture)
{
	add_threshold(fixture, 10);
	add_endpoint(fixture, NULL);
	cause(fixture);
	int64_t now_us = fixture->sample.now_us, removed;
	struct delivery delivery = load(fixture, now_us, 1).items[0];
	record_one(fixture, &delivery, DELIVERY_DONE, 0);
	memcpy(replayed_id, delivery.notice_id, ID_SIZE);
	meanwhile_of = fixture;
	meanwhile = replay;
	assert_int_equal(store_forget_notices(fixture->sample.store, now_us + 1, 1000, &removed, NULL),
	                 OK);
	assert_int_equal(removed, 0);
	assert_string_equal(load(fixture, now_us, 1).items[0].notice_id, replayed_id);
}

TEST_MAIN_EACH(set_up, tear_down)
