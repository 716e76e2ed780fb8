/* Administration of accounts, credits, channels, keys, limits and thresholds. */
#include "testing.h"
#include "sample.h"
#include "db/db.h"
#include "store/store_internal.h"

struct fixture {
	struct sample sample;
	struct arena arena;
	struct error error;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	arena_init(&fixture->arena, (size_t)16 << 20);
	sample_open(&fixture->sample, MODALITY_CONTENT, 5);
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

static int64_t count(struct fixture *fixture, const char *sql)
{
	struct db_connection *reader = db_take_reader(fixture->sample.store->db);
	struct db_query *query = db_query(reader, sql);
	assert_true(db_step(query));
	int64_t value = db_integer(query, 0);
	assert_int_equal(db_end(query, NULL), OK);
	db_give(reader);
	return value;
}

static struct account_record account_of(struct fixture *fixture)
{
	struct account_record record;
	assert_int_equal(store_find_account(fixture->sample.store, slice_of(fixture->sample.account_id),
	                                    fixture->sample.now_us, &fixture->arena, &record,
	                                    &fixture->error),
	                 OK);
	return record;
}

static int move(struct fixture *fixture, int64_t credits, const char *kind,
                struct credit_outcome *outcome)
{
	struct credit_movement movement = {credits, kind, "a reason"};
	return store_move_credits(fixture->sample.store, slice_of(fixture->sample.account_id),
	                          &movement, fixture->sample.now_us, outcome, &fixture->error);
}

TEST_CASE_ON(test_account_begins_and_changes, struct fixture *fixture)
{
	struct account_record record = account_of(fixture);
	assert_int_equal(record.balance, 5);
	assert_int_equal(record.unpaid_limit, 100);
	assert_null(record.email);
	assert_false(record.suspended || record.disabled);

	struct account_change change = ACCOUNT_UNCHANGED;
	change.email = "owner@example.org";
	change.language = LANGUAGE_SPANISH;
	change.rate_live = 7;
	change.suspended = 1;
	assert_int_equal(store_change_account(fixture->sample.store,
	                                      slice_of(fixture->sample.account_id), &change,
	                                      fixture->sample.now_us, NULL),
	                 OK);
	record = account_of(fixture);
	assert_string_equal(record.name, "Sample");
	assert_string_equal(record.email, "owner@example.org");
	assert_int_equal(record.language, LANGUAGE_SPANISH);
	assert_int_equal(record.rate_live, 7);
	assert_true(record.suspended);
	assert_int_equal(record.unpaid_limit, 100);

	change = ACCOUNT_UNCHANGED;
	change.email = "";
	change.rate_live = 0;
	change.unpaid_limit = 0;
	assert_int_equal(store_change_account(fixture->sample.store,
	                                      slice_of(fixture->sample.account_id), &change,
	                                      fixture->sample.now_us, NULL),
	                 OK);
	record = account_of(fixture);
	assert_null(record.email);
	assert_int_equal(record.rate_live, 0);
	assert_int_equal(record.unpaid_limit, 0);
	assert_true(record.suspended);
}

TEST_CASE_ON(test_enabling_counts_as_activity, struct fixture *fixture)
{
	struct account_change change = ACCOUNT_UNCHANGED;
	int64_t later_us = fixture->sample.now_us + 400 * US_PER_DAY;
	change.disabled = 1;
	struct slice id = slice_of(fixture->sample.account_id);
	assert_int_equal(store_change_account(fixture->sample.store, id, &change, later_us, NULL), OK);
	int64_t before_us = account_of(fixture).active_at_us;
	assert_true(account_of(fixture).disabled);
	change.disabled = 0;
	assert_int_equal(store_change_account(fixture->sample.store, id, &change, later_us, NULL), OK);
	assert_false(account_of(fixture).disabled);
	assert_true(account_of(fixture).active_at_us >= before_us + 399 * US_PER_DAY);
}

TEST_CASE_ON(test_unknown_things_are_named, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct error *error = &fixture->error;
	struct account_record account;
	struct channel_record channel;
	int64_t revoked;
	struct slice id = slice_of("xyz_1");
	assert_int_equal(store_find_account(store, id, 0, &fixture->arena, &account, error),
	                 ERR_NOT_FOUND);
	assert_string_equal(error->english, "There is no account 'xyz_1'.");
	assert_int_equal(store_find_channel(store, id, &fixture->arena, &channel, error),
	                 ERR_NOT_FOUND);
	assert_string_equal(error->english, "There is no channel 'xyz_1'.");
	assert_int_equal(store_revoke_key(store, id, NULL, 1, &revoked, error), ERR_NOT_FOUND);
	assert_int_equal(store_delete_limit(store, id, error), ERR_NOT_FOUND);
	assert_int_equal(store_delete_threshold(store, id, error), ERR_NOT_FOUND);
	struct credit_movement movement = {1, "adjustment", NULL};
	struct credit_outcome outcome;
	assert_int_equal(store_move_credits(store, id, &movement, 1, &outcome, error), ERR_NOT_FOUND);
}

TEST_CASE_ON(test_lists_are_paged, struct fixture *fixture)
{
	struct account_record given = {.name = "Another"};
	char id[ID_SIZE];
	for (int i = 0; i < 4; i++)
		assert_int_equal(store_create_account(fixture->sample.store, &given, 0,
		                                      fixture->sample.now_us, id, NULL),
		                 OK);
	char after[ID_SIZE] = "";
	size_t pages = 0, seen = 0;
	struct account_list list = {.more = true};
	while (list.more) {
		assert_int_equal(store_list_accounts(fixture->sample.store, slice_of(after), 2,
		                                     fixture->sample.now_us, &fixture->arena, &list, NULL),
		                 OK);
		assert_true(list.count > 0);
		memcpy(after, list.items[list.count - 1].account_id, ID_SIZE);
		seen += list.count;
		pages++;
	}
	assert_int_equal(seen, 5);
	assert_int_equal(pages, 3);
	assert_string_equal(after, id);
}

TEST_CASE_ON(test_credits_settle_the_oldest_first, struct fixture *fixture)
{
	struct credit_outcome outcome;
	sample_register(&fixture->sample, MODE_LIVE, 9); /* 5 paid, 4 unpaid */
	assert_int_equal(account_of(fixture).unpaid_events, 4);
	assert_int_equal(move(fixture, 3, "adjustment", &outcome), OK);
	assert_int_equal(outcome.settled_events, 3);
	assert_int_equal(outcome.unpaid_events, 1);
	assert_int_equal(outcome.balance, 0);
	assert_int_equal(count(fixture, "SELECT event & 1099511627775 FROM unpaid_events"), 9);
	assert_int_equal(move(fixture, 10, "adjustment", &outcome), OK);
	assert_int_equal(outcome.balance, 9);
	assert_int_equal(outcome.unpaid_events, 0);
	assert_int_equal(count(fixture, "SELECT COUNT(*) FROM unpaid_events"), 0);
	assert_int_equal(count(fixture, "SELECT SUM(credits) FROM credit_entries"), 9);
	assert_int_equal(account_of(fixture).balance, 9);

	struct credit_list list;
	struct credit_filter filter = {.account_id = slice_of(fixture->sample.account_id),
	                               .since_us = TIME_NONE,
	                               .until_us = TIME_NONE,
	                               .limit = 2};
	assert_int_equal(
		store_list_credits(fixture->sample.store, &filter, &fixture->arena, &list, NULL), OK);
	assert_int_equal(list.count, 2);
	assert_true(list.more);
	assert_string_equal(list.items[0].kind, "settlement");
	assert_int_equal(list.items[0].balance, 9);
	assert_string_equal(list.items[1].kind, "adjustment");
	assert_int_equal(list.items[1].credits, 10);
	assert_string_equal(list.items[1].reference, "a reason");

	filter.kind = slice_of("settlement");
	assert_int_equal(
		store_list_credits(fixture->sample.store, &filter, &fixture->arena, &list, NULL), OK);
	for (size_t i = 0; i < list.count; i++)
		assert_string_equal(list.items[i].kind, "settlement");
	assert_true(list.count > 0);
	filter.kind = slice_of("");
	filter.until_us = list.items[0].at_us;
	assert_int_equal(
		store_list_credits(fixture->sample.store, &filter, &fixture->arena, &list, NULL), OK);
	for (size_t i = 0; i < list.count; i++)
		assert_true(list.items[i].at_us < filter.until_us);
	filter.since_us = filter.until_us;
	assert_int_equal(
		store_list_credits(fixture->sample.store, &filter, &fixture->arena, &list, NULL), OK);
	assert_int_equal(list.count, 0);
}

TEST_CASE_ON(test_only_a_revert_makes_the_balance_negative, struct fixture *fixture)
{
	struct credit_outcome outcome;
	assert_int_equal(move(fixture, -6, "adjustment", &outcome), ERR_REFUSED);
	assert_int_equal(account_of(fixture).balance, 5);
	assert_int_equal(count(fixture, "SELECT COUNT(*) FROM credit_entries"), 1);
	assert_int_equal(move(fixture, -5, "adjustment", &outcome), OK);
	assert_int_equal(move(fixture, -2, "revert", &outcome), OK);
	assert_int_equal(outcome.balance, -2);
	assert_int_equal(move(fixture, 3, "adjustment", &outcome), OK);
	assert_int_equal(outcome.balance, 1);
}

TEST_CASE_ON(test_threshold_sends_once_per_crossing, struct fixture *fixture)
{
	struct credit_outcome outcome;
	char id[ID_SIZE], other[ID_SIZE];
	struct slice account_id = slice_of(fixture->sample.account_id);
	static const char notices[] = "SELECT COUNT(*) FROM notices WHERE type = 'balance.low'";
	assert_int_equal(store_create_threshold(fixture->sample.store, account_id, 3, id, NULL), OK);
	assert_int_equal(
		store_create_threshold(fixture->sample.store, account_id, 3, other, &fixture->error),
		ERR_REFUSED);
	assert_non_null(strstr(fixture->error.english, id));
	assert_int_equal(move(fixture, -2, "adjustment", &outcome), OK);
	assert_int_equal(count(fixture, notices), 1);
	assert_int_equal(move(fixture, -1, "adjustment", &outcome), OK);
	assert_int_equal(count(fixture, notices), 1);
	assert_int_equal(move(fixture, 5, "adjustment", &outcome), OK);
	assert_int_equal(move(fixture, -5, "adjustment", &outcome), OK);
	assert_int_equal(count(fixture, notices), 2);

	struct threshold_list list;
	assert_int_equal(store_list_thresholds(fixture->sample.store, account_id, slice_of(""), 10,
	                                       &fixture->arena, &list, NULL),
	                 OK);
	assert_int_equal(list.count, 1);
	assert_false(list.items[0].armed);
	assert_int_equal(store_delete_threshold(fixture->sample.store, slice_of(id), NULL), OK);
	/* A threshold that is created above the balance sends no notice until the balance was above
	 * it. */
	assert_int_equal(store_create_threshold(fixture->sample.store, account_id, 100, id, NULL), OK);
	assert_int_equal(move(fixture, -1, "adjustment", &outcome), OK);
	assert_int_equal(count(fixture, notices), 2);
}

static void get_channel(struct fixture *fixture, struct channel *ret)
{
	assert_int_equal(store_get_channel(fixture->sample.store, fixture->sample.account,
	                                   fixture->sample.channel, &fixture->arena, ret,
	                                   &fixture->error),
	                 OK);
}

TEST_CASE_ON(test_configuration_versions_are_sealed, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct slice id = slice_of(fixture->sample.channel_id);
	struct config_change change = {
		.declarant = "Another", .description = "línea 1\nline 2", .modality = -1};
	int64_t version;
	bool changed;
	assert_int_equal(store_configure_channel(store, id, &change, fixture->sample.now_us, &version,
	                                         &changed, NULL),
	                 OK);
	assert_true(changed);
	assert_int_equal(version, 2);
	assert_int_equal(store_configure_channel(store, id, &change, fixture->sample.now_us, &version,
	                                         &changed, NULL),
	                 OK);
	assert_false(changed);
	assert_int_equal(version, 2);
	change = (struct config_change){.description = "", .modality = -1};
	/* The clock was set back: versions remain in order. */
	assert_int_equal(store_configure_channel(store, id, &change,
	                                         fixture->sample.now_us - US_PER_DAY, &version,
	                                         &changed, NULL),
	                 OK);
	assert_int_equal(version, 3);

	struct channel channel;
	get_channel(fixture, &channel);
	assert_int_equal(channel.config_count, 3);
	assert_string_equal(channel.configs[0].facts.declarant, "Sample & Co");
	assert_string_equal(channel.configs[1].facts.description, "línea 1\nline 2");
	assert_null(channel.configs[2].facts.description);
	assert_string_equal(channel.configs[2].facts.declarant, "Another");
	assert_true(channel.configs[2].facts.sealed_at_us >= channel.configs[1].facts.sealed_at_us);
	for (size_t i = 0; i < channel.config_count; i++) {
		BUF_AUTO struct buf document = {.limit = 65536};
		config_document(&channel.configs[i].facts, &document);
		struct sha256 hash = sha256_of(document.data, document.size);
		assert_true(sha256_equal(&hash, &channel.configs[i].hash));
	}
}

TEST_CASE_ON(test_modality_stays_once_there_are_events, struct fixture *fixture)
{
	struct slice id = slice_of(fixture->sample.channel_id);
	struct config_change change = {.modality = MODALITY_HASH_ONLY};
	int64_t version;
	bool changed;
	assert_int_equal(store_configure_channel(fixture->sample.store, id, &change,
	                                         fixture->sample.now_us, &version, &changed, NULL),
	                 OK);
	assert_true(changed);
	sample_register(&fixture->sample, MODE_TEST, 1);
	change.modality = MODALITY_CONTENT;
	assert_int_equal(store_configure_channel(fixture->sample.store, id, &change,
	                                         fixture->sample.now_us, &version, &changed,
	                                         &fixture->error),
	                 ERR_REFUSED);
	change.modality = MODALITY_HASH_ONLY;
	assert_int_equal(store_configure_channel(fixture->sample.store, id, &change,
	                                         fixture->sample.now_us, &version, &changed, NULL),
	                 OK);
	assert_false(changed);
	struct channel channel;
	get_channel(fixture, &channel);
	assert_int_equal(channel.config_count, 2);
}

TEST_CASE_ON(test_keys_are_found_and_revoked, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct slice channel_id = slice_of(fixture->sample.channel_id);
	struct sha256 live = sha256_of("live", 4), test = sha256_of("test", 4);
	char live_id[ID_SIZE], test_id[ID_SIZE];
	assert_int_equal(store_create_key(store, channel_id, MODE_LIVE, "till 1", TIME_NONE, &live,
	                                  "abcd", 0, fixture->sample.now_us, live_id, NULL),
	                 OK);
	assert_int_equal(store_create_key(store, channel_id, MODE_TEST, NULL, TIME_NONE, &test, "wxyz",
	                                  0, fixture->sample.now_us, test_id, NULL),
	                 OK);
	struct key_identity identity;
	assert_int_equal(store_find_key(store, &test, &identity, NULL), OK);
	assert_int_equal(identity.chain, fixture->sample.test_chain);
	assert_string_equal(identity.key_id, test_id);
	assert_false(identity.revoked);

	int64_t first, second;
	assert_int_equal(store_revoke_key(store, slice_of(live_id), NULL, 1000, &first, NULL), OK);
	assert_int_equal(store_revoke_key(store, slice_of(live_id), NULL, 2000, &second, NULL), OK);
	assert_int_equal(first, 1000);
	assert_int_equal(second, 1000);
	assert_int_equal(store_find_key(store, &live, &identity, NULL), OK);
	assert_true(identity.revoked);

	struct key_list list;
	assert_int_equal(store_list_keys(store, slice_of(""), channel_id, slice_of(""), 10,
	                                 &fixture->arena, &list, NULL),
	                 OK);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.items[0].name, "till 1");
	assert_string_equal(list.items[0].last_four, "abcd");
	assert_int_equal(list.items[0].revoked_at_us, 1000);
	assert_int_equal(list.items[1].revoked_at_us, TIME_NONE);
	/* Two keys with the same text would be one identity. */
	assert_int_not_equal(store_create_key(store, channel_id, MODE_LIVE, NULL, TIME_NONE, &live,
	                                      "abcd", 0, 1, live_id, NULL),
	                     OK);
}

TEST_CASE_ON(test_suspension_is_seen_by_the_guard, struct fixture *fixture)
{
	struct sha256 hash = sha256_of("k", 1);
	char key_id[ID_SIZE];
	struct key_identity identity;
	struct slice channel_id = slice_of(fixture->sample.channel_id);
	assert_int_equal(store_create_key(fixture->sample.store, channel_id, MODE_LIVE, NULL, TIME_NONE,
	                                  &hash, "0000", 0, 1, key_id, NULL),
	                 OK);
	assert_int_equal(store_suspend_channel(fixture->sample.store, channel_id, true, NULL), OK);
	assert_int_equal(store_find_key(fixture->sample.store, &hash, &identity, NULL), OK);
	assert_true(identity.channel_suspended);
	assert_int_equal(store_suspend_channel(fixture->sample.store, channel_id, false, NULL), OK);
	assert_int_equal(store_find_key(fixture->sample.store, &hash, &identity, NULL), OK);
	assert_false(identity.channel_suspended);
}

TEST_CASE_ON(test_limits_count_and_refuse_test_keys, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct slice channel_id = slice_of(fixture->sample.channel_id), none = slice_of("");
	struct sha256 hash = sha256_of("t", 1);
	char key_id[ID_SIZE], day[ID_SIZE], month[ID_SIZE], refused[ID_SIZE];
	assert_int_equal(store_create_key(store, channel_id, MODE_TEST, NULL, TIME_NONE, &hash, "0000",
	                                  0, 1, key_id, NULL),
	                 OK);
	assert_int_equal(store_create_limit(store, none, slice_of(key_id), PERIOD_DAY, 1, true, 1,
	                                    refused, &fixture->error),
	                 ERR_REFUSED);
	assert_int_equal(
		store_create_limit(store, channel_id, none, PERIOD_DAY, 50, false, 1, day, NULL), OK);
	assert_int_equal(
		store_create_limit(store, channel_id, none, PERIOD_MONTH, 60, true, 1, month, NULL), OK);
	sample_register(&fixture->sample, MODE_LIVE, 3);
	sample_register(&fixture->sample, MODE_TEST, 2);
	struct limit_list list;
	assert_int_equal(store_list_limits(store, none, channel_id, none, 10, fixture->sample.now_us,
	                                   &fixture->arena, &list, NULL),
	                 OK);
	assert_int_equal(list.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(list.items[i].used, 3);
		assert_string_equal(list.items[i].key_id, "");
		assert_int_equal(list.items[i].block, list.items[i].period == PERIOD_MONTH);
	}
	assert_int_equal(store_list_limits(store, none, channel_id, none, 10,
	                                   fixture->sample.now_us + 40 * US_PER_DAY, &fixture->arena,
	                                   &list, NULL),
	                 OK);
	assert_int_equal(list.items[0].used + list.items[1].used, 0);
	assert_int_equal(store_delete_limit(store, slice_of(day), NULL), OK);
	assert_int_equal(store_list_limits(store, none, none, none, 10, fixture->sample.now_us,
	                                   &fixture->arena, &list, NULL),
	                 OK);
	assert_int_equal(list.count, 1);
	assert_string_equal(list.items[0].limit_id, month);
}

TEST_MAIN_EACH(set_up, tear_down)
