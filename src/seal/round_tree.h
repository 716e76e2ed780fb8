/* The tree of a round, over the roots of its segments. These stand in blocks; the leaves of the
 * upper tree are the blocks' roots. So a round of a million segments needs neither all of them in
 * memory nor a path kept with each: one block and the blocks' roots lead from a segment to the
 * round. Roots are given as bytes, hash by hash. Pure. */
#ifndef SEAL_ROUND_TREE_H
#define SEAL_ROUND_TREE_H

#include "seal/tree.h"

/* Proofs stay within TREE_PROOF_MAX: 15 in a segment, 10 in a block, 12 above. */
#define ROUND_BLOCK_LEAVES_MAX 1024
#define ROUND_BLOCKS_MAX 4096

/* The root over a block's roots, or over those of all blocks. ERR_INVALID_EVIDENCE when their
 * number is not possible (0, above count_max, or no whole one). */
int round_tree_root(struct slice roots, size_t count_max, struct sha256 *ret_root) MUST_CHECK;
/* The proof of a segment's root, number `index` of block number `block`, up to the round's.
 * ERR_INVALID_EVIDENCE when it is not at that place or does not lead there. */
int round_tree_prove(const struct sha256 *root, struct slice block_roots, size_t index,
                     struct slice blocks, size_t block, const struct sha256 *round_root,
                     struct tree_proof *ret_proof) MUST_CHECK;

#endif
