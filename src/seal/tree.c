#include "seal/tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define LEVELS_MAX 18 /* 2^17 leaves and the root */

struct hash_tree {
	size_t level_count;
	size_t starts[LEVELS_MAX]; /* of each level in `nodes`, leaves first */
	size_t counts[LEVELS_MAX];
	struct sha256 nodes[];
};

/* Returns the parent of two nodes. */
static struct sha256 combine(const struct sha256 *a, const struct sha256 *b)
{
	struct sha256 pair[2] = {*a, *b};

	if (memcmp(a->bytes, b->bytes, SHA256_SIZE) > 0) {
		pair[0] = *b;
		pair[1] = *a;
	}
	return sha256_of(pair, sizeof pair);
}

static void build_level(struct hash_tree *tree, size_t level)
{
	const struct sha256 *below = tree->nodes + tree->starts[level - 1];
	struct sha256 *here = tree->nodes + tree->starts[level];
	size_t count = tree->counts[level - 1];

	for (size_t i = 0; i + 1 < count; i += 2)
		here[i / 2] = combine(&below[i], &below[i + 1]);
	if (count % 2 == 1)
		here[count / 2] = below[count - 1];
}

int tree_build(const struct sha256 *leaves, size_t count, struct hash_tree **ret_tree)
{
	size_t level_count = 0;
	size_t starts[LEVELS_MAX];
	size_t counts[LEVELS_MAX];
	size_t total = 0;

	assert(count >= 1 && count <= TREE_LEAVES_MAX);
	for (size_t width = count;; width = (width + 1) / 2) {
		assert(level_count < LEVELS_MAX);
		starts[level_count] = total;
		counts[level_count++] = width;
		total += width;
		if (width == 1)
			break;
	}
	struct hash_tree *tree = malloc(sizeof *tree + total * sizeof *tree->nodes);
	if (!tree)
		return ERR_NO_MEMORY;
	tree->level_count = level_count;
	memcpy(tree->starts, starts, level_count * sizeof *starts);
	memcpy(tree->counts, counts, level_count * sizeof *counts);
	memcpy(tree->nodes, leaves, count * sizeof *leaves);
	for (size_t level = 1; level < level_count; level++)
		build_level(tree, level);
	*ret_tree = tree;
	return 0;
}

void tree_free(struct hash_tree *tree)
{
	free(tree);
}

struct sha256 tree_root(const struct hash_tree *tree)
{
	assert(tree->level_count >= 1 && tree->counts[tree->level_count - 1] == 1);
	return tree->nodes[tree->starts[tree->level_count - 1]];
}

void tree_prove(const struct hash_tree *tree, size_t index, struct tree_proof *ret_proof)
{
	struct tree_proof proof = {0};

	assert(index < tree->counts[0]);
	proof.leaf = tree->nodes[index];
	for (size_t level = 0; level + 1 < tree->level_count; level++, index /= 2) {
		size_t sibling = index ^ 1;
		assert(proof.count < TREE_PROOF_MAX);
		if (sibling < tree->counts[level])
			proof.siblings[proof.count++] = tree->nodes[tree->starts[level] + sibling];
	}
	*ret_proof = proof;
}

struct sha256 tree_proof_root(const struct tree_proof *proof)
{
	struct sha256 node = proof->leaf;
	assert(proof->count <= TREE_PROOF_MAX);

	for (size_t i = 0; i < proof->count; i++)
		node = combine(&node, &proof->siblings[i]);
	return node;
}

int tree_proof_compose(const struct tree_proof *lower, const struct tree_proof *upper,
                       struct tree_proof *ret_proof)
{
	struct sha256 meeting = tree_proof_root(lower);
	struct tree_proof proof = *lower;

	if (!sha256_equal(&meeting, &upper->leaf) || upper->count > TREE_PROOF_MAX - lower->count)
		return ERR_INVALID_EVIDENCE;
	memcpy(proof.siblings + proof.count, upper->siblings, upper->count * sizeof *upper->siblings);
	proof.count += upper->count;
	*ret_proof = proof;
	return 0;
}

/* Writes list `index` of the reducedHashtree and returns its number of hashes. */
static size_t proof_list(const struct tree_proof *proof, size_t index, struct sha256 hashes[2])
{
	assert(index < proof->count);
	hashes[0] = proof->siblings[index];
	if (index > 0)
		return 1;
	bool leaf_first = memcmp(proof->leaf.bytes, hashes[0].bytes, SHA256_SIZE) <= 0;
	hashes[1] = leaf_first ? hashes[0] : proof->leaf;
	if (leaf_first)
		hashes[0] = proof->leaf;
	return 2;
}

void tree_proof_write(const struct tree_proof *proof, struct json_writer *writer, const char *name)
{
	json_begin_array(writer, name);
	for (size_t i = 0; i < proof->count; i++) {
		struct sha256 hashes[2];
		size_t count = proof_list(proof, i, hashes);
		json_begin_array(writer, NULL);
		for (size_t j = 0; j < count; j++)
			json_hex(writer, NULL, hashes[j].bytes, SHA256_SIZE);
		json_end_array(writer);
	}
	json_end_array(writer);
}
