/* Hash trees of RFC 4998 with SHA-256. Pure functions; no state is shared between threads.
 *
 * Leaves keep the given order. Nodes 2i and 2i+1 of a level are combined into the digest of both
 * hashes, sorted ascending as unsigned bytes and concatenated; a last node without a sibling moves
 * up unchanged. A step of a proof therefore has exactly one sibling, and levels without a sibling
 * have no step.
 *
 * Written as a reducedHashtree (RFC 4998 section 4.2), the first list of a proof contains the leaf
 * and its sibling, and each later list one sibling. A leaf that is the root has no list: section
 * 4.3 hashes the first list whatever its length, so {leaf} would mean H(leaf), while an absent
 * reducedHashtree means that the timestamp covers the leaf directly. */
#ifndef SEAL_TREE_H
#define SEAL_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/digest.h"
#include "base/json.h"

#define TREE_LEAVES_MAX 131072
#define TREE_PROOF_MAX 40 /* siblings: 15 for a segment, 17 for a round, and reserve */

struct hash_tree;

struct tree_proof {
	struct sha256 leaf;
	size_t count;
	struct sha256 siblings[TREE_PROOF_MAX]; /* from the leaf upwards */
};

/* Builds the complete tree in memory (64 bytes per leaf). `count` is 1 to TREE_LEAVES_MAX. Copies
 * the leaves. Returns 0 or ERR_NO_MEMORY. */
int tree_build(const struct sha256 *leaves, size_t count, struct hash_tree **ret_tree) MUST_CHECK;
void tree_free(struct hash_tree *tree); /* NULL-safe */
struct sha256 tree_root(const struct hash_tree *tree);
/* Builds the proof of leaf `index`, which counts from 0 and must be below the number of leaves. */
void tree_prove(const struct hash_tree *tree, size_t index, struct tree_proof *ret_proof);

/* Returns the root that a proof leads to. A proof is correct if this equals a trusted root. */
struct sha256 tree_proof_root(const struct tree_proof *proof);
/* Joins two proofs into one from lower's leaf to upper's root; the leaf of `upper` must be the root
 * of `lower`. Returns 0, or ERR_INVALID_EVIDENCE if they do not meet or the result exceeds
 * TREE_PROOF_MAX. */
int tree_proof_compose(const struct tree_proof *lower, const struct tree_proof *upper,
                       struct tree_proof *ret_proof) MUST_CHECK;

/* Writes a proof as JSON: an array with an array of hex hashes, ascending, for each list of the
 * reducedHashtree; [] for a leaf that is the root. */
void tree_proof_write(const struct tree_proof *proof, struct json_writer *writer, const char *name);

#define TREE_AUTO __attribute__((cleanup(tree_cleanup)))
static inline void tree_cleanup(struct hash_tree **tree)
{
	tree_free(*tree);
}

#endif
