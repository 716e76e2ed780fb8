#include "support.h"

#include "seal/round_tree.h"

static struct sha256 leaf(size_t number)
{
	return sha256_of(&number, sizeof number);
}

/* Blocks of that many segments each lead to one root, and every segment leads to it. */
static void expect_whole(const size_t *sizes, size_t count)
{
	static struct sha256 leaves[ROUND_BLOCKS_MAX][8];
	struct sha256 blocks[64], root, block_root;
	size_t next = 0;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < sizes[i]; k++)
			leaves[i][k] = leaf(next++);
		assert_int_equal(round_tree_root(slice_make(leaves[i], sizes[i] * sizeof *leaves[i]),
		                                 ROUND_BLOCK_LEAVES_MAX, &blocks[i]),
		                 OK);
	}
	struct slice upper = slice_make(blocks, count * sizeof *blocks);
	assert_int_equal(round_tree_root(upper, ROUND_BLOCKS_MAX, &root), OK);
	for (size_t i = 0; i < count; i++) {
		struct slice lower = slice_make(leaves[i], sizes[i] * sizeof *leaves[i]);
		for (size_t k = 0; k < sizes[i]; k++) {
			struct tree_proof proof;
			assert_int_equal(round_tree_prove(&leaves[i][k], lower, k, upper, i, &root, &proof),
			                 OK);
			assert_true(sha256_equal(&proof.leaf, &leaves[i][k]));
			struct sha256 led = tree_proof_root(&proof);
			assert_true(sha256_equal(&led, &root));
			/* Another place, block or round does not verify. */
			block_root = root;
			block_root.bytes[7] ^= 1;
			assert_int_equal(
				round_tree_prove(&leaves[i][k], lower, k, upper, i, &block_root, &proof),
				ERR_INVALID_EVIDENCE);
			assert_int_equal(round_tree_prove(&leaves[i][k], lower, k + 1, upper, i, &root, &proof),
			                 ERR_INVALID_EVIDENCE);
			assert_int_equal(round_tree_prove(&leaves[i][k], lower, k, upper, i + 1, &root, &proof),
			                 ERR_INVALID_EVIDENCE);
		}
	}
}

TEST_CASE(every_segment_leads_to_the_round)
{
	static const size_t one[] = {1}, many[] = {8, 8, 8, 8, 8}, uneven[] = {3, 1, 8, 2, 5, 1, 1};
	expect_whole(one, 1);
	expect_whole(many, 5);
	expect_whole(uneven, 7);
}

/* With full blocks, the tree of the round is the tree over all segments. */
TEST_CASE(full_blocks_make_the_tree_over_all)
{
	enum { BLOCKS = 5, FULL = 8 };
	struct sha256 leaves[BLOCKS * FULL], blocks[BLOCKS], root;
	for (size_t i = 0; i < BLOCKS * FULL; i++)
		leaves[i] = leaf(i);
	for (size_t i = 0; i < BLOCKS; i++)
		assert_int_equal(round_tree_root(slice_make(&leaves[i * FULL], FULL * sizeof *leaves),
		                                 ROUND_BLOCK_LEAVES_MAX, &blocks[i]),
		                 OK);
	assert_int_equal(round_tree_root(slice_make(blocks, sizeof blocks), ROUND_BLOCKS_MAX, &root),
	                 OK);
	TREE_AUTO struct hash_tree *tree = NULL;
	assert_int_equal(tree_build(leaves, BLOCKS * FULL, &tree), OK);
	struct sha256 whole = tree_root(tree);
	assert_true(sha256_equal(&whole, &root));
}

TEST_CASE(impossible_numbers_are_refused)
{
	static struct sha256 leaves[5];
	struct sha256 root;
	assert_int_equal(round_tree_root(slice_make(leaves, 0), 4, &root), ERR_INVALID_EVIDENCE);
	assert_int_equal(round_tree_root(slice_make(leaves, 33), 4, &root), ERR_INVALID_EVIDENCE);
	assert_int_equal(round_tree_root(slice_make(leaves, sizeof leaves), 4, &root),
	                 ERR_INVALID_EVIDENCE);
	assert_int_equal(round_tree_root(slice_make(leaves, sizeof leaves), 5, &root), OK);
}

/* The proof of a segment and its event stays within limits in the largest round. */
TEST_CASE(the_longest_proof_fits)
{
	size_t levels = 0;
	for (size_t width = (size_t)ROUND_BLOCK_LEAVES_MAX * ROUND_BLOCKS_MAX; width > 1; width /= 2)
		levels++;
	assert_true(levels + 15 <= TREE_PROOF_MAX);
}

TEST_MAIN(NULL, NULL)
