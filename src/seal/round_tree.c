#include "seal/round_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int build(struct slice roots, size_t count_max, struct hash_tree **ret_tree)
{
	size_t count = roots.size / SHA256_SIZE;
	if (count < 1 || count > count_max || roots.size % SHA256_SIZE)
		return ERR_INVALID_EVIDENCE;
	struct sha256 *leaves = malloc(count * sizeof *leaves);
	if (!leaves)
		return ERR_NO_MEMORY;
	memcpy(leaves, roots.data, roots.size);
	int result = tree_build(leaves, count, ret_tree);
	free(leaves);
	return result;
}

int round_tree_root(struct slice roots, size_t count_max, struct sha256 *ret_root)
{
	TREE_AUTO struct hash_tree *tree = NULL;
	int result = build(roots, count_max, &tree);
	if (!result)
		*ret_root = tree_root(tree);
	return result;
}

int round_tree_prove(const struct sha256 *root, struct slice block_roots, size_t index,
                     struct slice blocks, size_t block, const struct sha256 *round_root,
                     struct tree_proof *ret_proof)
{
	if (index >= block_roots.size / SHA256_SIZE || block >= blocks.size / SHA256_SIZE)
		return ERR_INVALID_EVIDENCE;
	TREE_AUTO struct hash_tree *lower = NULL;
	TREE_AUTO struct hash_tree *upper = NULL;
	int result = build(block_roots, ROUND_BLOCK_LEAVES_MAX, &lower);
	if (!result)
		result = build(blocks, ROUND_BLOCKS_MAX, &upper);
	if (result)
		return result;
	struct tree_proof low, high, proof;
	tree_prove(lower, index, &low);
	tree_prove(upper, block, &high);
	result = tree_proof_compose(&low, &high, &proof);
	struct sha256 found = tree_root(upper);
	if (!result && (!sha256_equal(&proof.leaf, root) || !sha256_equal(&found, round_root)))
		result = ERR_INVALID_EVIDENCE;
	if (!result)
		*ret_proof = proof;
	return result;
}
