/* Recomputes one sealed segment from the events up to the timestamp: for `store check`. */
#ifndef EVIDENCE_CHECK_SEGMENT_H
#define EVIDENCE_CHECK_SEGMENT_H

#include "store/store.h"

/* What the next one is compared with; zeroed at first. */
struct checked_segment {
	int64_t account, chain, number;
	struct sha256 seal_hash;
	int64_t last_round; /* whose token was verified last: one over many segments is so once */
};

/* OK; ERR_CORRUPT with the fault in words in error->cause; ERR_NOT_FOUND: there is none, as when it
 * was staged and taken back; another error when it could not be checked. Segments of a chain come
 * in order; others may seal meanwhile. */
int check_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                  struct checked_segment *before, struct error *error) MUST_CHECK;

#endif
