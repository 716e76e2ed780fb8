/* Consumption limits on both sides of midnight: the day of received_at counts, whatever the clock
 * of the node shows. */
#include "testing.h"
#include "registering.h"
#include "sample.h"

#include "store/store_internal.h"

#define MIDNIGHT INT64_C(1769904000000000) /* 2026-02-01T00:00:00Z: a new month, too */

static int register_at(struct sample *sample, int64_t now_us)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	char reference[32];
	snprintf(reference, sizeof reference, "at-%lld", (long long)++sample->references);
	struct registration item = {
		.account = sample->account,
		.channel = sample->channel,
		.chain = sample->live_chain,
		.key = 1,
		.declaration = {.modality = MODALITY_HASH_ONLY,
	                    .client_ref = slice_of(reference),
	                    .occurred_at_us = TIME_NONE},
		.content_bytes = -1,
		.arena = &arena,
	};
	struct registration *items[] = {&item};
	assert_int_equal(register_items(sample->store, items, 1, now_us, NULL), OK);
	return item.result;
}

static int64_t count_notices(struct sample *sample, const char *key)
{
	char like[64];
	snprintf(like, sizeof like, "%%\"period_key\":\"%s\"%%", key);
	struct db_connection *reader = db_take_reader(sample->store->db);
	struct db_query *query =
		db_query(reader, "SELECT COUNT(*) FROM notices WHERE account = $1 AND data LIKE $2"
	                     " AND type = 'consumption.limit_reached'");
	db_bind_integer(query, sample->account);
	db_bind_string(query, like);
	assert_true(db_step(query));
	int64_t count = db_integer(query, 0);
	assert_int_equal(db_end(query, NULL), OK);
	db_give(reader);
	return count;
}

static void make_limit(struct sample *sample, enum period period, int64_t most)
{
	char id[ID_SIZE];
	assert_int_equal(store_create_limit(sample->store, slice_of(sample->channel_id), slice_of(""),
	                                    period, most, true, MIDNIGHT - US_PER_DAY, id, NULL),
	                 OK);
}

static void check_midnight(enum period period, const char *before, const char *after)
{
	struct sample sample;
	sample_open(&sample, MODALITY_HASH_ONLY, 100);
	make_limit(&sample, period, 2);
	assert_int_equal(register_at(&sample, MIDNIGHT - 2), OK);
	assert_int_equal(register_at(&sample, MIDNIGHT - 1), OK);
	assert_int_equal(register_at(&sample, MIDNIGHT - 1), ERR_LIMIT_BLOCKED);
	assert_int_equal(count_notices(&sample, before), 1);
	assert_int_equal(register_at(&sample, MIDNIGHT), OK);
	/* A node whose clock lags registers into the new day, as received_at states. */
	assert_int_equal(register_at(&sample, MIDNIGHT - US_PER_SECOND), OK);
	assert_int_equal(register_at(&sample, MIDNIGHT - US_PER_SECOND), ERR_LIMIT_BLOCKED);
	assert_int_equal(register_at(&sample, MIDNIGHT + US_PER_SECOND), ERR_LIMIT_BLOCKED);
	assert_int_equal(count_notices(&sample, before), 1);
	assert_int_equal(count_notices(&sample, after), 1);
	sample_close(&sample);
}

TEST_CASE(a_day_ends_at_midnight)
{
	check_midnight(PERIOD_DAY, "2026-01-31", "2026-02-01");
}

TEST_CASE(a_month_ends_at_midnight)
{
	check_midnight(PERIOD_MONTH, "2026-01", "2026-02");
}

TEST_MAIN(NULL, NULL)
