/* A segment: a run of events of one chain under one hash tree. Its leaves are the chain hashes of
 * the events and, last, the digest of the seal document, which says about the segment what its
 * events do not. Pure.
 *
 * The seal document is canonical JSON (RFC 8785) with the members
 *   chain, chain_hash_before, chain_hash_last, channel_id, clock {max_error_us, source,
 *   synchronized}, count, first_sequence, last_sequence, previous_seal_hash|null,
 *   previous_token_hash|null, segment_id, v (1)
 * Hashes are lower-case hex. clock.source is "ntp_adjtime", or SEAL_CLOCK_NOT_COMPARED where live
 * events may be among those of the segment that were received after a start during which no
 * timestamp authority had answered yet: their times rest on a clock that nothing was compared with.
 *
 * With a segment are kept its root; the roots over each SEGMENT_NODE_LEAVES leaves, its nodes, so
 * that a proof needs no more leaves than these. Segments of before have a path, too, the siblings
 * from its root up to that of the round; for the others round_tree.h finds it. Nodes and path are
 * kept as bytes, hash by hash. */
#ifndef SEAL_SEGMENT_H
#define SEAL_SEGMENT_H

#include "base/json_reader.h"
#include "seal/clock_state.h"
#include "seal/tree.h"

#define SEAL_DOCUMENT_MAX 2048
#define SEGMENT_EVENTS_MAX 16384
#define SEGMENT_LEAVES_MAX (SEGMENT_EVENTS_MAX + 1)
#define SEGMENT_NODE_LEAVES                                                                        \
	128 /* a power of two: the tree over the nodes is that over all leaves */
#define SEGMENT_NODES_MAX ((SEGMENT_LEAVES_MAX + SEGMENT_NODE_LEAVES - 1) / SEGMENT_NODE_LEAVES)

/* ---- the tree ---- */

/* The nodes, and their root. count is 1 to SEGMENT_LEAVES_MAX. */
int segment_build(const struct sha256 *leaves, size_t count,
                  struct sha256 ret_nodes[SEGMENT_NODES_MAX], size_t *ret_node_count,
                  struct sha256 *ret_root) MUST_CHECK;
/* The proof of leaf `index` of the segment up to its root, from the `count` leaves that share its
 * node. ERR_INVALID_EVIDENCE when these do not lead to that root. */
int segment_prove(const struct sha256 *leaves, size_t count, size_t index, struct slice nodes,
                  const struct sha256 *root, struct tree_proof *ret_proof) MUST_CHECK;
/* The proof of a segment's root up to the round's. ERR_INVALID_EVIDENCE when no path has that
 * size. */
int segment_path(const struct sha256 *root, struct slice path, struct tree_proof *ret_proof)
	MUST_CHECK;

/* ---- the seal document ---- */

#define SEAL_CLOCK_NOT_COMPARED "ntp_adjtime, not compared with a timestamp"
#define SEAL_CHAIN_ACTS "acts"
#define SEAL_CHAIN_URGENT_ACTS "urgent acts"

struct seal_document {
	const char *segment_id;
	const char *channel_id;
	const char *chain; /* "live", "test", or one of acts: then channel_id names their account */
	int64_t first_sequence;
	int64_t last_sequence;           /* count is last - first + 1 */
	struct sha256 chain_hash_before; /* of event first-1, or of the genesis document */
	struct sha256 chain_hash_last;
	const struct sha256 *previous_seal_hash;  /* digest of the chain's previous seal document */
	const struct sha256 *previous_token_hash; /* digest of the previous round's token (DER) */
	struct clock_state clock;
};

/* Appends the canonical document. */
void seal_document_write(const struct seal_document *document, struct buf *out);
/* Its digest. The scratch buf is cleared first (limit at least SEAL_DOCUMENT_MAX). */
struct sha256 seal_document_digest(const struct seal_document *document, struct buf *scratch);

/* The document as the object of `reader`, whose result tells failures; what it points to lives in
 * the reader's arena. Members and spellings that no document has are found by writing it again. */
struct seal_document seal_document_take(struct json_reader *reader);
/* ERR_INVALID_EVIDENCE when the text is not exactly what seal_document_write makes. */
int seal_document_read(struct arena *arena, struct slice text, struct seal_document *ret_document,
                       struct error *error) MUST_CHECK;

#endif
