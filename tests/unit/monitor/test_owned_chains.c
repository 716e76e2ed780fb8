#include "testing.h"

#include "monitor/owned_chains.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct owned_chains chains;

static int teardown(void **state)
{
	(void)state;
	owned_clear_receipts(&chains);
	return 0;
}

static struct owned_chains *fresh(void)
{
	owned_clear_receipts(&chains);
	chains = (struct owned_chains){0};
	return &chains;
}

/* Adds a receipt; `more` are further members. */
static int add(struct owned_chains *owned, const char *channel, int sequence, const char *hash,
               const char *more)
{
	char text[2048];
	snprintf(text, sizeof text,
	         "{\"event_id\":\"evt_1\",\"channel_id\":\"%s\",\"client_ref\":\"r\",\"sequence\":%d,"
	         "\"received_at\":\"2026-01-02T03:04:05.000000Z\",\"hash\":\"" HASH_A
	         "\",\"hash_alg\":\"sha-256\",\"modality\":\"content\",\"config_version\":1,"
	         "\"chain_hash\":\"%s\"%s}",
	         channel, sequence, hash, more);
	return owned_add_receipt(owned, slice_of(text), NULL);
}
#define LIVE ",\"mode\":\"live\""
#define SIGNATURE                                                                                  \
	"BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA=="
#define FALSELY_SIGNED                                                                             \
	LIVE ",\"receipt\":{\"index\":0,\"key\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\","     \
		 "\"origin\":\"a\",\"path\":[],\"seal_by\":\"2026-01-02T03:14:05.000000Z\","               \
		 "\"signature\":\"" SIGNATURE "\",\"size\":1}"

TEST_CASE(test_chains)
{
	struct owned_chains *owned = fresh();
	char long_id[TLOG_CHAIN_NAME_MAX + 2];
	const struct sha256 tag = sha256_of("constancia-tag/1\nch_a\nlive", 26);
	assert_int_equal(owned_add_channel(owned, "ch_a", NULL), OK);
	assert_string_equal(owned_find(owned, &tag)->channel_id, "ch_a");
	assert_int_equal(owned_add_channel(owned, "ch_a", NULL), OK);
	assert_int_equal(owned->count, 1);
	memset(long_id, 'a', sizeof long_id);
	long_id[sizeof long_id - 1] = 0;
	assert_int_equal(owned_add_channel(owned, long_id, NULL), ERR_INVALID_EVIDENCE);
	assert_int_equal(owned_add_channel(owned, "", NULL), ERR_INVALID_EVIDENCE);
	assert_int_equal(owned_add_channel(owned, "ch_\x1b[2J", NULL), ERR_INVALID_EVIDENCE);
	assert_int_equal(owned_add_channel(owned, long_id + 1, NULL), OK);
	const struct sha256 other = sha256_of("constancia-tag/1\nch_a\ntest", 26);
	assert_null(owned_find(owned, &other));
	assert_int_equal(add(owned, "ch_b", 1, HASH_A, LIVE), OK);
	assert_int_equal(owned->count, 3);
	for (size_t i = owned->count; i < OWNED_CHAINS_MAX; i++) {
		char id[16];
		snprintf(id, sizeof id, "ch_%zu", i);
		assert_int_equal(owned_add_channel(owned, id, NULL), OK);
	}
	assert_int_equal(owned_add_channel(owned, "ch_more", NULL), ERR_INVALID_EVIDENCE);
	assert_int_equal(add(owned, "ch_more", 1, HASH_A, LIVE), ERR_INVALID_EVIDENCE);
}

TEST_CASE(test_receipts_are_sorted_and_each_is_kept_once)
{
	struct owned_chains *owned = fresh();
	assert_int_equal(owned_add_channel(owned, "ch_a", NULL), OK);
	const struct owned_chain *chain = &owned->chains[0];
	for (int i = 500; i > 0; i--)
		assert_int_equal(add(owned, "ch_a", i, HASH_A, LIVE), OK);
	assert_int_equal(add(owned, "ch_a", 7, HASH_B, LIVE), OK);
	const int64_t promises[] = {TIME_NONE, 5, 4};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(add(owned, "ch_a", 9, HASH_A, LIVE ",\"receipt\":null"), OK);
		chain->receipts[chain->receipt_count - 1].seal_by_us = promises[i];
	}
	assert_int_equal(add(owned, "ch_a", 1, HASH_B, ",\"mode\":\"test\""), OK);
	owned_sort_receipts(owned);
	assert_int_equal(owned->receipt_count, 501);
	assert_int_equal(chain->receipt_count, 501);
	assert_int_equal(owned->test_receipts, 1);
	for (size_t i = 1; i < chain->receipt_count; i++)
		assert_true(chain->receipts[i - 1].sequence <= chain->receipts[i].sequence);
	size_t at = owned_first_receipt(chain, 7);
	assert_int_equal(chain->receipts[at].sequence, 7);
	assert_int_equal(chain->receipts[at + 1].sequence, 7);
	at = owned_first_receipt(chain, 9);
	assert_int_equal(chain->receipts[at].seal_by_us, 4);
	assert_int_equal(chain->receipts[owned_first_receipt(chain, 10)].seal_by_us, TIME_NONE);
	assert_int_equal(owned_first_receipt(chain, 501), 501);
	owned_clear_receipts(owned);
	assert_int_equal(owned_first_receipt(chain, 1), 0);
}

/* Of receipts with one chain hash the one remains that binds the service of this log most. */
TEST_CASE(test_the_receipt_that_binds_most_is_kept)
{
	static const struct owned_receipt ranked[] = {
		{.is_signed = true, .seal_by_us = 4},
		{.is_signed = true, .seal_by_us = 5},
		{.is_signed = true, .seal_by_us = TIME_NONE},
		{.is_signed = true, .seal_by_us = 3, .is_of_other_log = true},
		{.is_signed = true, .seal_by_us = TIME_NONE, .is_of_other_log = true},
		{.seal_by_us = TIME_NONE}};
	const size_t count = sizeof ranked / sizeof *ranked;
	for (size_t best = 0; best < count; best++) {
		struct owned_chains *owned = fresh();
		for (size_t i = count; i-- > best;) {
			assert_int_equal(add(owned, "ch_a", 1, HASH_A, LIVE), OK);
			struct owned_receipt *kept = &owned->chains[0].receipts[count - 1 - i];
			kept->is_signed = ranked[i].is_signed;
			kept->seal_by_us = ranked[i].seal_by_us;
			kept->is_of_other_log = ranked[i].is_of_other_log;
		}
		owned_sort_receipts(owned);
		assert_int_equal(owned->receipt_count, 1);
		const struct owned_receipt *kept = &owned->chains[0].receipts[0];
		assert_int_equal(kept->is_signed, ranked[best].is_signed);
		assert_int_equal(kept->seal_by_us, ranked[best].seal_by_us);
		assert_int_equal(kept->is_of_other_log, ranked[best].is_of_other_log);
	}
}

TEST_CASE(test_texts_that_are_no_receipts_hide_no_other_one)
{
	struct owned_chains *owned = fresh();
	static const char *const wrong[] = {"", "x", "{}", "[]", "{\"sequence\":1}"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(owned_add_receipt(owned, slice_of(wrong[i]), NULL), OK);
	assert_int_equal(add(owned, "", 1, HASH_A, LIVE), OK);
	assert_int_equal(add(owned, "ch_\\u001b[2J", 1, HASH_A, LIVE), OK);
	assert_int_equal(add(owned, "ch_a", 0, HASH_A, LIVE), OK);
	assert_int_equal(add(owned, "ch_a", 1, "abc", LIVE), OK);
	assert_int_equal(add(owned, "ch_a", 1, HASH_A, LIVE ",\"receipt\":{\"seal_by\":\"soon\"}"), OK);
	assert_int_equal(add(owned, "ch_a", 1, HASH_A, LIVE ",\"receipt\":{\"seal_by\":5}"), OK);
	assert_int_equal(owned->unusable_receipts, 11);
	assert_int_equal(owned->count, 0);
	assert_int_equal(add(owned, "ch_a", 1, HASH_A, FALSELY_SIGNED), OK);
	assert_int_equal(owned->receipt_count, 1);
	assert_int_equal(owned->false_receipts, 1);
	assert_int_equal(owned->chains[0].receipts[0].seal_by_us, TIME_NONE);
}

TEST_MAIN(NULL, teardown)
