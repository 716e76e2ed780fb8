/* The seal document: what is said about a segment beside its events. Pure.
 *
 * Canonical JSON (RFC 8785) with the members
 *   chain, chain_hash_before, chain_hash_last, channel_id, clock {max_error_us, source,
 *   synchronized}, count, first_sequence, last_sequence, previous_seal_hash|null,
 *   previous_token_hash|null, segment_id, v (1)
 * Hashes are lower-case hex. Its SHA-256 is the segment's last leaf. */
#ifndef SEAL_DOCUMENT_H
#define SEAL_DOCUMENT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/digest.h"
#include "seal/clock_state.h"

#define SEAL_DOCUMENT_MAX 2048
#define SEGMENT_EVENTS_MAX 16384

struct seal_document {
	const char *segment_id;
	const char *channel_id;
	const char *chain; /* "live", "test" */
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

#endif
