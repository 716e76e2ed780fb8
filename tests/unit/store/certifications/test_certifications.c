#include "testing.h"
#include "sample.h"
#include "store/certifications/certifications.h"
#include "store/check/inspect.h"
#include "store/transaction.h"

static struct sample sample;
static struct error error;
static int64_t open_max; /* certifications of an account in processing; 0: any number */
static struct arena arena;

static int set_up(void **state)
{
	arena_init(&arena, 4 << 20);
	sample_open(&sample, MODALITY_HASH_ONLY, 1000);
	return 0;
}

static int tear_down(void **state)
{
	sample_close(&sample);
	arena_free(&arena);
	return 0;
}

static struct certification make(enum mode mode, int64_t first, int64_t last)
{
	struct certification certification = {
		.account = sample.account,
		.channel = sample.channel,
		.chain = mode == MODE_TEST ? sample.test_chain : sample.live_chain,
		.key = 1,
		.mode = mode,
		.requested_at_us = sample.now_us,
		.language = LANGUAGE_SPANISH,
		.range = {.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = first, .seq_to = last},
		.first_sequence = first,
		.last_sequence = last,
		.config_versions = "[1]",
	};
	memcpy(certification.channel_id, sample.channel_id, ID_SIZE);
	return certification;
}

static int accept(struct certification *certification)
{
	return store_accept_certification(sample.store, "SVC", open_max, certification, &error);
}

static int64_t count_of(const char *literal_sql, const char *text)
{
	struct db_connection *connection = begin_read(sample.store, NULL);
	assert_int_equal(db_failure(connection), OK);
	struct db_query *query = db_query(connection, literal_sql);
	if (text)
		db_bind_string(query, text);
	int64_t count = db_step(query) ? db_integer(query, 0) : -1;
	assert_int_equal(end_read(connection, db_end(query, &error)), OK);
	return count;
}

static int claim(const char *holder, int64_t now_us, struct certification *ret)
{
	struct certification_claim claim = {
		.holder = holder, .now_us = now_us, .lease_us = 60 * US_PER_SECOND};
	return store_claim_certification(sample.store, &claim, &arena, ret, &error);
}

TEST_CASE(test_fee)
{
	sample_register(&sample, MODE_LIVE, 5);
	struct certification certification = make(MODE_LIVE, 1, 5);
	certification.fee = 996; /* 995 are left */
	assert_int_equal(accept(&certification), ERR_INSUFFICIENT_BALANCE);
	assert_int_equal(count_of("SELECT COUNT(*) FROM certifications", NULL), 0);
	certification.fee = 995;
	assert_int_equal(accept(&certification), OK);
	struct balance balance;
	assert_int_equal(store_get_balance(sample.store, sample.account, &balance, &error), OK);
	assert_int_equal(balance.balance, 0);

	/* The refund settles events that became unpaid in the meantime. */
	sample_register(&sample, MODE_LIVE, 2);
	assert_int_equal(store_get_balance(sample.store, sample.account, &balance, &error), OK);
	assert_int_equal(balance.unpaid_events, 2);
	struct certification other = make(MODE_LIVE, 1, 5);
	assert_int_equal(accept(&other), ERR_NOT_OPERATIONAL);
	char incident_id[ID_SIZE];
	assert_int_equal(store_fail_certification(sample.store, &certification, NULL, "cause",
	                                          sample.now_us, incident_id, &error),
	                 OK);
	assert_int_equal(store_get_balance(sample.store, sample.account, &balance, &error), OK);
	assert_int_equal(balance.balance, 993);
	assert_int_equal(balance.unpaid_events, 0);
	assert_int_equal(count_of("SELECT COUNT(*) FROM credit_entries WHERE kind = 'fee_refund'"
	                          " AND credits = 995 AND reference = $1",
	                          certification.certification_id),
	                 1);
	assert_int_equal(count_of("SELECT COUNT(*) FROM notices WHERE type = 'certification.failed'"
	                          " AND mode = 'live' AND data LIKE '%' || $1 || '%'",
	                          incident_id),
	                 1);
	/* Once only. */
	assert_int_equal(store_fail_certification(sample.store, &certification, NULL, "cause",
	                                          sample.now_us, incident_id, &error),
	                 ERR_REFUSED);
	assert_int_equal(store_get_balance(sample.store, sample.account, &balance, &error), OK);
	assert_int_equal(balance.balance, 993);
}

static int delay(const char *holder, const struct certification *job, int64_t next_us,
                 const char *cause)
{
	struct certification_delay how = {.next_us = next_us, .cause = cause};
	return store_delay_certification(sample.store, job, holder, &how, &error);
}

/* A node whose clock is ahead requests and retries; the shared clock counts. */
TEST_CASE(test_due_at_once_by_the_clock_of_all)
{
	sample.now_us = store_now_us(sample.store) + US_PER_DAY;
	sample_register(&sample, MODE_TEST, 1);
	struct certification certification = make(MODE_TEST, 1, 1), job;
	assert_int_equal(accept(&certification), OK);
	int64_t now_us = store_now_us(sample.store);
	assert_int_equal(claim("a", now_us, &job), OK);
	struct slice id = slice_of(certification.certification_id);
	assert_int_equal(store_retry_certification(sample.store, id, sample.now_us, &error),
	                 ERR_REFUSED); /* it is in progress */
	assert_int_equal(delay("a", &job, now_us + US_PER_DAY, ""), OK);
	assert_int_equal(store_retry_certification(sample.store, id, sample.now_us, &error), OK);
	assert_int_equal(claim("b", store_now_us(sample.store), &job), OK);
}

TEST_CASE(test_daily_test_quota)
{
	sample_register(&sample, MODE_TEST, 1);
	for (int i = 0; i < TEST_CERTIFICATIONS_PER_DAY; i++) {
		struct certification certification = make(MODE_TEST, 1, 1);
		assert_int_equal(accept(&certification), OK);
	}
	struct certification certification = make(MODE_TEST, 1, 1);
	assert_int_equal(accept(&certification), ERR_TEST_QUOTA);
	int64_t left_us = time_next_day(sample.now_us) - sample.now_us;
	assert_true(error.retry_after_seconds * US_PER_SECOND >= left_us);
	assert_true((error.retry_after_seconds - 1) * US_PER_SECOND < left_us);
	certification.requested_at_us = time_next_day(sample.now_us);
	assert_int_equal(accept(&certification), OK);
}

static struct document make_document(enum document_kind kind, const char *name)
{
	struct document document = {
		.kind = kind, .size_bytes = 7, .sha256 = sha256_of(name, strlen(name))};
	snprintf(document.name, sizeof document.name, "%s", name);
	snprintf(document.object, sizeof document.object, "issued/ab/%s", name);
	return document;
}

TEST_CASE(test_complete)
{
	sample_register(&sample, MODE_LIVE, 5);
	struct certification accepted = make(MODE_LIVE, 2, 5);
	assert_int_equal(accept(&accepted), OK);
	int64_t now_us = sample.now_us;
	struct certification job;
	/* Not before its range is sealed. */
	assert_int_equal(claim("a", now_us, &job), ERR_NOT_FOUND);
	sample_seal(&sample);
	assert_int_equal(claim("a", now_us, &job), OK);
	assert_string_equal(job.certification_id, accepted.certification_id);
	assert_int_equal(job.attempts, 1);
	assert_int_equal(store_renew_certification(sample.store, &job, "a", now_us + 1000, 500, &error),
	                 OK);
	assert_int_equal(claim("b", now_us + 999, &job), ERR_NOT_FOUND);

	struct document documents[] = {
		make_document(DOCUMENT_PART, "content-part-002.zip"),
		make_document(DOCUMENT_PART, "content-part-001.zip"),
		make_document(DOCUMENT_EVIDENCE, "evidence.zip"),
		make_document(DOCUMENT_REPORT, "report-es.pdf"),
	};
	documents[3].language = LANGUAGE_SPANISH;
	assert_int_equal(
		store_complete_certification(sample.store, &job, "b", now_us, documents, 4, &error),
		ERR_REFUSED);
	assert_int_equal(count_of("SELECT COUNT(*) FROM issued_files", NULL), 0);
	struct certification found;
	assert_int_equal(store_find_issued(sample.store, slice_of(job.verification_code), NULL, &arena,
	                                   &found, &error),
	                 ERR_NOT_FOUND);
	assert_int_equal(
		store_complete_certification(sample.store, &job, "a", now_us + 5, documents, 4, &error),
		OK);
	assert_int_equal(
		store_complete_certification(sample.store, &job, "a", now_us, documents, 4, &error),
		ERR_REFUSED);
	assert_int_equal(count_of("SELECT COUNT(*) FROM notices WHERE type = 'certification.completed'"
	                          " AND data LIKE '%\"event_count\":4%' AND data LIKE '%' || $1 || '%'",
	                          accepted.verification_code),
	                 1);

	struct document *list;
	size_t count;
	assert_int_equal(store_list_documents(sample.store, sample.account, job.certification, &arena,
	                                      &list, &count, &error),
	                 OK);
	assert_int_equal(count, 4);
	assert_string_equal(list[0].name, "report-es.pdf");
	assert_int_equal(list[0].language, LANGUAGE_SPANISH);
	assert_string_equal(list[1].name, "evidence.zip");
	assert_string_equal(list[2].name, "content-part-001.zip");
	assert_string_equal(list[3].object, documents[0].object);
	struct document document;
	assert_int_equal(store_find_document(sample.store, slice_of(job.certification_id),
	                                     slice_of("evidence.zip"), &document, &error),
	                 OK);
	assert_int_equal(document.size_bytes, 7);
	assert_int_equal(store_find_document(sample.store, slice_of(job.certification_id),
	                                     slice_of("other.zip"), &document, &error),
	                 ERR_NOT_FOUND);
	assert_int_equal(store_find_issued(sample.store, slice_of(job.verification_code), NULL, &arena,
	                                   &found, &error),
	                 OK);
	assert_int_equal(found.status, CERTIFICATION_COMPLETED);
	assert_int_equal(found.completed_at_us, now_us + 5);
	assert_int_equal(
		store_find_issued(sample.store, slice_of(""), &documents[2].sha256, &arena, &found, &error),
		OK);
	assert_string_equal(found.certification_id, job.certification_id);
	struct sha256 unknown = sha256_of("unknown", 7);
	assert_int_equal(
		store_find_issued(sample.store, slice_of(""), &unknown, &arena, &found, &error),
		ERR_NOT_FOUND);
	bool named;
	assert_int_equal(store_is_object_referenced(sample.store, documents[1].object, &named, &error),
	                 OK);
	assert_true(named);
	assert_int_equal(store_is_object_referenced(sample.store, "issued/ab/other", &named, &error),
	                 OK);
	assert_false(named);
}

/* An expired lease; a holder that crashed continues at once, but only a limited number of times. */
TEST_CASE(test_leases)
{
	sample_register(&sample, MODE_TEST, 2);
	struct certification accepted = make(MODE_TEST, 1, 2);
	assert_int_equal(accept(&accepted), OK);
	int64_t now_us = sample.now_us;
	struct certification job;
	assert_int_equal(claim("a", now_us, &job), OK);
	assert_int_equal(claim("b", now_us + 59 * US_PER_SECOND, &job), ERR_NOT_FOUND);
	for (int i = 2; i <= 5; i++) {
		assert_int_equal(claim("a", now_us, &job), OK);
		assert_int_equal(job.attempts, i);
	}
	assert_int_equal(claim("a", now_us, &job), ERR_NOT_FOUND);
	now_us += 60 * US_PER_SECOND;
	assert_int_equal(claim("b", now_us, &job), OK);
	assert_int_equal(job.attempts, 6);
	assert_int_equal(store_renew_certification(sample.store, &job, "a", now_us, 1, &error),
	                 ERR_REFUSED);
	assert_int_equal(delay("a", &job, now_us, "x"), ERR_REFUSED);
	assert_int_equal(delay("b", &job, now_us + 10, "why"), OK);
	assert_int_equal(claim("a", now_us + 9, &job), ERR_NOT_FOUND);
	assert_int_equal(claim("a", now_us + 10, &job), OK);
	assert_int_equal(job.attempts, 7);
	assert_string_equal(job.last_error, "why");
	/* Returned without a cause: the attempt does not count. */
	assert_int_equal(delay("a", &job, now_us, NULL), OK);
	assert_int_equal(claim("a", now_us, &job), OK);
	assert_int_equal(job.attempts, 7);
	char incident_id[ID_SIZE];
	assert_int_equal(
		store_fail_certification(sample.store, &job, "b", "cause", now_us, incident_id, &error),
		ERR_REFUSED);
	assert_int_equal(
		store_fail_certification(sample.store, &job, NULL, "cause", now_us, incident_id, &error),
		ERR_REFUSED);
	assert_int_equal(
		store_fail_certification(sample.store, &job, "a", "cause", now_us, incident_id, &error),
		OK);
	assert_int_equal(claim("a", now_us + US_PER_DAY, &job), ERR_NOT_FOUND);
}

/* Another kind of failure restarts the count; an attempt that does not count leaves it
 * unchanged. */
TEST_CASE(test_own_failures_are_counted_in_a_row)
{
	static const struct {
		struct certification_delay delay;
		int64_t own_failures, attempts; /* afterwards */
	} steps[] = {
		{{.cause = "own", .own_failure = true}, 1, 1},
		{{.cause = "own", .own_failure = true}, 2, 2},
		{{.cause = NULL}, 2, 2},
		{{.cause = "own", .own_failure = true}, 3, 3},
		{{.cause = "other"}, 0, 4},
		{{.cause = "other"}, 0, 5},
		{{.cause = "own", .own_failure = true}, 1, 6},
	};
	sample_register(&sample, MODE_TEST, 2);
	struct certification accepted = make(MODE_TEST, 1, 2), job;
	assert_int_equal(accept(&accepted), OK);
	assert_int_equal(claim("a", sample.now_us, &job), OK);
	assert_int_equal(job.own_failures, 0);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		assert_int_equal(
			store_delay_certification(sample.store, &job, "a", &steps[i].delay, &error), OK);
		assert_int_equal(claim("a", sample.now_us, &job), OK);
		assert_int_equal(job.own_failures, steps[i].own_failures);
		assert_int_equal(job.attempts, steps[i].attempts + 1); /* with the one that begins */
	}
}

/* An operator who retries after a repair uses up none of the remaining time. */
TEST_CASE(test_a_retry_begins_the_row_anew)
{
	struct certification_delay own = {.cause = "own", .own_failure = true};
	sample_register(&sample, MODE_TEST, 2);
	struct certification accepted = make(MODE_TEST, 1, 2), job;
	assert_int_equal(accept(&accepted), OK);
	struct slice id = slice_of(accepted.certification_id);
	for (int i = 1; i <= 20; i++) {
		int64_t now_us = store_now_us(sample.store);
		assert_int_equal(claim("a", now_us, &job), OK);
		assert_int_equal(job.own_failures, 0);
		assert_int_equal(job.attempts, i);
		own.next_us = now_us + US_PER_DAY;
		assert_int_equal(store_delay_certification(sample.store, &job, "a", &own, &error), OK);
		assert_int_equal(store_retry_certification(sample.store, id, now_us, &error), OK);
	}
}

/* Above that number in progress, an account must wait for one to end. */
TEST_CASE(test_open_bound)
{
	sample_register(&sample, MODE_LIVE, 5);
	sample_register(&sample, MODE_TEST, 5);
	sample_seal(&sample);
	open_max = 2;
	struct certification items[] = {make(MODE_LIVE, 1, 5), make(MODE_LIVE, 1, 5),
	                                make(MODE_LIVE, 1, 5), make(MODE_TEST, 1, 5)};
	assert_int_equal(accept(&items[0]), OK);
	assert_int_equal(accept(&items[1]), OK);
	assert_int_equal(accept(&items[2]), ERR_RATE_LIMITED);
	assert_true(error.retry_after_seconds > 0);
	assert_non_null(strstr(error.english, "2 certifications"));
	assert_int_equal(accept(&items[3]), OK);
	char incident_id[ID_SIZE];
	assert_int_equal(store_fail_certification(sample.store, &items[0], NULL, "x", sample.now_us,
	                                          incident_id, &error),
	                 OK);
	assert_int_equal(accept(&items[2]), OK);
	open_max = 0;
}

static int64_t claim_in_turn(const char *holder, int64_t after_account, int64_t account_max)
{
	struct certification claimed;
	struct certification_claim turn = {
		.holder = holder,
		.now_us = sample.now_us,
		.lease_us = 60 * US_PER_SECOND,
		.after_account = after_account,
		.node = "node#",
		.account_max = account_max,
	};
	int result = store_claim_certification(sample.store, &turn, &arena, &claimed, &error);
	assert_true(!result || result == ERR_NOT_FOUND);
	return result ? 0 : claimed.account;
}

/* The many certifications of one account do not delay the one of another. */
TEST_CASE(test_turns)
{
	sample_register(&sample, MODE_TEST, 5);
	for (int i = 0; i < 6; i++) {
		struct certification many = make(MODE_TEST, 1, 5);
		assert_int_equal(accept(&many), OK);
	}
	struct sample first = sample;
	sample_fill(&sample, first.store, MODALITY_HASH_ONLY, 100);
	sample_register(&sample, MODE_TEST, 5);
	struct certification items[] = {make(MODE_TEST, 1, 5), make(MODE_TEST, 1, 5)};
	assert_int_equal(accept(&items[0]), OK);
	assert_int_equal(accept(&items[1]), OK);
	assert_true(first.account < sample.account);
	sample.now_us += US_PER_SECOND;

	assert_int_equal(claim_in_turn("node#0", 0, 2), first.account);
	/* The account with fewer in progress, whatever the order of the fair queue. */
	assert_int_equal(claim_in_turn("node#1", sample.account, 2), sample.account);
	assert_int_equal(claim_in_turn("node#2", first.account, 2), sample.account);
	/* Only the first account has any left, and may have one more at this node. */
	assert_int_equal(claim_in_turn("node#3", 0, 2), first.account);
	assert_int_equal(claim_in_turn("node#4", 0, 2), 0);
	assert_int_equal(claim_in_turn("other#0", 0, 2), 0);
	assert_int_equal(claim_in_turn("other#0", 0, 0), first.account);
}

TEST_CASE(test_overdue)
{
	sample_register(&sample, MODE_LIVE, 2);
	struct certification accepted = make(MODE_LIVE, 1, 2);
	assert_int_equal(accept(&accepted), OK);
	struct certification found;
	assert_int_equal(
		store_find_overdue_certification(sample.store, sample.now_us, 0, &arena, &found, &error),
		ERR_NOT_FOUND);
	assert_int_equal(store_find_overdue_certification(sample.store, sample.now_us + 1, 0, &arena,
	                                                  &found, &error),
	                 OK);
	assert_string_equal(found.certification_id, accepted.certification_id);
	assert_int_equal(store_find_overdue_certification(sample.store, sample.now_us + 1,
	                                                  found.certification, &arena, &found, &error),
	                 ERR_NOT_FOUND);
	sample_seal(&sample);
	assert_int_equal(store_find_overdue_certification(sample.store, sample.now_us + 1, 0, &arena,
	                                                  &found, &error),
	                 ERR_NOT_FOUND);
}

TEST_CASE(test_idle_accounts)
{
	int64_t count;
	int64_t day_us = sample.now_us - sample.now_us % US_PER_DAY;
	assert_int_equal(store_disable_idle_accounts(sample.store, day_us, &count, &error), OK);
	assert_int_equal(count, 0);
	sample_register(&sample, MODE_TEST, 1);
	sample.now_us += 3 * US_PER_DAY;
	sample_register(&sample, MODE_TEST, 1);
	assert_int_equal(
		store_disable_idle_accounts(sample.store, day_us + 2 * US_PER_DAY, &count, &error), OK);
	assert_int_equal(count, 0);
	assert_int_equal(
		store_disable_idle_accounts(sample.store, day_us + 5 * US_PER_DAY, &count, &error), OK);
	assert_int_equal(count, 1);
	assert_int_equal(store_forget_usage(sample.store, sample.now_us + 40 * US_PER_DAY, &error), OK);
	assert_int_equal(count_of("SELECT COUNT(*) FROM test_usage", NULL), 0);
}

TEST_CASE(test_an_account_that_cannot_be_changed_keeps_no_other_from_it)
{
	struct account_record given = {.name = "another", .unpaid_limit = 0};
	char account_id[ID_SIZE];
	int64_t count, later_us = sample.now_us + 10 * US_PER_DAY;
	assert_int_equal(
		store_create_account(sample.store, &given, 0, sample.now_us, account_id, &error), OK);
	sample_change(&sample,
	              "CREATE TRIGGER broken BEFORE UPDATE ON accounts WHEN old.account = (SELECT"
	              " min(account) FROM accounts) BEGIN SELECT RAISE(ABORT, 'broken'); END");
	assert_int_equal(store_disable_idle_accounts(sample.store, later_us, &count, &error),
	                 ERR_REFUSED);
	assert_int_equal(count, 1);
	sample_change(&sample, "DROP TRIGGER broken");
	assert_int_equal(store_disable_idle_accounts(sample.store, later_us, &count, &error), OK);
	assert_int_equal(count, 1);
}

TEST_MAIN_EACH(set_up, tear_down)
