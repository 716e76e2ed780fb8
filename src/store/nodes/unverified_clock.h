/* The period in which live events were received by a clock that had not been compared with any
 * timestamp since the start of its node. Events that were pending during the period, or received by
 * its end, are sealed with a statement about it. The mark is in the store, so that any node that
 * seals knows it. Thread safe. */
#ifndef STORE_NODES_UNVERIFIED_CLOCK_H
#define STORE_NODES_UNVERIFIED_CLOCK_H

#include "store/store.h"

struct unverified_clock {
	bool is;          /* there is such a period */
	bool is_open;     /* it has not ended, so it concerns all pending events */
	int64_t until_us; /* else events received until this time */
};
int store_get_unverified_clock(struct store *store, struct unverified_clock *ret,
                               struct error *error) MUST_CHECK;
/* Begins the period; durable before it returns. Writes nothing when it has already begun. */
int store_begin_unverified_clock(struct store *store, struct error *error) MUST_CHECK;
/* Ends the period. Writes nothing when there is none. */
int store_end_unverified_clock(struct store *store, int64_t until_us, struct error *error)
	MUST_CHECK;
/* Removes the mark when no event of the period is pending. A period that has begun again since is
 * kept. */
int store_forget_unverified_clock(struct store *store, int64_t until_us, struct error *error)
	MUST_CHECK;

#endif
