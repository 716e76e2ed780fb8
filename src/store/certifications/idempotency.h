/* Idempotency keys of requests for certifications: the row of a certification has the key that it
 * was asked for with, which leads whoever repeats the request to it for a day. A key is the
 * chain's: unique there, by an index. Thread safe. */
#ifndef STORE_IDEMPOTENCY_H
#define STORE_IDEMPOTENCY_H

#include "store/certifications/certifications.h"

#define IDEMPOTENCY_KEPT_US US_PER_DAY /* from requested_at_us on */

/* The certification that was asked for with the key, on the chain and no longer than
 * IDEMPOTENCY_KEPT_US before now_us; ERR_NOT_FOUND. ERR_CONFLICT when that was for another range:
 * what is compared is what was asked for, not what was frozen. What it gives is as safe as an
 * acceptance. */
int store_find_repeated(struct store *store, int64_t account, int64_t chain, const char *key,
                        int64_t now_us, const struct certification_range *range,
                        struct arena *arena, struct certification *ret, struct error *error)
	MUST_CHECK;

/* Forgets the keys whose time is over at now_us, the oldest first, about `most` of them, some in
 * each transaction. */
int store_forget_idempotency_keys(struct store *store, int64_t now_us, int64_t most,
                                  int64_t *ret_removed, struct error *error) MUST_CHECK;

#endif
