/* Hash trees over the hashes that archive timestamps cover (RFC 4998), with any digest algorithm
 * and the rules of seal/tree.h. Large trees are split into blocks of leaves; the leaves of the
 * upper tree are the roots of the blocks. Since the block size is a power of two, the result equals
 * the tree over all leaves, and one block together with all block roots is enough to prove a leaf.
 * Pure functions. */
#ifndef SEAL_EVIDENCE_TREE_H
#define SEAL_EVIDENCE_TREE_H

#include "seal/evidence_record.h"

#define EVIDENCE_TREE_MAX 65536 /* leaves of a tree, and blocks of a tree */

/* Computes the root over 1 to EVIDENCE_TREE_MAX leaves of one algorithm. Returns 0 or
 * ERR_NO_MEMORY. */
int evidence_tree_root(const struct digest *leaves, size_t count, struct digest *ret_root)
	MUST_CHECK;
/* Appends the siblings from leaf `index` to that root to `path`. */
int evidence_tree_climb(const struct digest *leaves, size_t count, size_t index,
                        struct evidence_path *path) MUST_CHECK;

/* Write and read hashes of one algorithm as concatenated bytes. Reading returns NULL without memory
 * or for an invalid size (0, above EVIDENCE_TREE_MAX hashes, or a partial hash). */
void evidence_hashes_write(const struct digest *hashes, size_t count, struct buf *out);
struct digest *evidence_hashes_read(struct slice bytes, enum digest_algorithm algorithm,
                                    struct arena *arena, size_t *ret_count) MUST_CHECK;

#endif
