/* Complete and correctly signed archives whose content is contradictory or incomplete: ranges,
 * times, and one chain in several archives. */
#include "testing.h"
#include "base/json.h"
#include "test_archive_fixture.h"
#include "test_forger.h"

static struct fixture fixture;

static int set_up(void **state)
{
	fixture_open(&fixture);
	return 0;
}

/* Each archive has its own certification. */
static void make(const struct fixture_plan *plan, struct fixture_archive *made)
{
	static int number;
	char name[40];
	snprintf(name, sizeof name, "history-%d", ++number);
	snprintf(fixture.certification, sizeof fixture.certification, "CERT-2026-%07d", number);
	fixture_make_good(&fixture, name, plan, made);
}

static void verify(const char *const *paths, size_t count, int exit_code,
                   struct verify_result *ret_result)
{
	fixture_verify(paths, count, &fixture.roots, ret_result);
	fixture_expect_exit(ret_result, exit_code);
}

/* Verifies the archives, and checks the exit code and a finding. */
static void expect_of(const char *const *paths, size_t count, int exit_code,
                      enum verify_severity severity, const char *where, const char *what)
{
	struct verify_result result;
	verify(paths, count, exit_code, &result);
	if (what)
		fixture_expect_finding(&result, severity, where, what);
	verify_result_free(&result);
}

struct expectation {
	enum fixture_fault fault;
	int exit_code;
	const char *where, *what; /* of a finding, or with exit code 0 of a warning; NULL: none */
};

static void expect_one(const struct expectation *expected)
{
	struct fixture_plan plan = {MODE_LIVE, 7, 2, 7, 5, false, 0, expected->fault};
	struct fixture_archive made;
	struct verify_result result;
	make(&plan, &made);
	const char *path = made.path;
	verify(&path, 1, expected->exit_code, &result);
	if (expected->what)
		fixture_expect_finding(&result, expected->exit_code ? VERIFY_WRONG : VERIFY_WARNING,
		                       expected->where, expected->what);
	else
		assert_int_equal(fixture_warnings(&result),
		                 2); /* the development authority, no revocation data */
	verify_result_free(&result);
	assert_int_equal(fixture_agrees(&fixture, made.path, NULL, NULL), expected->exit_code == 0);
}

TEST_CASE(the_range_is_the_one_asked_for)
{
	static const struct expectation cases[] = {
		{FAULT_NONE, 0, "", NULL},
		{FAULT_REQUESTED, 1, "manifest.json",
	     "requested_range requests events 2 to 1000, but frozen_range contains 2 to 7"},
		{FAULT_FROM_LATE, 1, "sequence 2 member received_at",
	     "outside the requested_range of the manifest"},
		{FAULT_TO_EARLY, 1, "sequence 7 member received_at",
	     "outside the requested_range of the manifest"},
		{FAULT_TO_FIRST, 1, "manifest.json", "ends before it begins"},
		{FAULT_BY_TIME, 0, "", "no event is missing before the first one and after the last"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect_one(&cases[i]);
}

TEST_CASE(stated_times_are_compared_with_proven_ones)
{
	static const struct expectation cases[] = {
		{FAULT_OLD, 0, "", "but the first timestamp that proves it is 20"},
		{FAULT_OLD, 0, "", "30 d later"},
		{FAULT_UNSYNCHRONIZED, 0, "", "2 of 2 segments were sealed while the clock of the service"},
		{FAULT_NOT_COMPARED, 0, "", "2 of 2 segments have events that may have been"},
		{FAULT_ISSUED_EARLY, 1, "sequence 2 member received_at",
	     "later than the issued_at of the manifest"},
		{FAULT_ISSUED_EARLY, 1, "rounds/rounds-000001.ndjson.gz line 1",
	     "the time of the round is later than the issued_at"},
		{FAULT_ISSUED_LATE, 1, "META-INF/signature001.p7s",
	     "is later than the timestamp of the signature"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect_one(&cases[i]);
}

/* The service's clock may be that much later than that of an authority. */
TEST_CASE(two_clocks_may_differ_by_300_seconds)
{
	static const struct {
		int64_t offset_us;
		bool good;
	} cases[] = {{290 * US_PER_SECOND, true}, {900 * US_PER_SECOND, false}};
	struct fixture_plan plan = {MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_NONE};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture_archive made;
		fixture.clock_offset_us = cases[i].offset_us;
		make(&plan, &made);
		fixture.clock_offset_us = 0;
		const char *path = made.path;
		expect_of(&path, 1, cases[i].good ? 0 : 1, VERIFY_WRONG, NULL, NULL);
		assert_int_equal(fixture_agrees(&fixture, made.path, NULL, NULL), cases[i].good);
	}
}

/* The event of the second segment claims a time before the timestamp of the first one. */
TEST_CASE(a_timestamp_that_passed_an_event_over_is_told)
{
	struct fixture_plan plan = {MODE_LIVE, 7, 6, 7, 5, false, 0, FAULT_OLD};
	struct fixture_archive made;
	make(&plan, &made);
	const char *path = made.path;
	expect_of(&path, 1, 0, VERIFY_WARNING, "", "not covered by the previous timestamp, 20");
}

/* Less than an hour, but later than another timestamp that was given in between. */
TEST_CASE(an_event_dated_back_behind_another_timestamp_is_told)
{
	static const char told[] = "events of 1 segments state a received_at before timestamps";
	static const struct {
		int64_t back_us;
		bool told;
	} cases[] = {{54 * 60 * US_PER_SECOND, true}, {0, false}};
	struct fixture_plan plan = {MODE_LIVE, 7, 6, 7, 5, false, 0, FAULT_NONE};
	struct fixture_archive made;
	struct verify_result result;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fixture_forget(&fixture);
		int64_t base_us = fixture.base_us;
		fixture.base_us = clock_now_us() - 10 * US_PER_SECOND - cases[i].back_us;
		make(&plan, &made);
		fixture.base_us = base_us;
		fixture_forget(&fixture);
		const char *path = made.path;
		verify(&path, 1, 0, &result);
		assert_int_equal(fixture_finds(&result, VERIFY_WARNING, "", told), cases[i].told);
		assert_true(result.longest_delay.between_us > result.longest_delay.received_at_us);
		assert_true(result.longest_delay.between_us <= result.longest_delay.gen_time_us);
		verify_result_free(&result);
	}
	/* For the very first round no earlier timestamp exists. */
	plan = (struct fixture_plan){MODE_LIVE, 7, 1, 3, 5, false, 0, FAULT_NONE};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t base_us = fixture.base_us;
		fixture.base_us = clock_now_us() - 10 * US_PER_SECOND - cases[i].back_us;
		make(&plan, &made);
		fixture.base_us = base_us;
		fixture_forget(&fixture);
		const char *path = made.path;
		verify(&path, 1, 0, &result);
		assert_int_equal(
			fixture_finds(&result, VERIFY_WARNING, "seals/seals-000001.ndjson.gz line 1",
		                  "the segment refers to no earlier timestamp, like the first"),
			cases[i].told);
		assert_int_equal(result.longest_delay.between_us, TIME_NONE);
		verify_result_free(&result);
	}
}

/* Without it a segment could have been made at any time before its own timestamp. */
TEST_CASE(the_timestamp_before_cannot_be_left_out)
{
	struct fixture_plan plan = {MODE_LIVE, 7, 6, 7, 5, false, 0, FAULT_ROUND_LEFT_OUT};
	struct fixture_archive made;
	struct verify_result result;
	make(&plan, &made);
	const char *path = made.path;
	expect_of(&path, 1, 1, VERIFY_WRONG,
	          "seals/seals-000001.ndjson.gz line 1 member seal.previous_token_hash",
	          "the archive does not contain the previous round");
	assert_false(fixture_agrees(&fixture, made.path, NULL, NULL));
	fixture_forget(&fixture);
	plan.fault = FAULT_NO_TOKEN_BEFORE;
	make(&plan, &made);
	fixture_forget(&fixture);
	path = made.path;
	verify(&path, 1, 2, &result);
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "seals/seals-000001.ndjson.gz line 1",
	                       "although it is not the first segment of its chain");
	assert_int_equal(result.unchecked, 1);
	verify_result_free(&result);
	/* A service knows its own seals and must be able to issue those of its first round. */
	static const struct verify_options own = {.own_seals = true};
	assert_int_equal(verify_paths(&path, 1, &fixture.roots, &own, &result, NULL), 0);
	assert_int_equal(verify_exit_code(&result), 0);
	fixture_expect_finding(&result, VERIFY_WARNING, "seals/seals-000001.ndjson.gz line 1",
	                       "although it is not the first segment of its chain");
	verify_result_free(&result);
	assert_false(fixture_agrees(&fixture, made.path, NULL, NULL));
}

TEST_CASE(the_longest_delay_is_reported)
{
	struct fixture_plan plan = {MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_NONE};
	struct fixture_archive made;
	struct verify_result result;
	make(&plan, &made);
	const char *path = made.path;
	verify(&path, 1, 0, &result);
	assert_int_equal(result.longest_delay.received_at_us,
	                 fixture.base_us + 10 * result.longest_delay.sequence);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	verify_print(&result, true, out);
	fclose(out);
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct json *json;
	int64_t delay_us;
	assert_int_equal(json_parse(&arena, slice_make(text, size - 1), NULL, &json, NULL), 0);
	assert_true(json_get_integer(json_member(json, "longest_delay"), "microseconds", &delay_us));
	assert_int_equal(delay_us,
	                 result.longest_delay.gen_time_us - result.longest_delay.received_at_us);
	assert_true(delay_us >= 100 * US_PER_SECOND);
	free(text);
	verify_result_free(&result);
}

/* An authority of the test with a wrong clock; the chain is sealed again. */
struct clock_authority {
	struct forger_holder root, holder;
	struct forger_authority authority;
	struct buf pem; /* its root together with the others; freed by the caller */
};

static struct trust_roots own_roots(const struct clock_authority *own)
{
	return (struct trust_roots){.signers = fixture.roots.signers,
	                            .timestamps = buf_slice(&own->pem)};
}

static void begin_own_time(struct clock_authority *own, int64_t offset_us)
{
	static const struct forger_plan plans[] = {
		{.name = "Root", .extensions = {"basicConstraints=critical,CA:TRUE"}},
		{.name = "Clock", .extensions = {"extendedKeyUsage=critical,timeStamping"}},
	};
	forger_issue(&plans[0], NULL, &own->root);
	forger_issue(&plans[1], &own->root, &own->holder);
	own->authority = (struct forger_authority){
		.holder = &own->holder, .offset_us = offset_us, .accuracy_seconds = 1};
	buf_init(&own->pem, 65536);
	buf_add_slice(&own->pem, fixture.roots.timestamps);
	forger_root(&own->root, &own->pem);
	fixture_forget(&fixture);
	fixture.stamp = forger_stamp;
	fixture.stamp_context = &own->authority;
}

static void end_own_time(struct clock_authority *own)
{
	fixture.stamp = NULL;
	fixture_forget(&fixture);
	forger_free(&own->holder);
	forger_free(&own->root);
}

TEST_CASE(coarse_timestamps_are_told)
{
	struct fixture_plan plan = {MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_NONE};
	struct clock_authority own;
	struct fixture_archive made;
	struct verify_result result;
	begin_own_time(&own, 0);
	own.authority.accuracy_seconds = 60;
	make(&plan, &made);
	end_own_time(&own);
	const char *path = made.path;
	struct trust_roots roots = own_roots(&own);
	fixture_verify(&path, 1, &roots, &result);
	assert_int_equal(verify_exit_code(&result), 0);
	fixture_expect_finding(&result, VERIFY_WARNING, "", "3 timestamps are coarse");
	fixture_expect_finding(&result, VERIFY_WARNING, "", "of up to 60 s only");
	verify_result_free(&result);
	buf_free(&own.pem);
}

TEST_CASE(an_archive_signed_long_after_it_was_issued_is_told)
{
	struct fixture_plan plan = {MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_NONE};
	struct clock_authority own;
	struct fixture_archive made;
	struct verify_result result;
	const int64_t past_us = 3 * 3600 * US_PER_SECOND;
	begin_own_time(&own, -past_us);
	fixture.base_us -= past_us;
	make(&plan, &made); /* seals the chain */
	own.authority.offset_us = 0;
	fixture.clock_offset_us = -past_us;
	make(&plan, &made);
	fixture.clock_offset_us = 0;
	fixture.base_us += past_us;
	end_own_time(&own);
	const char *path = made.path;
	struct trust_roots roots = own_roots(&own);
	fixture_verify(&path, 1, &roots, &result);
	assert_int_equal(verify_exit_code(&result), 0);
	fixture_expect_finding(&result, VERIFY_WARNING, "META-INF/signature001.p7s", "3 h later");
	verify_result_free(&result);
	buf_free(&own.pem);
}

/* The archive does not show the round of the previous segment. */
TEST_CASE(a_timestamp_before_a_range_by_time_proves_nothing_of_its_begin)
{
	struct fixture_plan plan = {MODE_LIVE, 10, 6, 10, 5, false, 0, FAULT_BY_TIME};
	struct clock_authority own;
	struct fixture_archive made;
	struct verify_result result;
	begin_own_time(&own, -200 * US_PER_SECOND); /* all its timestamps are before the range */
	make(&plan, &made);
	end_own_time(&own);
	const char *path = made.path;
	struct trust_roots roots = own_roots(&own);
	fixture_verify(&path, 1, &roots, &result);
	assert_int_equal(verify_exit_code(&result), 0);
	fixture_expect_finding(&result, VERIFY_WARNING, "",
	                       "before the first one and after the last one");
	verify_result_free(&result);
	buf_free(&own.pem);
}

TEST_CASE(an_event_is_of_its_configurations_modality)
{
	struct fixture_plan plan = {MODE_TEST, 4, 1, 4, 0, true, 0, FAULT_NONE};
	struct fixture_archive made;
	make(&plan, &made);
	const char *path = made.path;
	expect_of(&path, 1, 0, VERIFY_WRONG, NULL, NULL);
	plan.fault = FAULT_MODALITY;
	make(&plan, &made);
	path = made.path;
	expect_of(&path, 1, 1, VERIFY_WRONG, "sequence 1 member modality",
	          "differs from the modality in the config");
}

TEST_CASE(a_token_of_another_round_is_refused)
{
	static const struct expectation replay = {
		FAULT_ROUND_REPLAY, 1, "rounds/rounds-000001.ndjson.gz line 2",
		"the imprint of the timestamp is not that of the data"};
	expect_one(&replay);
}

/* ---- several archives of one channel ---- */

struct pair {
	struct fixture_plan first, second;
	const char *what; /* NULL: they agree */
	const char *where;
};

static void expect_pair(const struct pair *pair)
{
	struct fixture_archive first, second;
	struct verify_result result;
	make(&pair->first, &first);
	make(&pair->second, &second);
	const char *paths[] = {first.path, second.path};
	for (int order = 0; order < 2; order++) {
		verify(paths, 2, pair->what ? 1 : 0, &result);
		if (pair->what)
			fixture_expect_finding(&result, VERIFY_WRONG, pair->where, pair->what);
		verify_result_free(&result);
		paths[0] = second.path;
		paths[1] = first.path;
	}
	for (int i = 0; i < 2; i++) { /* each one is valid on its own */
		expect_of(&paths[i], 1, 0, VERIFY_WRONG, NULL, NULL);
		assert_true(fixture_agrees(&fixture, paths[i], NULL, NULL));
	}
	assert_int_equal(fixture_agrees(&fixture, paths[0], NULL, paths[1]), !pair->what);
}

#define LIVE(first, last, fault)                                                                   \
	{                                                                                              \
		MODE_LIVE, 20, first, last, 5, false, 0, fault                                             \
	}
#define TEST(first, last, fault)                                                                   \
	{                                                                                              \
		MODE_TEST, 20, first, last, 0, false, 0, fault                                             \
	}

TEST_CASE(archives_of_one_history_agree)
{
	static const struct pair pairs[] = {
		{LIVE(1, 20, FAULT_NONE), LIVE(1, 20, FAULT_NONE), NULL, NULL},
		{LIVE(1, 12, FAULT_NONE), LIVE(8, 20, FAULT_NONE), NULL, NULL},
		{LIVE(1, 20, FAULT_NONE), LIVE(7, 9, FAULT_NONE), NULL, NULL},
		{LIVE(1, 5, FAULT_NONE), LIVE(6, 10, FAULT_NONE), NULL, NULL},
		{LIVE(1, 3, FAULT_NONE), LIVE(4, 5, FAULT_NONE), NULL, NULL},
		{LIVE(1, 3, FAULT_NONE), LIVE(17, 18, FAULT_NONE), NULL, NULL},
		{TEST(1, 12, FAULT_NONE), TEST(8, 20, FAULT_NONE), NULL, NULL},
		{TEST(1, 12, FAULT_NONE), TEST(13, 20, FAULT_NONE), NULL, NULL},
		{TEST(1, 12, FAULT_NONE), LIVE(1, 12, FAULT_NONE), NULL, NULL}, /* two chains */
	};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		expect_pair(&pairs[i]);
}

TEST_CASE(a_fork_does_not_pass)
{
	static const struct pair pairs[] = {
		{LIVE(1, 20, FAULT_NONE), LIVE(1, 20, FAULT_FORK), "different histories", ""},
		{LIVE(1, 12, FAULT_NONE), LIVE(8, 20, FAULT_FORK), "different histories", ""},
		{LIVE(6, 9, FAULT_NONE), LIVE(9, 12, FAULT_FORK), "different histories", ""},
		/* The events of one are only leaves, or only the preceding hash, in the other. */
		{LIVE(1, 1, FAULT_NONE), LIVE(3, 4, FAULT_FORK), "different histories", ""},
		{LIVE(1, 5, FAULT_NONE), LIVE(6, 10, FAULT_FORK), "different histories", ""},
		{LIVE(1, 7, FAULT_NONE), LIVE(11, 20, FAULT_FORK), "different histories", ""},
		{TEST(1, 12, FAULT_NONE), TEST(8, 20, FAULT_FORK), "different histories", ""},
		{TEST(1, 12, FAULT_NONE), TEST(13, 20, FAULT_FORK), "different histories", ""},
		{LIVE(1, 20, FAULT_NONE), LIVE(1, 20, FAULT_FORK_SEAL), "different seals of event", ""},
		{LIVE(1, 7, FAULT_NONE), LIVE(11, 20, FAULT_FORK_SEAL), "different seals of event", ""},
		{TEST(1, 3, FAULT_NONE), TEST(11, 12, FAULT_FORK_GENESIS), "contains a different document",
	     "genesis.json"},
		{TEST(11, 12, FAULT_NONE), TEST(18, 19, FAULT_FORK_CONFIG), "contains a different document",
	     "config/config-000002.json"},
	};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		expect_pair(&pairs[i]);
}

/* Archives without a common event may belong to two histories, each valid on its own. */
TEST_CASE(archives_without_a_common_event_are_told)
{
	static const char what[] = "of one history of their channel";
	const struct {
		struct fixture_plan first, second;
		bool told;
	} cases[] = {
		{LIVE(1, 3, FAULT_NONE), LIVE(17, 18, FAULT_NONE), true},
		{LIVE(1, 3, FAULT_NONE), LIVE(17, 18, FAULT_FORK), true}, /* it does */
		{LIVE(1, 5, FAULT_NONE), LIVE(6, 10, FAULT_NONE), false},
		{LIVE(1, 3, FAULT_NONE), LIVE(5, 5, FAULT_NONE),
	     false}, /* through the leaves of their segment */
		{TEST(1, 3, FAULT_NONE), TEST(4, 5, FAULT_NONE), false},
		{TEST(1, 3, FAULT_NONE), TEST(5, 5, FAULT_NONE), true},
		{TEST(1, 3, FAULT_NONE), LIVE(17, 18, FAULT_NONE), false},
	};
	struct fixture_archive first, second, between;
	struct verify_result result;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		make(&cases[i].first, &first);
		make(&cases[i].second, &second);
		const char *paths[] = {second.path, first.path};
		verify(paths, 2, 0, &result);
		assert_int_equal(fixture_finds(&result, VERIFY_WARNING, "", what), cases[i].told);
		verify_result_free(&result);
	}
	struct fixture_plan plans[] = {LIVE(1, 3, FAULT_NONE), LIVE(17, 18, FAULT_NONE),
	                               LIVE(4, 16, FAULT_NONE)};
	make(&plans[0], &first);
	make(&plans[1], &second);
	make(&plans[2], &between);
	const char *paths[] = {first.path, second.path, between.path};
	expect_of(paths, 2, 0, VERIFY_WARNING, "", "an archive of events 5 to 16, or");
	verify(paths, 3, 0, &result);
	assert_false(fixture_finds(&result, VERIFY_WARNING, "", what));
	verify_result_free(&result);
}

/* The same seals with a second timestamp. */
TEST_CASE(an_event_has_one_timestamp)
{
	struct fixture_plan plan = LIVE(1, 20, FAULT_NONE);
	struct fixture_archive first, second;
	struct verify_result result;
	plan.segment_size = 20;
	make(&plan, &first);
	fixture_forget(&fixture);
	make(&plan, &second);
	const char *paths[] = {first.path, second.path};
	verify(paths, 2, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "different timestamps of event");
	assert_false(fixture_agrees(&fixture, paths[0], NULL, paths[1]));
	verify_result_free(&result);
}

TEST_CASE(a_certification_has_one_archive)
{
	struct fixture_plan plan = LIVE(1, 20, FAULT_NONE);
	struct fixture_archive first, second;
	struct verify_result result;
	make(&plan, &first);
	assert_int_equal(fixture_make(&fixture, "namesake", &plan, &second), 0);
	const char *paths[] = {first.path, second.path};
	verify(paths, 2, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "different archives of one certification");
	assert_false(fixture_agrees(&fixture, paths[0], NULL, paths[1]));
	verify_result_free(&result);
	paths[1] = first.path;
	expect_of(paths, 2, 0, VERIFY_WRONG, NULL, NULL);
}

/* The seal documents of all segments before the archive. */
TEST_CASE(the_history_in_an_archive_is_checked)
{
	static const char document[] = "history/history-000001.ndjson.gz line ";
	static const char seal[] = "seals/seals-000001.ndjson.gz line 1 member seal.previous_seal_hash";
	static const struct {
		enum fixture_history history;
		const char *where, *what; /* NULL: it is good */
	} cases[] = {
		{HISTORY_GOOD, NULL, NULL},
		{HISTORY_LATE, document, "does not begin with the first event of the chain"},
		{HISTORY_GAP, document, "events 11 to 15 does not continue"},
		{HISTORY_SHORT, seal, "does not lead to this segment"},
		{HISTORY_LONG, seal, "does not lead to this segment"},
		{HISTORY_FOREIGN, document, "is of another chain"},
		{HISTORY_TIME, seal, "does not lead to this segment"},
		{HISTORY_START, "line 1 member chain_hash_before",
	     "the value is not the chain hash before the segment"},
		{HISTORY_JUNK, document, "not a seal document"},
	};
	struct fixture_plan plan = LIVE(17, 18, FAULT_NONE);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture_archive made;
		struct verify_result result;
		fixture.history = cases[i].history;
		make(&plan, &made);
		fixture.history = HISTORY_NONE;
		const char *path = made.path;
		verify(&path, 1, cases[i].what ? 1 : 0, &result);
		if (cases[i].what)
			fixture_expect_finding(&result, VERIFY_WRONG, cases[i].where, cases[i].what);
		assert_int_equal(result.checked.bridge_segments > 0, cases[i].history != HISTORY_JUNK);
		assert_null(result.histories);
		verify_result_free(&result);
		assert_int_equal(fixture_agrees(&fixture, made.path, NULL, NULL), !cases[i].what);
	}
}

/* It connects the archive with every earlier one. */
TEST_CASE(the_history_in_an_archive_connects_it)
{
	struct fixture_plan plans[] = {LIVE(1, 3, FAULT_NONE), LIVE(17, 18, FAULT_NONE),
	                               LIVE(6, 9, FAULT_FORK)};
	struct fixture_archive first, second, fork;
	struct verify_result result;
	make(&plans[2], &fork);
	make(&plans[0], &first);
	fixture.history = HISTORY_GOOD;
	make(&plans[1], &second);
	fixture.history = HISTORY_NONE;
	const char *paths[] = {second.path, first.path};
	verify(paths, 2, 0, &result);
	assert_false(fixture_finds(&result, VERIFY_WARNING, "", "of one history of their channel"));
	assert_non_null(result.histories);
	assert_true(result.histories->is_one && result.histories->first_sequence == 1);
	assert_int_equal(result.histories->archives, 2);
	verify_result_free(&result);
	assert_true(fixture_agrees(&fixture, first.path, NULL, second.path));
	paths[1] = fork.path;
	verify(paths, 2, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "different seals of event");
	assert_false(result.histories->is_one);
	verify_result_free(&result);
	assert_false(fixture_agrees(&fixture, fork.path, NULL, second.path));
}

/* The events around a range by time, when other archives contain them. */
TEST_CASE(neighbours_show_whether_a_range_is_whole)
{
	static const char open[] = "no event is missing";
	struct fixture_plan by_time = TEST(6, 9, FAULT_BY_TIME),
						too_early = TEST(6, 9, FAULT_FROM_EARLY);
	struct fixture_plan before = TEST(1, 5, FAULT_NONE), after = TEST(10, 12, FAULT_NONE);
	struct fixture_archive range, cut, left, right;
	struct verify_result result;
	make(&by_time, &range);
	make(&too_early, &cut);
	make(&before, &left);
	make(&after, &right);
	const char *paths[] = {range.path, left.path, right.path};
	expect_of(paths, 1, 0, VERIFY_WARNING, "", "before the first one and after the last one");
	expect_of(paths, 2, 0, VERIFY_WARNING, "", "is missing after the last one");
	verify(paths, 3, 0, &result);
	assert_false(fixture_finds(&result, VERIFY_WARNING, "", open));
	verify_result_free(&result);
	paths[0] = cut.path;
	expect_of(paths, 2, 1, VERIFY_WRONG, "manifest.json", "event 5 in ");
}

TEST_MAIN(set_up, fixture_tear_down)
