/* Bounds: the last number of each kind works completely, and the next one is refused without any
 * change. Runs on a SQLite file in a new directory, or on a database of a server:
 *     contract-bounds [postgresql://…] */
#include <inttypes.h>
#include <pthread.h>

#include "testing.h"
#include "registering.h"
#include "sample.h"
#include "store/accounts/accounts.h"
#include "store/certifications/certifications.h"
#include "store/nodes/store_state.h"
#include "store/store_internal.h"

#define NOW INT64_C(1767268800000000) /* 2026-01-01T12:00:00Z */
#define CREDITS 20

/* Counts statements; db_query is wrapped by the linker. */
static int statements;
struct db_query *__real_db_query(struct db_connection *connection, const char *literal_sql);
struct db_query *__wrap_db_query(struct db_connection *connection, const char *literal_sql);
struct db_query *__wrap_db_query(struct db_connection *connection, const char *literal_sql)
{
	statements++;
	return __real_db_query(connection, literal_sql);
}

static const char *server_url; /* postgresql://…; NULL: a SQLite file */

struct fixture {
	struct sample sample;
	struct arena arena;
};
static struct error error;

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	assert_non_null(fixture);
	arena_init(&fixture->arena, (size_t)16 << 20);
	sample_create_store(&fixture->sample, server_url);
	fixture->sample.now_us = NOW;
	sample_fill(&fixture->sample, fixture->sample.store, MODALITY_HASH_ONLY, CREDITS);
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

__attribute__((format(printf, 2, 3))) static void change(struct fixture *fixture,
                                                         const char *format, ...)
{
	char sql[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(sql, sizeof sql, format, arguments);
	va_end(arguments);
	sample_change(&fixture->sample, sql);
}

static void expect_full(int result, const char *told)
{
	assert_int_equal(result, ERR_FULL);
	assert_int_equal(error.code, ERR_FULL);
	assert_non_null(strstr(error.english, told));
	assert_non_null(strstr(error.spanish, told));
	error_clear(&error);
}

static int64_t balance_of(const struct fixture *fixture)
{
	struct balance balance;
	assert_int_equal(
		store_get_balance(fixture->sample.store, fixture->sample.account, &balance, NULL), OK);
	return balance.balance;
}

static struct bound_use use_of(const struct fixture *fixture, enum bound bound)
{
	struct bound_use uses[BOUND_COUNT];
	assert_int_equal(store_read_bounds(fixture->sample.store, NOW, 0, uses, &error), OK);
	return uses[bound];
}

/* ---- channels ---- */

static int create_channel(struct fixture *fixture, char channel_id[ID_SIZE])
{
	const struct config_facts config = {
		.modality = MODALITY_HASH_ONLY, .name = "One more", .declarant = "Sample & Co"};
	return store_create_channel(fixture->sample.store, slice_of(fixture->sample.account_id),
	                            &config, 0, NOW, channel_id, &error);
}

/* Gives the channel another number, as if that many channels had been created before. */
static void renumber(struct fixture *fixture, int64_t channel)
{
	struct sample *sample = &fixture->sample;
	change(fixture, "UPDATE channels SET channel = %" PRId64 " WHERE channel = %" PRId64, channel,
	       sample->channel);
	change(fixture, "UPDATE channel_configs SET channel = %" PRId64 " WHERE channel = %" PRId64,
	       channel, sample->channel);
	change(fixture, "UPDATE chains SET chain = %" PRId64 " WHERE chain = %" PRId64, channel * 2,
	       sample->live_chain);
	change(fixture, "UPDATE chains SET chain = %" PRId64 " WHERE chain = %" PRId64, channel * 2 + 1,
	       sample->test_chain);
	sample->channel = channel;
	sample->live_chain = channel * 2;
	sample->test_chain = channel * 2 + 1;
}

static struct registration item_of(struct fixture *fixture, enum mode mode, const char *ref)
{
	struct sample *sample = &fixture->sample;
	struct registration item = {.account = sample->account,
	                            .channel = sample->channel,
	                            .chain = chain_number(sample->channel, mode),
	                            .key = 1,
	                            .declaration = {.modality = MODALITY_HASH_ONLY,
	                                            .client_ref = slice_of(ref),
	                                            .occurred_at_us = TIME_NONE},
	                            .content_bytes = -1,
	                            .arena = &fixture->arena};
	memset(item.declaration.hash, 9, SHA256_SIZE);
	return item;
}

static struct registration submit(struct fixture *fixture, enum mode mode, const char *ref)
{
	struct registration item = item_of(fixture, mode, ref), *items[] = {&item};
	assert_int_equal(register_items(fixture->sample.store, items, 1, NOW, &error), OK);
	return item;
}

static int note_sequence(void *context, const struct event *event)
{
	int64_t *list = context;
	list[++list[0]] = event->sequence;
	return 0;
}

/* Reads the newest two events of the chain in both orders. */
static void assert_listed(struct fixture *fixture, enum mode mode, int64_t first, int64_t last)
{
	for (int order = ORDER_ASCENDING; order <= ORDER_DESCENDING; order++) {
		int64_t found[8] = {0};
		/* A very large number of events before these may be missing. */
		struct event_filter filter = {.status = -1,
		                              .seq_from = order == ORDER_ASCENDING ? first : 0,
		                              .from_us = TIME_NONE,
		                              .to_us = TIME_NONE,
		                              .order = (enum list_order)order};
		assert_int_equal(store_list_events(fixture->sample.store, fixture->sample.account,
		                                   chain_number(fixture->sample.channel, mode), &filter, 0,
		                                   false, note_sequence, found, &error),
		                 OK);
		assert_int_equal(found[0], last - first + 1);
		assert_int_equal(found[1], order == ORDER_ASCENDING ? first : last);
		assert_int_equal(found[found[0]], order == ORDER_ASCENDING ? last : first);
	}
}

static void assert_registers_once(struct fixture *fixture, enum mode mode)
{
	struct registration first = submit(fixture, mode, "a"), second = submit(fixture, mode, "b");
	assert_int_equal(first.result, OK);
	assert_int_equal(first.event->sequence, 1);
	assert_int_equal(second.event->sequence, 2);
	struct registration again = submit(fixture, mode, "a");
	assert_true(again.replayed);
	assert_int_equal(again.event->sequence, 1);
	assert_listed(fixture, mode, 1, 2);
}

TEST_CASE_ON(the_last_channel_works_and_is_the_last, struct fixture *fixture)
{
	char channel_id[ID_SIZE] = "";
	renumber(fixture, CHANNEL_MAX - 1);
	sample_add_channel(&fixture->sample, MODALITY_HASH_ONLY);
	assert_int_equal(fixture->sample.channel, CHANNEL_MAX);
	assert_int_equal(fixture->sample.test_chain, CHAIN_MAX);
	assert_registers_once(fixture, MODE_LIVE);
	assert_registers_once(fixture, MODE_TEST);
	assert_int_equal(balance_of(fixture), CREDITS - 2);
	sample_seal(&fixture->sample);
	assert_int_equal(use_of(fixture, BOUND_CHANNELS).used, CHANNEL_MAX);
	expect_full(create_channel(fixture, channel_id), "4194303");
	assert_string_equal(channel_id, "");
	assert_int_equal(use_of(fixture, BOUND_CHANNELS).used, CHANNEL_MAX);
	assert_int_equal(sample_check(&fixture->sample), 0);
}

/* As created by an older version. */
TEST_CASE_ON(a_channel_beyond_the_last_takes_no_events, struct fixture *fixture)
{
	renumber(fixture, CHANNEL_MAX + 1);
	for (int i = 0; i < 2; i++) {
		struct registration item = submit(fixture, MODE_LIVE, "a");
		registration_get_error(&item, &error);
		expect_full(item.result, "4194303");
	}
	assert_int_equal(balance_of(fixture), CREDITS);
}

/* ---- events ---- */

/* The earlier events do not exist, so only the newest can be read. */
static void a_full_chain_takes_no_events(struct fixture *fixture, enum mode mode)
{
	change(fixture, "UPDATE chains SET last_sequence = %" PRId64 " WHERE chain = %" PRId64,
	       EVENT_SEQUENCE_MAX - 2, chain_number(fixture->sample.channel, mode));
	int64_t before = balance_of(fixture);
	assert_int_equal(submit(fixture, mode, "a").event->sequence, EVENT_SEQUENCE_MAX - 1);
	struct registration last = submit(fixture, mode, "b");
	assert_int_equal(last.event->sequence, EVENT_SEQUENCE_MAX);
	for (int i = 0; i < 2; i++) {
		struct registration beyond = submit(fixture, mode, "c");
		registration_get_error(&beyond, &error);
		expect_full(beyond.result, "1099511627775");
	}
	struct registration again = submit(fixture, mode, "b");
	assert_true(again.replayed);
	assert_string_equal(again.event->event_id, last.event->event_id);
	assert_listed(fixture, mode, EVENT_SEQUENCE_MAX - 1, EVENT_SEQUENCE_MAX);
	assert_int_equal(balance_of(fixture), before - (mode == MODE_LIVE ? 2 : 0));
	struct bound_use use = use_of(fixture, BOUND_EVENTS);
	assert_int_equal(use.used, EVENT_SEQUENCE_MAX);
	assert_string_equal(use.about, fixture->sample.channel_id);
}

TEST_CASE(the_last_event_works_and_is_the_last)
{
	a_full_chain_takes_no_events(*state, MODE_LIVE);
}

/* Its number is the highest possible one. */
TEST_CASE_ON(the_last_event_of_the_last_chain_works, struct fixture *fixture)
{
	renumber(fixture, CHANNEL_MAX);
	a_full_chain_takes_no_events(fixture, MODE_TEST);
}

/* ---- configurations ---- */

static int configure(struct fixture *fixture, const char *name, int64_t *ret_version)
{
	const struct config_change to = {.name = name, .modality = -1};
	bool changed;
	return store_configure_channel(fixture->sample.store, slice_of(fixture->sample.channel_id), &to,
	                               NOW, ret_version, &changed, &error);
}

TEST_CASE_ON(the_last_configuration_works_and_is_the_last, struct fixture *fixture)
{
	int64_t version = 0;
	change(fixture, "UPDATE channel_configs SET version = %d", CONFIG_VERSION_MAX - 1);
	change(fixture, "UPDATE channels SET config_version = %d", CONFIG_VERSION_MAX - 1);
	assert_int_equal(configure(fixture, "Another", &version), OK);
	assert_int_equal(version, CONFIG_VERSION_MAX);
	assert_int_equal(submit(fixture, MODE_LIVE, "a").event->config_version, CONFIG_VERSION_MAX);
	expect_full(configure(fixture, "And another", &version), "100000");
	assert_int_equal(configure(fixture, "Another", &version), OK); /* no change */
	assert_int_equal(version, CONFIG_VERSION_MAX);
	struct bound_use use = use_of(fixture, BOUND_CONFIGS);
	assert_int_equal(use.used, CONFIG_VERSION_MAX);
	assert_string_equal(use.about, fixture->sample.channel_id);
}

/* ---- certifications ---- */

static struct certification asked(struct fixture *fixture, enum mode mode, int64_t now_us)
{
	const struct sample *sample = &fixture->sample;
	struct certification asked = {
		.account = sample->account,
		.channel = sample->channel,
		.chain = chain_number(sample->channel, mode),
		.key = 1,
		.mode = mode,
		.requested_at_us = now_us,
		.range = {.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = 1, .seq_to = 1},
		.first_sequence = 1,
		.last_sequence = 1,
		.config_versions = "[1]",
		.fee = mode == MODE_LIVE,
	};
	memcpy(asked.channel_id, sample->channel_id, ID_SIZE);
	return asked;
}

static int ask(struct fixture *fixture, struct certification *certification)
{
	int judged = store_check_certification(fixture->sample.store, 0, certification, &error);
	if (judged)
		expect_full(judged, "9999999");
	int result = store_accept_certification(fixture->sample.store, "SVC", 0, certification, &error);
	assert_int_equal(judged, result);
	return result;
}

TEST_CASE_ON(the_last_certification_of_a_year_works_and_is_the_last, struct fixture *fixture)
{
	sample_register(&fixture->sample, MODE_LIVE, 1);
	sample_register(&fixture->sample, MODE_TEST, 1);
	for (enum mode mode = MODE_LIVE; mode <= MODE_TEST; mode++) {
		struct certification last = asked(fixture, mode, NOW);
		struct certification beyond = last, other = last;
		sample_change(&fixture->sample, mode == MODE_LIVE ? "INSERT INTO certification_numbers"
		                                                    " VALUES (2026, 'live', 9999998)"
		                                                  : "INSERT INTO certification_numbers"
		                                                    " VALUES (2026, 'test', 9999998)");
		assert_int_equal(ask(fixture, &last), OK);
		assert_string_equal(last.certification_id,
		                    mode == MODE_LIVE ? "CERT-2026-9999999" : "CERT-TEST-2026-9999999");
		int64_t before = balance_of(fixture);
		for (int i = 0; i < 2; i++) {
			expect_full(ask(fixture, &beyond), "2027");
			assert_string_equal(beyond.certification_id, "");
		}
		assert_int_equal(balance_of(fixture), before);
		assert_int_equal(use_of(fixture, mode == MODE_LIVE ? BOUND_LIVE_CERTIFICATIONS
		                                                   : BOUND_TEST_CERTIFICATIONS)
		                     .used,
		                 CERTIFICATION_NUMBER_MAX);
		other.requested_at_us = NOW + 366 * US_PER_DAY;
		assert_int_equal(ask(fixture, &other), OK);
		assert_non_null(strstr(other.certification_id, "2027-0000001"));
	}
	assert_int_equal(sample_check(&fixture->sample), 0);
}

/* ---- limits of an account ---- */

static struct account_uses uses_of(struct fixture *fixture)
{
	struct account_uses uses;
	assert_int_equal(store_count_account_uses(fixture->sample.store,
	                                          slice_of(fixture->sample.account_id), NOW, &uses,
	                                          &error),
	                 OK);
	return uses;
}

static void set_bounds(struct fixture *fixture, struct account_bounds bounds)
{
	struct account_change wanted = ACCOUNT_UNCHANGED;
	wanted.bounds = bounds;
	assert_int_equal(store_change_account(fixture->sample.store,
	                                      slice_of(fixture->sample.account_id), &wanted, NOW,
	                                      &error),
	                 OK);
	struct account_record record;
	assert_int_equal(store_find_account(fixture->sample.store, slice_of(fixture->sample.account_id),
	                                    NOW, &fixture->arena, &record, &error),
	                 OK);
	assert_int_equal(record.bounds.rate, bounds.rate);
	assert_int_equal(record.bounds.channels, bounds.channels);
	assert_int_equal(record.bounds.keys, bounds.keys);
	assert_int_equal(record.bounds.certifications, bounds.certifications);
}

static int create_one_more(struct fixture *fixture, int64_t most)
{
	const struct config_facts config = {
		.modality = MODALITY_HASH_ONLY, .name = "One more", .declarant = "Sample & Co"};
	char channel_id[ID_SIZE];
	return store_create_channel(fixture->sample.store, slice_of(fixture->sample.account_id),
	                            &config, most, NOW, channel_id, &error);
}

TEST_CASE_ON(an_account_has_no_more_channels_than_it_may, struct fixture *fixture)
{
	assert_int_equal(create_one_more(fixture, 0), OK);
	expect_full(create_one_more(fixture, 2), "2");
	assert_int_equal(create_one_more(fixture, 3), OK);
	set_bounds(fixture, (struct account_bounds){.channels = 4});
	assert_int_equal(create_one_more(fixture, 1), OK); /* precedes the setting */
	expect_full(create_one_more(fixture, 0), "4");
	assert_int_equal(uses_of(fixture).channels, 4);
	set_bounds(fixture, (struct account_bounds){0});
	assert_int_equal(create_one_more(fixture, 0), OK);
	assert_int_equal(use_of(fixture, BOUND_CHANNELS).used, 5);
}

struct key_maker {
	struct fixture *fixture;
	int number;
	int64_t most;
	int result;
	char key_id[ID_SIZE];
};

static void *make_key(void *context)
{
	struct key_maker *maker = context;
	const struct sample *sample = &maker->fixture->sample;
	const struct sha256 hash = sha256_of(&maker->number, sizeof maker->number);
	struct error told = {0};
	maker->result = store_create_key(sample->store, slice_of(sample->channel_id),
	                                 maker->number % 2 ? MODE_LIVE : MODE_TEST, NULL, TIME_NONE,
	                                 &hash, "0000", maker->most, NOW, maker->key_id, &told);
	error_clear(&told);
	return NULL;
}

TEST_CASE_ON(an_account_has_no_more_keys_than_it_may, struct fixture *fixture)
{
	enum { MAKERS = 8, MOST = 3 };
	struct key_maker makers[MAKERS], *made = NULL;
	pthread_t threads[MAKERS];
	int64_t there = uses_of(fixture).keys;
	for (int i = 0; i < MAKERS; i++) {
		makers[i] = (struct key_maker){fixture, i, there + MOST, ERR_INTERNAL, ""};
		assert_int_equal(pthread_create(&threads[i], NULL, make_key, &makers[i]), 0);
	}
	int full = 0;
	for (int i = 0; i < MAKERS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		full += makers[i].result == ERR_FULL;
		if (makers[i].result == OK)
			made = &makers[i];
	}
	assert_int_equal(full, MAKERS - MOST);
	assert_int_equal(uses_of(fixture).keys, there + MOST);
	/* Revoked keys are not counted. */
	int64_t revoked_at_us;
	assert_non_null(made);
	assert_int_equal(store_revoke_key(fixture->sample.store, slice_of(made->key_id), NULL, NOW,
	                                  &revoked_at_us, &error),
	                 OK);
	assert_int_equal(uses_of(fixture).keys, there + MOST - 1);
	struct key_maker next = {fixture, 100, there + MOST, ERR_INTERNAL, ""};
	make_key(&next);
	assert_int_equal(next.result, OK);
	set_bounds(fixture, (struct account_bounds){.keys = 1});
	next.number = 101;
	next.most = 0;
	make_key(&next);
	assert_int_equal(next.result, ERR_FULL);
}

static int ask_on(struct fixture *fixture, struct certification *certification)
{
	struct error why = {0};
	int judged = store_check_certification(fixture->sample.store, 0, certification, &why);
	int result = store_accept_certification(fixture->sample.store, "SVC", 0, certification, &error);
	assert_int_equal(judged, result);
	assert_int_equal(why.retry_after_seconds, error.retry_after_seconds);
	error_clear(&why);
	return result;
}

TEST_CASE_ON(an_account_asks_for_no_more_certifications_a_day_than_it_may, struct fixture *fixture)
{
	sample_register(&fixture->sample, MODE_LIVE, 1);
	sample_register(&fixture->sample, MODE_TEST, 1);
	for (int i = 0; i < 2; i++) {
		struct certification live = asked(fixture, MODE_LIVE, NOW);
		live.daily_max = 2;
		assert_int_equal(ask_on(fixture, &live), OK);
	}
	int64_t before = balance_of(fixture);
	struct certification beyond = asked(fixture, MODE_LIVE, NOW + 1);
	beyond.daily_max = 2;
	assert_int_equal(ask_on(fixture, &beyond), ERR_RATE_LIMITED);
	assert_int_equal(error.retry_after_seconds, 12 * 3600); /* NOW is noon */
	assert_non_null(strstr(error.english, "its daily limit is 2"));
	error_clear(&error);
	error = (struct error){0};
	assert_int_equal(balance_of(fixture), before);
	assert_string_equal(beyond.certification_id, "");
	assert_int_equal(uses_of(fixture).certifications, 2);

	struct certification test = asked(fixture, MODE_TEST, NOW);
	test.daily_max = 2;
	assert_int_equal(ask_on(fixture, &test), OK);
	assert_int_equal(uses_of(fixture).certifications, 2);
	set_bounds(fixture, (struct account_bounds){.certifications = 3});
	assert_int_equal(ask_on(fixture, &beyond), OK);
	struct certification tomorrow = asked(fixture, MODE_LIVE, NOW + US_PER_DAY / 2);
	tomorrow.daily_max = 2;
	assert_int_equal(ask_on(fixture, &tomorrow), OK);
	assert_int_equal(sample_check(&fixture->sample), 0);
}

#define NUMBERS "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"

static int create_limit(struct fixture *fixture)
{
	char id[ID_SIZE];
	return store_create_limit(fixture->sample.store, slice_of(fixture->sample.channel_id),
	                          slice_of(""), PERIOD_DAY, 2, false, NOW, id, &error);
}

/* Other accounts register in the same transaction and wait for it. */
TEST_CASE_ON(an_account_has_no_more_limits_than_a_batch_reads_quickly, struct fixture *fixture)
{
	const struct sample *sample = &fixture->sample;
	statements = 0;
	submit(fixture, MODE_LIVE, "a");
	const int without = statements;
	change(fixture,
	       "INSERT INTO consumption_limits (account, limit_id, channel, key, period, max_events,"
	       " action, created_at) " NUMBERS " SELECT %" PRId64 ", 'lim_' || i, %" PRId64
	       ", CASE WHEN i %% 2 = 0 THEN i + 10 END, CASE WHEN i %% 3 = 0 THEN 'day' ELSE 'month'"
	       " END, 9, 'warn', 0 FROM n",
	       LIMITS_MAX - 1, sample->account, sample->channel);
	assert_int_equal(create_limit(fixture), OK);
	assert_int_equal(create_limit(fixture), ERR_REFUSED);
	assert_non_null(strstr(error.english, "1000 consumption limits"));
	assert_non_null(strstr(error.spanish, "1000 límites"));
	error_clear(&error);
	statements = 0;
	submit(fixture, MODE_LIVE, "b");
	/* The limits, the usage of a day and of a month, and one limit that is reached. */
	assert_in_range(statements, without + 3, without + 10);
}

TEST_CASE_ON(an_account_has_no_more_thresholds_than_a_batch_reads_quickly, struct fixture *fixture)
{
	char id[ID_SIZE];
	const struct slice account = slice_of(fixture->sample.account_id);
	change(fixture,
	       "INSERT INTO balance_thresholds (account, threshold_id, credits, armed) " NUMBERS
	       " SELECT %" PRId64 ", 'thr_' || i, 1000 + i, 0 FROM n",
	       THRESHOLDS_MAX - 1, fixture->sample.account);
	assert_int_equal(store_create_threshold(fixture->sample.store, account, 1, id, &error), OK);
	assert_int_equal(store_create_threshold(fixture->sample.store, account, 2, id, &error),
	                 ERR_REFUSED);
	assert_non_null(strstr(error.english, "100 thresholds"));
	assert_non_null(strstr(error.spanish, "100 umbrales"));
	error_clear(&error);
}

TEST_CASE_ON(what_is_used_is_read_of_an_empty_store, struct fixture *fixture)
{
	assert_int_equal(use_of(fixture, BOUND_CHANNELS).used, 1);
	assert_int_equal(use_of(fixture, BOUND_EVENTS).used, 0);
	assert_int_equal(use_of(fixture, BOUND_CONFIGS).used, 1);
	assert_int_equal(use_of(fixture, BOUND_LIVE_CERTIFICATIONS).used, 0);
	assert_int_equal(use_of(fixture, BOUND_TEST_CERTIFICATIONS).used, 0);
	assert_int_equal(use_of(fixture, BOUND_SIGNERS).used, 0);
	assert_int_equal(use_of(fixture, BOUND_TIMESTAMP_ROOTS).used, 0);
}

int main(int count, char **arguments)
{
	if (count > 1)
		server_url = arguments[1];
	return tests_run(NULL, NULL, set_up, tear_down);
}
