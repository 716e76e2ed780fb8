/* The frontier of a tree that grows: the roots of its complete subtrees, from the left. They are
 * all that is needed to append leaves and to compute the root. Pure functions. */
#ifndef TLOG_FRONTIER_H
#define TLOG_FRONTIER_H

#include "tlog/merkle.h"

#define FRONTIER_MAX 54 /* subtrees of a tree of MERKLE_SIZE_MAX leaves, and one more */

/* A zeroed frontier is that of the empty tree. */
struct frontier {
	uint64_t size; /* leaves */
	size_t count;
	struct sha256 hashes[FRONTIER_MAX];
};

/* Reads the frontier of the first `size` leaves. Returns 0 or the error of the source. */
int frontier_read(const struct merkle_source *source, uint64_t size, struct frontier *ret,
                  struct error *error) MUST_CHECK;
/* Appends a leaf. The tree must be smaller than MERKLE_SIZE_MAX. */
void frontier_add(struct frontier *frontier, const struct sha256 *leaf);
struct sha256 frontier_root(const struct frontier *frontier);

#endif
