/* Merkle trees of transparency logs: RFC 6962 section 2.1, RFC 9162 section 2.1, with SHA-256. Pure
 * functions; no state is shared between threads.
 *
 * Unlike the trees of timestamps (seal/tree.h), these trees only grow: a consistency proof shows
 * that a tree begins with all leaves of an earlier one. Sizes and indexes are below
 * MERKLE_SIZE_MAX. */
#ifndef TLOG_MERKLE_H
#define TLOG_MERKLE_H

#include "base/digest.h"
#include "base/error.h"

#define MERKLE_SIZE_MAX (UINT64_C(1) << 53) /* exact in JSON, too */
#define MERKLE_PATH_MAX 63                  /* hashes of a proof */

struct merkle_path {
	size_t count;
	struct sha256 hashes[MERKLE_PATH_MAX]; /* in the order of the RFC */
};

struct sha256 merkle_leaf(struct slice entry);
struct sha256 merkle_node(const struct sha256 *left, const struct sha256 *right);
struct sha256 merkle_empty_root(void);

/* Computes the root to which an inclusion proof leads. Returns false if it has another number of
 * hashes, or the index is not in the tree. */
bool merkle_root_of_path(const struct sha256 *leaf, uint64_t index, uint64_t size,
                         const struct merkle_path *path, struct sha256 *ret_root) MUST_CHECK;
/* Returns whether the leaf has that index in the tree of `size` leaves with that root (RFC 9162
 * section 2.1.3.2). */
bool merkle_is_included(const struct sha256 *leaf, uint64_t index, uint64_t size,
                        const struct merkle_path *path, const struct sha256 *root) MUST_CHECK;
/* Returns whether the tree of `size` leaves begins with that of `old_size` leaves (RFC 9162 section
 * 2.1.4.2). The empty tree begins every tree; for it, and for two trees of the same size, the path
 * must be empty. */
bool merkle_is_consistent(uint64_t old_size, const struct sha256 *old_root, uint64_t size,
                          const struct sha256 *root, const struct merkle_path *path) MUST_CHECK;

/* Computes the two roots to which the hashes of a consistency proof lead, 0 < old_size < size.
 * Unlike a path, the hashes begin with the root of the last complete subtree of the old tree also
 * if that is the whole old tree. So a proof can show that a tree does not begin with another one.
 * Returns false if their number is wrong. */
bool merkle_consistency_roots(uint64_t old_size, uint64_t size, const struct sha256 *hashes,
                              size_t count, struct sha256 *ret_old_root, struct sha256 *ret_root)
	MUST_CHECK;

/* Reads nodes of a tree. Level 0 has the leaves; node `index` of level n is the root of the 2^n
 * leaves from index * 2^n, all of which are in the tree. Returns 0 or the error. */
struct merkle_source {
	int (*read)(void *context, unsigned level, uint64_t index, struct sha256 *ret,
	            struct error *error);
	void *context;
};

/* These compute the root of the first `size` leaves, the proof that leaf `index` is among them, and
 * the proof that they begin with the first `old_size` leaves. They return the errors of the
 * source. */
int merkle_root(const struct merkle_source *source, uint64_t size, struct sha256 *ret,
                struct error *error) MUST_CHECK;
int merkle_prove_inclusion(const struct merkle_source *source, uint64_t index, uint64_t size,
                           struct merkle_path *ret, struct error *error) MUST_CHECK;
int merkle_prove_consistency(const struct merkle_source *source, uint64_t old_size, uint64_t size,
                             struct merkle_path *ret, struct error *error) MUST_CHECK;

#endif
