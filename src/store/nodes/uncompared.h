/* From when to when live events were received by a clock that no timestamp had been compared with
 * since its node started: what was pending then, or until then, is sealed with a statement of it.
 * The mark lies in the store, so that whichever node seals knows it. Thread safe. */
#ifndef STORE_NODES_UNCOMPARED_H
#define STORE_NODES_UNCOMPARED_H

#include "store/store.h"

struct uncompared {
	bool is;          /* there is such a time */
	bool goes_on;     /* it has not ended: this concerns all that is pending */
	int64_t until_us; /* else: what was received by then */
};
int store_get_uncompared(struct store *store, struct uncompared *ret, struct error *error)
	MUST_CHECK;
/* Durable before it returns. Nothing is written when it goes on already. */
int store_begin_uncompared(struct store *store, struct error *error) MUST_CHECK;
/* Nothing is written unless it goes on. */
int store_end_uncompared(struct store *store, int64_t until_us, struct error *error) MUST_CHECK;
/* Once none of its events is pending; one that has begun again since stays. */
int store_forget_uncompared(struct store *store, int64_t until_us, struct error *error) MUST_CHECK;

#endif
