/* Hash trees by RFC 4998 with SHA-256. Pure; no function shares anything between threads.
 *
 * Leaves stand in the order given; nodes 2i and 2i+1 of a level are combined as the digest of
 * both hashes, sorted as unsigned bytes ascending and concatenated; a lone last node is carried up
 * as it is. So each step of a proof has exactly one sibling hash, and lone steps none.
 *
 * A proof written as a reducedHashtree (RFC 4998 section 4.2): the first list holds the leaf and
 * its sibling, each later list one sibling. A leaf that is the root itself has no list at all:
 * section 4.3 hashes the first list whatever its length, so {leaf} would mean H(leaf), while an
 * absent reducedHashtree means that the time-stamp covers the leaf directly. */
#ifndef SEAL_TREE_H
#define SEAL_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/digest.h"
#include "base/json.h"

#define TREE_LEAVES_MAX 131072
#define TREE_PROOF_MAX 40 /* siblings: 15 for a segment, 17 for a round, and room */

struct hash_tree;

struct tree_proof {
	struct sha256 leaf;
	size_t count;
	struct sha256 siblings[TREE_PROOF_MAX]; /* from the leaf upwards */
};

/* Builds the whole tree in memory (64 bytes a leaf). count is 1 to TREE_LEAVES_MAX; 0, or
 * ERR_NO_MEMORY. The leaves are copied. */
int tree_build(const struct sha256 *leaves, size_t count, struct hash_tree **ret_tree) MUST_CHECK;
void tree_free(struct hash_tree *tree); /* NULL-safe */
struct sha256 tree_root(const struct hash_tree *tree);
/* index counts from 0 and must be below the number of leaves. */
void tree_prove(const struct hash_tree *tree, size_t index, struct tree_proof *ret_proof);

/* The root that a proof leads to. A proof is right when this equals a root one trusts. */
struct sha256 tree_proof_root(const struct tree_proof *proof);
/* Puts `upper` (whose leaf is the root of `lower`) on top: one chain from lower's leaf to upper's
 * root. 0, or ERR_INVALID_EVIDENCE when they do not meet or would be longer than TREE_PROOF_MAX. */
int tree_proof_compose(const struct tree_proof *lower, const struct tree_proof *upper,
                       struct tree_proof *ret_proof) MUST_CHECK;

/* As JSON: an array with an array of hex hashes, ascending, for each list of the reducedHashtree;
 * [] for a lone leaf. */
void tree_proof_write(const struct tree_proof *proof, struct json_writer *writer, const char *name);

#define TREE_AUTO __attribute__((cleanup(tree_cleanup)))
static inline void tree_cleanup(struct hash_tree **tree)
{
	tree_free(*tree);
}

#endif
