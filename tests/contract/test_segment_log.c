/* The contract of the log of segments, on a SQLite file in a new directory, or on a server:
 *     contract-segment_log [postgresql://… postgresql://…] */
#include "testing.h"
#include "sample.h"

#include <stdlib.h>

#include "store/events/segments.h"
#include "store/tlog/log_checkpoints.h"
#include "store/tlog/log_records.h"

#define NOW INT64_C(1767268800000000) /* 2026-01-01T12:00:00Z */
#define EVENTS 900
#define TEST_SEED 20260101

static const char *server_url; /* postgresql://…; NULL: a SQLite file */

/* What the store must hold: the entries of written rounds, and those of the staged blocks after
 * them. */
struct fixture {
	struct sample sample;
	int64_t round; /* the next one */
	struct tlog_entry entries[EVENTS];
	int64_t rounds[EVENTS], places[EVENTS];
	size_t published, staged;
	size_t block_sizes[EVENTS]; /* of the staged blocks */
	int64_t blocks;
	unsigned random;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	assert_non_null(fixture);
	sample_create_store(&fixture->sample, server_url);
	fixture->sample.now_us = NOW;
	sample_fill(&fixture->sample, fixture->sample.store, MODALITY_HASH_ONLY, 5000);
	sample_register(&fixture->sample, MODE_LIVE, EVENTS);
	fixture->round = 1;
	fixture->random = TEST_SEED;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sample_close(&fixture->sample);
	free(fixture);
	return 0;
}

static size_t choose(struct fixture *fixture, size_t count)
{
	fixture->random = fixture->random * 1103515245 + 12345;
	return (fixture->random >> 16) % count;
}

static struct tlog_entry entry_number(struct fixture *fixture, int64_t sequence)
{
	/* Other bytes each time, as when a block is staged again. */
	size_t salt = choose(fixture, 1000);
	struct tlog_entry entry = {.first_sequence = sequence, .last_sequence = sequence};
	entry.tag = sha256_of("tag", 3);
	entry.chain_hash_last = sha256_of(&sequence, sizeof sequence);
	entry.seal_hash = sha256_of(&salt, sizeof salt);
	return entry;
}

/* Stages a block of `count` segments, each of one event. */
static void stage(struct fixture *fixture, size_t count)
{
	struct unsealed_chain chain;
	size_t found, failed;
	assert_int_equal(store_list_unsealed(fixture->sample.store, 0, 0, 1, &chain, &found, NULL), OK);
	assert_int_equal(found, 1);
	struct segment_record *segments = calloc(count, sizeof *segments);
	assert_non_null(segments);
	size_t before = fixture->published + fixture->staged;
	for (size_t i = 0; i < count; i++) {
		struct tlog_entry entry = entry_number(fixture, chain.sealed_sequence + 1);
		segments[i] = (struct segment_record){.account = chain.account,
		                                      .chain = chain.chain,
		                                      .number = chain.sealed_segment + 1,
		                                      .first_sequence = entry.first_sequence,
		                                      .last_sequence = entry.last_sequence,
		                                      .previous_seal_hash = chain.seal_hash,
		                                      .seal_hash = entry.seal_hash,
		                                      .chain_hash_last = entry.chain_hash_last,
		                                      .tag = entry.tag,
		                                      .document = slice_of("d"),
		                                      .nodes = slice_of("n")};
		snprintf(segments[i].segment_id, ID_SIZE, "seg_%lld", (long long)segments[i].number);
		chain.sealed_segment++;
		chain.sealed_sequence++;
		chain.seal_hash = entry.seal_hash;
		fixture->entries[before + i] = entry;
		fixture->rounds[before + i] = fixture->round;
		fixture->places[before + i] = fixture->blocks * ROUND_BLOCK_SEGMENTS_MAX + (int64_t)i;
	}
	const struct round_block block = {
		.round = fixture->round, .number = fixture->blocks, .latest_received_at_us = NOW};
	assert_int_equal(
		store_stage_block(fixture->sample.store, &block, segments, count, &failed, NULL), OK);
	free(segments);
	fixture->block_sizes[fixture->blocks++] = count;
	fixture->staged += count;
}

static void unstage(struct fixture *fixture)
{
	fixture->blocks--;
	fixture->staged -= fixture->block_sizes[fixture->blocks];
	/* The digest of the previous document is read from the store, where all are the same. */
	assert_int_equal(
		store_unstage_block(fixture->sample.store, fixture->round, fixture->blocks, NULL), OK);
}

static void publish(struct fixture *fixture)
{
	struct staged_round staged;
	struct sha256 *roots = calloc((size_t)fixture->blocks, sizeof *roots);
	assert_non_null(roots);
	assert_int_equal(store_get_staged_round(fixture->sample.store, &staged, NULL), OK);
	const struct round_record round = {
		.round = fixture->round,
		.authority = "a",
		.kind = "development",
		.request = slice_of("r"),
		.response_head = slice_of("h"),
		.token = slice_of("t"),
		.blocks = slice_make(roots, (size_t)fixture->blocks * sizeof *roots),
		.staged_changes = staged.changes};
	assert_int_equal(store_write_round(fixture->sample.store, &round, NULL), OK);
	free(roots);
	fixture->published += fixture->staged;
	fixture->staged = 0;
	fixture->blocks = 0;
	fixture->round++;
}

/* ---- what must be there ---- */

static struct sha256 root_of(const struct sha256 *leaves, size_t count)
{
	size_t half = 1;
	if (count == 0)
		return merkle_empty_root();
	if (count == 1)
		return leaves[0];
	while (half * 2 < count)
		half *= 2;
	const struct sha256 left = root_of(leaves, half), right = root_of(leaves + half, count - half);
	return merkle_node(&left, &right);
}

static void assert_head(struct fixture *fixture)
{
	BUF_AUTO struct buf scratch = {.limit = TLOG_ENTRY_MAX};
	struct sha256 leaves[EVENTS];
	for (size_t i = 0; i < fixture->published; i++)
		assert_int_equal(tlog_entry_leaf(&fixture->entries[i], &scratch, &leaves[i]), OK);
	const struct sha256 root = root_of(leaves, fixture->published);
	struct log_head head;
	assert_int_equal(store_get_log_head(fixture->sample.store, &head, NULL), OK);
	assert_int_equal(head.size, fixture->published);
	assert_int_equal(head.round, fixture->round - 1);
	assert_true(sha256_equal(&head.root, &root));
	for (size_t at = 0; at < fixture->published; at += TILE_WIDTH) {
		const struct tile_id id = {0, at / TILE_WIDTH,
		                           tile_width(0, at / TILE_WIDTH, fixture->published)};
		struct sha256 hashes[TILE_WIDTH];
		assert_int_equal(store_read_log_tile(fixture->sample.store, &id, hashes, NULL), OK);
		assert_memory_equal(hashes, leaves + at, id.width * sizeof *hashes);
	}
}

static void assert_entries(struct fixture *fixture)
{
	struct tlog_entry entries[EVENTS];
	size_t count;
	struct store *store = fixture->sample.store;
	assert_int_equal(store_read_log_entries(store, fixture->published, 1, entries, &count, NULL),
	                 ERR_NOT_FOUND);
	if (fixture->published == 0)
		return;
	size_t first = choose(fixture, fixture->published), limit = 1 + choose(fixture, EVENTS);
	size_t expected = fixture->published - first < limit ? fixture->published - first : limit;
	assert_int_equal(store_read_log_entries(store, first, limit, entries, &count, NULL), OK);
	assert_int_equal(count, expected);
	assert_memory_equal(entries, fixture->entries + first, count * sizeof *entries);
	uint64_t index;
	assert_int_equal(
		store_find_log_index(store, fixture->rounds[first], fixture->places[first], &index, NULL),
		OK);
	assert_int_equal(index, first);
}

/* Blocks are staged, removed, staged with others, and published, in random order. */
TEST_CASE_ON(the_log_has_the_segments_of_written_rounds, struct fixture *fixture)
{
	assert_head(fixture);
	while (fixture->published + fixture->staged < EVENTS - 120) {
		size_t act = choose(fixture, 10);
		if (act < 6)
			stage(fixture, 1 + choose(fixture, act == 0 ? 120 : 20));
		else if (act < 8 && fixture->blocks > 0)
			unstage(fixture);
		else if (fixture->blocks > 0)
			publish(fixture);
		assert_head(fixture);
		assert_entries(fixture);
	}
	assert_true(fixture->published > TILE_WIDTH);
}

/* A round that was staged before the log began has no entries, nor a size; the next one begins. */
TEST_CASE_ON(the_log_begins_with_a_whole_round, struct fixture *fixture)
{
	struct log_head head;
	uint64_t index;
	stage(fixture, 3);
	sample_change(&fixture->sample, "UPDATE round_blocks SET log_first = NULL, log_entries = NULL");
	stage(fixture, 2);
	publish(fixture);
	assert_int_equal(store_get_log_head(fixture->sample.store, &head, NULL), OK);
	assert_int_equal(head.size, 0);
	assert_int_equal(head.round, 1);
	assert_int_equal(store_get_log_head_of(fixture->sample.store, 1, &head, NULL), ERR_NOT_FOUND);
	assert_int_equal(store_find_log_index(fixture->sample.store, 1, 0, &index, NULL),
	                 ERR_NOT_FOUND);
	memmove(fixture->entries, fixture->entries + 5, (EVENTS - 5) * sizeof *fixture->entries);
	fixture->published = 0;
	stage(fixture, 4);
	publish(fixture);
	assert_head(fixture);
	assert_entries(fixture);
	assert_int_equal(store_get_log_head_of(fixture->sample.store, 2, &head, NULL), OK);
	assert_int_equal(head.size, 4);
}

#define ORIGIN "log.example"

static struct log_checkpoint checkpoint_make(uint64_t size)
{
	return (struct log_checkpoint){.origin = ORIGIN,
	                               .size = size,
	                               .root = sha256_of(&size, sizeof size),
	                               .signed_at_us = NOW + (int64_t)size,
	                               .note = slice_of("text and signature")};
}

static void assert_checkpoint(const struct log_checkpoint *found, uint64_t size, int64_t cosigners,
                              const char *cosignatures)
{
	const struct log_checkpoint expected = checkpoint_make(size);
	assert_string_equal(found->origin, ORIGIN);
	assert_int_equal(found->size, size);
	assert_true(sha256_equal(&found->root, &expected.root));
	assert_int_equal(found->signed_at_us, expected.signed_at_us);
	assert_true(slice_equal(found->note, expected.note));
	assert_int_equal(found->cosigners, cosigners);
	assert_true(slice_is(found->cosignatures, cosignatures));
}

/* Lists the final checkpoints, of which `second` 0 means that there is one only. */
static void assert_published(struct store *store, uint64_t first, uint64_t second)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct log_checkpoint *items;
	size_t count;
	assert_int_equal(store_list_final_checkpoints(store, ORIGIN, 8, &arena, &items, &count, NULL),
	                 OK);
	assert_int_equal(count, second ? 2 : 1);
	assert_int_equal(items[0].size, first);
	if (second)
		assert_checkpoint(&items[1], second, 1, "one line");
	assert_int_equal(store_list_final_checkpoints(store, ORIGIN, 1, &arena, &items, &count, NULL),
	                 OK);
	assert_int_equal(count, 1);
	assert_int_equal(items[0].size, first);
	assert_int_equal(store_list_final_checkpoints(store, "other", 8, &arena, &items, &count, NULL),
	                 OK);
	assert_int_equal(count, 0);
}

static bool has_ended(struct store *store, const char *origin)
{
	bool ended;
	assert_int_equal(store_get_log_end(store, origin, &ended, NULL), OK);
	return ended;
}

/* A later change of the name must not continue one of them. */
TEST_CASE_ON(a_rollback_ends_all_logs, struct fixture *fixture)
{
	static const char *const origins[] = {ORIGIN, "log.example/former", "log.example/first"};
	struct store *store = fixture->sample.store;
	const struct accepted_rollback rollback = {.accepted_at_us = NOW,
	                                           .node = "node-1",
	                                           .reason = slice_of("a disk failed"),
	                                           .ended_log = ORIGIN};
	for (size_t i = 1; i < 3; i++)
		for (uint64_t size = 1; size < 3; size++) {
			struct log_checkpoint checkpoint = checkpoint_make(size);
			checkpoint.origin = origins[i];
			assert_int_equal(store_add_log_checkpoint(store, &checkpoint, NULL), OK);
		}
	for (size_t i = 0; i < 3; i++)
		assert_false(has_ended(store, origins[i]));
	assert_int_equal(store_record_rollback(store, &rollback, NULL), OK);
	for (size_t i = 0; i < 3; i++)
		assert_true(has_ended(store, origins[i]));
	assert_false(has_ended(store, "log.example/next"));
	struct log_checkpoint next = checkpoint_make(1);
	next.origin = "log.example/next";
	assert_int_equal(store_add_log_checkpoint(store, &next, NULL), OK);
	assert_false(has_ended(store, next.origin));
}

/* Cosignatures replace those that the caller has read; the final checkpoints are those that count.
 */
TEST_CASE_ON(checkpoints_gain_cosignatures, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct log_checkpoint found, first = checkpoint_make(5), second = checkpoint_make(9);
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	assert_int_equal(
		store_get_newest_checkpoint(store, ORIGIN, CHECKPOINT_ANY, &arena, &found, NULL),
		ERR_NOT_FOUND);
	assert_int_equal(store_set_cosignatures(store, &first, slice_of(""), NULL), ERR_NOT_FOUND);
	assert_int_equal(store_add_log_checkpoint(store, &first, NULL), OK);
	assert_int_equal(store_add_log_checkpoint(store, &second, NULL), OK);
	first.cosignatures = slice_of("two lines");
	first.cosigners = 2;
	first.is_final = true;
	assert_int_equal(store_set_cosignatures(store, &first, slice_of(""), NULL), OK);
	first.note = slice_of("another text");
	assert_int_equal(store_add_log_checkpoint(store, &first, NULL), OK); /* it stays as it is */
	first.cosigners = 3;
	first.cosignatures = slice_of("three lines");
	assert_int_equal(store_set_cosignatures(store, &first, slice_of(""), NULL), ERR_NOT_FOUND);
	assert_int_equal(store_set_cosignatures(store, &first, slice_of("two lines"), NULL), OK);
	first.cosigners = 1; /* the others were not readable */
	first.cosignatures = slice_of("one line");
	assert_int_equal(store_set_cosignatures(store, &first, slice_of("three lines"), NULL), OK);
	first.is_final = false;
	assert_int_equal(store_set_cosignatures(store, &first, slice_of("one line"), NULL),
	                 ERR_NOT_FOUND);

	assert_int_equal(
		store_get_newest_checkpoint(store, ORIGIN, CHECKPOINT_ANY, &arena, &found, NULL), OK);
	assert_checkpoint(&found, 9, 0, "");
	assert_false(found.is_final);
	assert_int_equal(
		store_get_newest_checkpoint(store, ORIGIN, CHECKPOINT_FINAL, &arena, &found, NULL), OK);
	assert_checkpoint(&found, 5, 1, "one line");
	assert_true(found.is_final);
	assert_int_equal(
		store_get_newest_checkpoint(store, "other", CHECKPOINT_ANY, &arena, &found, NULL),
		ERR_NOT_FOUND);

	assert_published(store, 5, 0);
	second.is_final = true;
	assert_int_equal(store_set_cosignatures(store, &second, slice_of(""), NULL), OK);
	assert_published(store, 9, 5);

	assert_int_equal(store_find_covering_checkpoint(store, ORIGIN, 4, 0, &arena, &found, NULL), OK);
	assert_checkpoint(&found, 5, 1, "one line");
	assert_int_equal(store_find_covering_checkpoint(store, ORIGIN, 5, 0, &arena, &found, NULL), OK);
	assert_checkpoint(&found, 9, 0, "");
	assert_int_equal(store_find_covering_checkpoint(store, ORIGIN, 5, 1, &arena, &found, NULL),
	                 ERR_NOT_FOUND);
	assert_int_equal(store_find_covering_checkpoint(store, ORIGIN, 9, 0, &arena, &found, NULL),
	                 ERR_NOT_FOUND);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		server_url = argv[1];
	return tests_run(NULL, NULL, set_up, tear_down);
}
