/* Recomputes one sealed segment from the events up to the timestamp: for `store check`. */
#ifndef SERVICE_CHECK_SEGMENT_H
#define SERVICE_CHECK_SEGMENT_H

#include "service/service.h"

/* OK; ERR_CORRUPT with the fault in words in error->cause; another error when it could not be
 * checked. `last_round` is the caller's memory of the round whose token was verified last (0 at
 * first), so that a token over many segments is verified once. */
int check_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                  int64_t *last_round, struct error *error) MUST_CHECK;

#endif
