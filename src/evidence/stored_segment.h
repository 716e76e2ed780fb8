/* Segments as the store holds them (struct segment_record), read back as what src/seal made of
 * them. All answer ERR_CORRUPT, with the segment in error->cause, when that is not what is there.
 */
#ifndef EVIDENCE_STORED_SEGMENT_H
#define EVIDENCE_STORED_SEGMENT_H

#include "seal/segment.h"
#include "store/events/segments.h"
#include "store/store.h"

/* The proof of one of its events up to the round's root, from the events around it. */
int stored_segment_prove(struct store *store, const struct segment_record *segment,
                         int64_t sequence, struct tree_proof *ret_proof, struct error *error)
	MUST_CHECK;
/* From a sealed segment's root up to the round's. */
int stored_segment_path(struct store *store, const struct segment_record *segment,
                        struct tree_proof *ret_path, struct error *error) MUST_CHECK;
/* What the document points to lives in the arena. */
int stored_segment_document(const struct segment_record *segment, struct arena *arena,
                            struct seal_document *ret_document, struct error *error) MUST_CHECK;

#endif
