/* A whole Merkle tree (merkle.h) in memory, for the leaves of one batch. Pure functions. */
#ifndef TLOG_BATCH_TREE_H
#define TLOG_BATCH_TREE_H

#include "tlog/merkle.h"

#define BATCH_TREE_LEAVES_MAX 1024
#define BATCH_TREE_NODES_MAX (2 * BATCH_TREE_LEAVES_MAX + 16)
#define BATCH_TREE_PATH_MAX 10 /* hashes of a path */

struct batch_tree {
	size_t count; /* leaves */
	/* The leaves, then each level above them; a lone last node is repeated in the next level. */
	struct sha256 nodes[BATCH_TREE_NODES_MAX];
};

/* Computes the nodes above `tree->count` leaves, 1 to BATCH_TREE_LEAVES_MAX, which the caller has
 * set in tree->nodes. Returns the root. */
struct sha256 batch_tree_build(struct batch_tree *tree);
/* Returns the number of hashes of a leaf's path, which it writes from the leaf upwards. */
size_t batch_tree_path(const struct batch_tree *tree, size_t index,
                       struct sha256 path[BATCH_TREE_PATH_MAX]);

#endif
