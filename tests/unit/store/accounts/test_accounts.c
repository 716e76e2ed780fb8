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

TEST_CASE_ON(test_only_a_revert_makes_the_balance_negative, struct fixture *fixture)
{
	struct credit_outcome outcome;
	assert_int_equal(move(fixture, -6, "adjustment", &outcome), ERR_REFUSED);
	assert_int_equal(account_of(fixture).balance, 5);
	assert_int_equal(sample_number(&fixture->sample, "SELECT COUNT(*) FROM credit_entries"), 1);
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
	assert_int_equal(sample_number(&fixture->sample, notices), 1);
	assert_int_equal(move(fixture, -1, "adjustment", &outcome), OK);
	assert_int_equal(sample_number(&fixture->sample, notices), 1);
	assert_int_equal(move(fixture, 5, "adjustment", &outcome), OK);
	assert_int_equal(move(fixture, -5, "adjustment", &outcome), OK);
	assert_int_equal(sample_number(&fixture->sample, notices), 2);

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
	assert_int_equal(sample_number(&fixture->sample, notices), 2);
}

static void get_channel(struct fixture *fixture, struct channel *ret)
{
	assert_int_equal(store_get_channel_versions(fixture->sample.store, fixture->sample.account,
	                                            fixture->sample.channel, INT64_MAX, INT64_MAX,
	                                            &fixture->arena, ret, &fixture->error),
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

/* Two keys with the same text would be one identity. */
TEST_CASE_ON(test_no_two_keys_have_the_same_text, struct fixture *fixture)
{
	struct slice channel_id = slice_of(fixture->sample.channel_id);
	struct sha256 hash = sha256_of("live", 4);
	char id[ID_SIZE];
	for (int i = 0; i < 2; i++) {
		int result = store_create_key(fixture->sample.store, channel_id, MODE_LIVE, NULL, TIME_NONE,
		                              &hash, "abcd", 0, fixture->sample.now_us, id, NULL);
		assert_int_equal(result == OK, i == 0);
	}
}

TEST_MAIN_EACH(set_up, tear_down)
