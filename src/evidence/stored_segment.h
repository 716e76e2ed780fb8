/* Reads segments from the store (struct segment_record) in the form of src/seal. All functions
 * return ERR_CORRUPT, with the segment in error->cause, if the stored data is inconsistent. */
#ifndef EVIDENCE_STORED_SEGMENT_H
#define EVIDENCE_STORED_SEGMENT_H

#include "seal/segment.h"
#include "store/events/segments.h"
#include "store/store.h"

/* Creates the proof of an event up to the round's root, from the neighbouring events. */
int stored_segment_prove(struct store *store, const struct segment_record *segment,
                         int64_t sequence, struct tree_proof *ret_proof, struct error *error)
	MUST_CHECK;
/* Creates the path from a sealed segment's root to the round's root. */
int stored_segment_path(struct store *store, const struct segment_record *segment,
                        struct tree_proof *ret_path, struct error *error) MUST_CHECK;
/* Parses the seal document, which points into the arena. */
int stored_segment_document(const struct segment_record *segment, struct arena *arena,
                            struct seal_document *ret_document, struct error *error) MUST_CHECK;

#endif
