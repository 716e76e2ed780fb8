/* Trees over what archive timestamps cover (RFC 4998), by any digest, with the rules of
 * seal/tree.h. Many leaves stand in blocks, and the leaves of the tree above are the blocks' roots:
 * since a block's size is a power of two, that is the tree over all leaves, and one block and the
 * blocks' roots lead from a leaf to the root. Pure. */
#ifndef SEAL_EVIDENCE_TREE_H
#define SEAL_EVIDENCE_TREE_H

#include "seal/evidence_record.h"

#define EVIDENCE_BLOCK_LEAVES 1024 /* in each block but the last */
#define EVIDENCE_TREE_MAX 65536    /* leaves of one tree, and blocks below one */

/* The root over 1 to EVIDENCE_TREE_MAX leaves of one algorithm. 0 or ERR_NO_MEMORY. */
int evidence_tree_root(const struct digest *leaves, size_t count, struct digest *ret_root)
	MUST_CHECK;
/* Appends to `path` the way from leaf `index` to that root. */
int evidence_tree_climb(const struct digest *leaves, size_t count, size_t index,
                        struct evidence_path *path) MUST_CHECK;

/* Hashes of one algorithm as bytes, one behind the other, and back: NULL without memory, or when
 * their number is not possible (0, above EVIDENCE_TREE_MAX, or no whole one). */
void evidence_hashes_write(const struct digest *hashes, size_t count, struct buf *out);
struct digest *evidence_hashes_read(struct slice bytes, enum digest_algorithm algorithm,
                                    struct arena *arena, size_t *ret_count) MUST_CHECK;

#endif
