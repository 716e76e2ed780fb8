#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "failing.h"
#include "service/segment.h"

/* The tree over the kept nodes is the tree over all leaves, whatever their number. */
static void test_build(void **state)
{
	static const size_t counts[] = {2,   3,   127, 128, 129, 130, 191, 192,   255,   256,
	                                257, 300, 384, 385, 512, 513, 999, 16383, 16384, 16385};
	struct sha256 *leaves = malloc(SEGMENT_LEAVES_MAX * sizeof *leaves);
	for (size_t i = 0; i < SEGMENT_LEAVES_MAX; i++)
		leaves[i] = sha256_of(&i, sizeof i);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct sha256 nodes[SEGMENT_NODES_MAX], root;
		size_t node_count;
		assert_int_equal(segment_build(leaves, counts[i], nodes, &node_count, &root), OK);
		assert_int_equal(node_count, (counts[i] + SEGMENT_NODE_LEAVES - 1) / SEGMENT_NODE_LEAVES);
		TREE_AUTO struct hash_tree *tree = NULL;
		assert_int_equal(tree_build(leaves, counts[i], &tree), OK);
		struct sha256 whole = tree_root(tree);
		assert_true(sha256_equal(&root, &whole));
	}
	free(leaves);
}

static void test_read_document(void **state)
{
	struct sha256 hash = sha256_of("seal", 4);
	struct seal_document seal = {
		.segment_id = "seg_a1",
		.channel_id = "chn_a",
		.chain = "live",
		.first_sequence = 3,
		.last_sequence = 9,
		.chain_hash_before = hash,
		.chain_hash_last = sha256_of("last", 4),
		.previous_token_hash = &hash,
		.clock = {.synchronized = true, .max_error_us = 1234, .source = "ntp_adjtime"},
	};
	BUF_AUTO struct buf text;
	buf_init(&text, SEAL_DOCUMENT_MAX);
	seal_document_write(&seal, &text);
	struct segment_record segment = {
		.segment_id = "seg_a1",
		.first_sequence = 3,
		.last_sequence = 9,
		.document = buf_slice(&text),
	};
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 1 << 20);
	struct segment_document read;
	struct error error = {0};
	assert_int_equal(segment_read_document(&segment, &arena, &read, &error), OK);
	assert_null(read.seal.previous_seal_hash);
	assert_true(sha256_equal(read.seal.previous_token_hash, &hash));
	assert_true(read.seal.clock.synchronized);
	/* Memory that is short for a moment says nothing against the document. */
	int at = 0, code;
	const char *failed;
	do {
		ARENA_AUTO struct arena small;
		arena_init(&small, 1 << 20);
		failing_arm(FAILING_MEMORY, ++at);
		code = segment_read_document(&segment, &small, &read, &error);
		failed = failing_disarm();
		assert_int_equal(code, failed ? ERR_NO_MEMORY : OK);
	} while (failed);
	assert_true(at > 2);
	segment.last_sequence = 10;
	assert_int_equal(segment_read_document(&segment, &arena, &read, &error), ERR_CORRUPT);
	segment.last_sequence = 9;
	segment.document.size--;
	assert_int_equal(segment_read_document(&segment, &arena, &read, &error), ERR_CORRUPT);
	segment.document = slice_of("{}");
	assert_int_equal(segment_read_document(&segment, &arena, &read, &error), ERR_CORRUPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build),
		cmocka_unit_test(test_read_document),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
