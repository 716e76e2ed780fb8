/* A segment's hash tree: made by the sealer, walked for proofs. Its leaves are the chain hashes of
 * the events and, last, the digest of the seal document. The tree over the roots of each
 * SEGMENT_NODE_LEAVES leaves is the tree over all leaves, since that number is a power of two. */
#ifndef SERVICE_SEGMENT_H
#define SERVICE_SEGMENT_H

#include "seal/document.h"
#include "seal/tree.h"
#include "service/service.h"
#include "store/events/segments.h"

#define SEGMENT_LEAVES_MAX (SEGMENT_EVENTS_MAX + 1)
#define SEGMENT_NODES_MAX ((SEGMENT_LEAVES_MAX + SEGMENT_NODE_LEAVES - 1) / SEGMENT_NODE_LEAVES)

/* The nodes kept with the segment, and its root. count is 1 to SEGMENT_LEAVES_MAX. */
int segment_build(const struct sha256 *leaves, size_t count,
                  struct sha256 ret_nodes[SEGMENT_NODES_MAX], size_t *ret_node_count,
                  struct sha256 *ret_root) MUST_CHECK;

/* The proof of one event up to the round's root, from the 128 events around it. ERR_CORRUPT when it
 * does not lead to the segment's root. */
int segment_prove(struct service *service, const struct segment_record *segment, int64_t sequence,
                  struct tree_proof *ret_proof, struct error *error) MUST_CHECK;
/* From the segment's root up to the round's. */
int segment_path(const struct segment_record *segment, struct tree_proof *ret_path,
                 struct error *error) MUST_CHECK;

struct segment_document {
	struct seal_document seal;
	struct sha256 previous_seal_hash; /* pointed to by the above */
	struct sha256 previous_token_hash;
};
/* Reads the stored seal document; texts live in the arena, and *ret_document must not be moved.
 * ERR_CORRUPT when it is not exactly what seal_document_write makes. */
int segment_read_document(const struct segment_record *segment, struct arena *arena,
                          struct segment_document *ret_document, struct error *error) MUST_CHECK;

#endif
