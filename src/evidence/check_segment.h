/* Recomputes one sealed segment from its events to its timestamp, for `store check`. */
#ifndef EVIDENCE_CHECK_SEGMENT_H
#define EVIDENCE_CHECK_SEGMENT_H

#include "store/store.h"

/* State that the next segment is compared with; zeroed at the start. */
struct checked_segment {
	int64_t account, chain, number;
	struct sha256 seal_hash;
	int64_t last_round; /* round of the last verified token: each token is verified once */
};

/* Checks a segment. ERR_CORRUPT: the fault is in error->cause. ERR_NOT_FOUND: there is no such
 * segment, for example because it was staged and unstaged again. Other errors: the segment could
 * not be checked. The segments of a chain must be passed in order; sealing may run concurrently. */
int check_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                  struct checked_segment *before, struct error *error) MUST_CHECK;

#endif
