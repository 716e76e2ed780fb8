#include "testing.h"

#include "base/file.h"
#include "monitor/watch_state.h"
#include "scratch.h"

static char directory[SCRATCH_MAX];
static char path[SCRATCH_MAX + 8];

static int setup(void **state)
{
	(void)state;
	scratch_make(directory);
	snprintf(path, sizeof path, "%s/state", directory);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scratch_remove(directory);
	return 0;
}

TEST_CASE(test_a_state_is_read_as_it_was_written)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)8 << 20};
	static struct watch_state written, read;
	static struct owned_chains owned;
	written.note = slice_of("a\n1\n\xe2\x80\x94 \"x\"\n");
	written.count = owned.count = 700;
	for (size_t i = 0; i < written.count; i++) {
		struct watched_chain *chain = &written.chains[i];
		snprintf(owned.chains[i].channel_id, sizeof owned.chains[i].channel_id, "ch_%zu", i);
		chain->tag = sha256_of(&i, sizeof i);
		chain->compared = sha256_of(&chain->tag, sizeof chain->tag);
		chain->span = (struct chain_span){(int64_t)i, (int64_t)(2 * i), i};
	}
	assert_int_equal(watch_state_read(path, &arena, &read, NULL), OK);
	assert_int_equal(read.note.size, 0);
	assert_int_equal(watch_state_write(path, &written, &owned, NULL), OK);
	assert_int_equal(watch_state_read(path, &arena, &read, NULL), OK);
	assert_true(slice_equal(read.note, written.note));
	assert_int_equal(read.count, written.count);
	for (size_t i = 0; i < read.count; i++) {
		const struct watched_chain *chain = watch_state_find(&read, &written.chains[i].tag);
		assert_memory_equal(chain, &written.chains[i], sizeof *chain);
	}
	assert_null(watch_state_find(&read, &written.chains[0].compared));
}

TEST_CASE(test_files_that_are_no_states)
{
	static const char *const wrong[] = {"",
	                                    "x",
	                                    "[]",
	                                    "{}",
	                                    "{\"v\":1}",
	                                    "{\"chains\":[],\"note\":\"x\",\"v\":3}",
	                                    "{\"chains\":[{}],\"note\":\"x\",\"v\":1}",
	                                    "{\"chains\":{},\"note\":\"x\",\"v\":1}"};
	ARENA_AUTO struct arena arena = {.limit = (size_t)8 << 20};
	static struct watch_state read;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(file_replace(path, slice_of(wrong[i]), NULL), OK);
		assert_int_equal(watch_state_read(path, &arena, &read, NULL), ERR_CORRUPT);
	}
	assert_int_equal(watch_state_read(directory, &arena, &read, NULL), ERR_IO);
}

/* Who made the receipts could choose its digest. */
TEST_CASE(test_an_old_state_compares_nothing)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)8 << 20};
	static struct watch_state read;
	for (int version = 1; version <= 2; version++) {
		char text[64];
		snprintf(text, sizeof text, "{\"chains\":[],\"note\":\"x\",\"v\":%d}", version);
		assert_int_equal(file_replace(path, slice_of(text), NULL), OK);
		assert_int_equal(watch_state_read(path, &arena, &read, NULL), OK);
		assert_int_equal(read.is_comparable, version == 2);
	}
}

TEST_CASE(test_the_digest_of_receipts_depends_on_each)
{
	struct owned_receipt receipts[] = {{.sequence = 1}, {.sequence = 2}, {.sequence = 5}};
	struct owned_chain chain = {.receipts = receipts, .receipt_count = 3};
	const struct sha256 none = {{0}}, first = watch_receipts_digest(&chain, 2),
						all = watch_receipts_digest(&chain, 5);
	const struct sha256 before = watch_receipts_digest(&chain, 0);
	assert_true(sha256_equal(&before, &none));
	assert_false(sha256_equal(&first, &none) || sha256_equal(&first, &all));
	/* No receipt takes the place of another, as it would in a sum of their hashes. */
	struct sha256 sum = {{0}};
	for (int i = 0; i < 3; i++) {
		struct owned_chain one = {.receipts = &receipts[i], .receipt_count = 1};
		const struct sha256 digest = watch_receipts_digest(&one, 5);
		for (size_t at = 0; at < SHA256_SIZE; at++)
			sum.bytes[at] ^= digest.bytes[at];
	}
	assert_false(sha256_equal(&sum, &all));
	receipts[1].chain_hash.bytes[31] = 1;
	const struct sha256 other = watch_receipts_digest(&chain, 2);
	assert_false(sha256_equal(&first, &other));
}

TEST_MAIN(setup, teardown)
