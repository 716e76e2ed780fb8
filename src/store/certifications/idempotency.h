/* Idempotency keys of certification requests. The row of a certification stores the key of its
 * request; a repeated request within a day returns that certification. A key is unique within its
 * chain (unique index). Thread safe. */
#ifndef STORE_IDEMPOTENCY_H
#define STORE_IDEMPOTENCY_H

#include "store/certifications/certifications.h"

#define IDEMPOTENCY_KEPT_US US_PER_DAY /* from requested_at_us on */

/* Finds the certification that was requested with the key on the chain within IDEMPOTENCY_KEPT_US
 * before now_us. Returns ERR_NOT_FOUND when there is none, and ERR_CONFLICT when the requested
 * range or `seal_history` differs; the range as requested is compared, not the closed range. The
 * result is as durable as an acceptance. */
int store_find_repeated(struct store *store, int64_t account, int64_t chain, const char *key,
                        int64_t now_us, const struct certification_range *range, bool seal_history,
                        struct arena *arena, struct certification *ret, struct error *error)
	MUST_CHECK;

/* Removes keys that have expired at now_us, the oldest first, about `most` of them, in batches of
 * one transaction each. */
int store_forget_idempotency_keys(struct store *store, int64_t now_us, int64_t most,
                                  int64_t *ret_removed, struct error *error) MUST_CHECK;

#endif
