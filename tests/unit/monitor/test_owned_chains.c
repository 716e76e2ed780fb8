#include "testing.h"

#include "monitor/owned_chains.h"

#define GENESIS                                                                                    \
	"{\"chain\":\"live\",\"channel_id\":\"ch_a\",\"created_at\":\"2026-01-01T00:00:00.000000Z\","  \
	"\"v\":1}"
#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

struct fixture {
	struct arena arena;
	struct owned_chains owned;
};
static struct fixture fixture;

static int setup(void **state)
{
	(void)state;
	arena_init(&fixture.arena, (size_t)4 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	owned_clear_receipts(&fixture.owned);
	arena_free(&fixture.arena);
	return 0;
}

static struct owned_chains *fresh(void)
{
	owned_clear_receipts(&fixture.owned);
	fixture.owned = (struct owned_chains){.arena = &fixture.arena};
	return &fixture.owned;
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
	const struct sha256 hash = sha256_of(GENESIS, strlen(GENESIS)), tag = tlog_tag(&hash);
	assert_int_equal(owned_add_genesis(owned, slice_of(GENESIS), NULL), OK);
	assert_string_equal(owned_find(owned, &tag)->channel_id, "ch_a");
	assert_true(slice_is(owned_find(owned, &tag)->genesis, GENESIS));
	assert_null(owned_find(owned, &hash));
	assert_int_equal(owned_add_genesis(owned, slice_of(GENESIS), NULL), ERR_INVALID_EVIDENCE);
	assert_int_equal(owned_add_tag(owned, "ch_a", &hash, NULL), ERR_INVALID_EVIDENCE);
	assert_int_equal(owned_add_tag(owned, "ch_b", &tag, NULL), ERR_INVALID_EVIDENCE);
	assert_int_equal(owned_add_tag(owned, "", &hash, NULL), ERR_INVALID_EVIDENCE);
	assert_int_equal(owned_add_tag(owned, "ch_b", &hash, NULL), OK);
	assert_int_equal(owned->count, 2);
}

TEST_CASE(test_documents_that_are_no_live_genesis)
{
	static const char *const wrong[] = {
		"", "{}", "x",
		"{\"chain\":\"test\",\"channel_id\":\"ch_a\",\"created_at\":\"2026-01-01T00:00:00.000000Z\","
		"\"v\":1}"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(owned_add_genesis(fresh(), slice_of(wrong[i]), NULL),
		                 ERR_INVALID_EVIDENCE);
}

TEST_CASE(test_receipts_are_sorted_and_each_is_kept_once)
{
	struct owned_chains *owned = fresh();
	assert_int_equal(owned_add_genesis(owned, slice_of(GENESIS), NULL), OK);
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

TEST_CASE(test_receipts_that_are_refused)
{
	struct owned_chains *owned = fresh();
	assert_int_equal(owned_add_genesis(owned, slice_of(GENESIS), NULL), OK);
	static const char *const wrong[] = {"", "x", "{}", "[]", "{\"sequence\":1}"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(owned_add_receipt(owned, slice_of(wrong[i]), NULL), ERR_INVALID_EVIDENCE);
	assert_int_equal(add(owned, "ch_b", 1, HASH_A, LIVE), ERR_INVALID_EVIDENCE);
	assert_int_equal(add(owned, "ch_a", 0, HASH_A, LIVE), ERR_INVALID_EVIDENCE);
	assert_int_equal(add(owned, "ch_a", 1, "abc", LIVE), ERR_INVALID_EVIDENCE);
	assert_int_equal(add(owned, "ch_a", 1, HASH_A, LIVE ",\"receipt\":{\"seal_by\":\"soon\"}"),
	                 ERR_INVALID_EVIDENCE);
	assert_int_equal(add(owned, "ch_a", 1, HASH_A, LIVE ",\"receipt\":{\"seal_by\":5}"),
	                 ERR_INVALID_EVIDENCE);
	assert_int_equal(add(owned, "ch_a", 1, HASH_A, FALSELY_SIGNED), OK);
	assert_int_equal(owned->receipt_count, 1);
	assert_int_equal(owned->false_receipts, 1);
	assert_int_equal(owned->chains[0].receipts[0].seal_by_us, TIME_NONE);
}

TEST_MAIN(setup, teardown)
