/* A segment: consecutive events of one chain under one hash tree. The leaves are the chain hashes
 * of the events and, last, the digest of the seal document, which states facts about the segment
 * that its events do not contain. Pure functions.
 *
 * The seal document is canonical JSON (RFC 8785) with the members chain, chain_hash_before,
 * chain_hash_last, channel_id, clock {max_error_us, source, synchronized}, count, first_sequence,
 * last_sequence, previous_seal_hash|null, previous_token_hash|null, segment_id, v (1). Hashes are
 * lower-case hex. clock.source is "ntp_adjtime", or SEAL_CLOCK_UNVERIFIED if the segment may
 * contain live events received after a start and before any timestamp authority had responded:
 * their times rest on a clock that was not compared with a timestamp.
 *
 * Stored with a segment are its root and its nodes, the roots over each SEGMENT_NODE_LEAVES leaves,
 * so that a proof needs only the leaves of one node. Older segments also have a stored path: the
 * siblings from their root to the round's root; for others round_tree.h computes it. Nodes and path
 * are stored as concatenated hashes. */
#ifndef SEAL_SEGMENT_H
#define SEAL_SEGMENT_H

#include "base/json_reader.h"
#include "seal/clock_state.h"
#include "seal/tree.h"

#define SEAL_DOCUMENT_MAX 2048
#define SEGMENT_EVENTS_MAX 16384
#define SEGMENT_LEAVES_MAX (SEGMENT_EVENTS_MAX + 1)
#define SEGMENT_NODE_LEAVES                                                                        \
	128 /* a power of two, so that the tree over the nodes equals the tree over all leaves */
#define SEGMENT_NODES_MAX ((SEGMENT_LEAVES_MAX + SEGMENT_NODE_LEAVES - 1) / SEGMENT_NODE_LEAVES)

/* ---- the tree ---- */

/* Computes the nodes and their root. `count` is 1 to SEGMENT_LEAVES_MAX. */
int segment_build(const struct sha256 *leaves, size_t count,
                  struct sha256 ret_nodes[SEGMENT_NODES_MAX], size_t *ret_node_count,
                  struct sha256 *ret_root) MUST_CHECK;
/* Builds the proof from leaf `index` of the segment to its root, from the `count` leaves of its
 * node. ERR_INVALID_EVIDENCE: the leaves do not lead to that root. */
int segment_prove(const struct sha256 *leaves, size_t count, size_t index, struct slice nodes,
                  const struct sha256 *root, struct tree_proof *ret_proof) MUST_CHECK;
/* Builds the proof from a segment's root to the round's root from the stored path.
 * ERR_INVALID_EVIDENCE: invalid size. */
int segment_path(const struct sha256 *root, struct slice path, struct tree_proof *ret_proof)
	MUST_CHECK;

/* ---- the seal document ---- */

#define SEAL_CLOCK_UNVERIFIED "ntp_adjtime, not compared with a timestamp"
#define SEAL_CHAIN_AUDIT "acts"
#define SEAL_CHAIN_URGENT_AUDIT "urgent acts"

struct seal_document {
	const char *segment_id;
	const char *channel_id;
	const char *chain; /* "live", "test", or a SEAL_CHAIN_… of the audit log: then channel_id is the
	                      account */
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
/* Returns the digest of the document. Clears `scratch` first (limit at least SEAL_DOCUMENT_MAX). */
struct sha256 seal_document_digest(const struct seal_document *document, struct buf *scratch);

/* Reads the document from the object of `reader`; errors are in the reader's result, and texts live
 * in its arena. Unknown members and spellings are not detected here, but by writing the document
 * again (seal_document_read). */
struct seal_document seal_document_take(struct json_reader *reader);
/* Reads a document. ERR_INVALID_EVIDENCE: the text is not exactly what seal_document_write
 * produces. */
int seal_document_read(struct arena *arena, struct slice text, struct seal_document *ret_document,
                       struct error *error) MUST_CHECK;

#endif
