/* The hash tree of a round, over the roots of its segments. The segments are split into blocks; the
 * leaves of the upper tree are the roots of the blocks. A round of a million segments therefore
 * needs neither all segments in memory nor a stored path per segment: one block and all block roots
 * prove a segment. Roots are passed as concatenated bytes. Pure functions. */
#ifndef SEAL_ROUND_TREE_H
#define SEAL_ROUND_TREE_H

#include "seal/tree.h"

/* Keeps proofs within TREE_PROOF_MAX: 15 siblings in a segment, 10 in a block, 12 above. */
#define ROUND_BLOCK_LEAVES_MAX 1024
#define ROUND_BLOCKS_MAX 4096

/* Computes the root of a block from its segments' roots, or the root of the round from the blocks'
 * roots. ERR_INVALID_EVIDENCE: invalid size (0, above count_max hashes, or a partial hash). */
int round_tree_root(struct slice roots, size_t count_max, struct sha256 *ret_root) MUST_CHECK;
/* Builds the proof from a segment's root, number `index` of block number `block`, to the round's
 * root. ERR_INVALID_EVIDENCE: the root is not at that place, or the proof leads elsewhere. */
int round_tree_prove(const struct sha256 *root, struct slice block_roots, size_t index,
                     struct slice blocks, size_t block, const struct sha256 *round_root,
                     struct tree_proof *ret_proof) MUST_CHECK;

#endif
