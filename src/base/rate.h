/* Token-bucket rate limiter in a bounded table: buckets per key, per account and per client address
 * for requests without a valid key. If a set of the table is full, the least recently used bucket
 * is evicted. Thread safe: each lock guards a part of the table, so threads contend only if they
 * use buckets of the same part at the same time. */
#ifndef BASE_RATE_H
#define BASE_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must_check.h"

struct rate_limiter;

struct rate_state {
	bool allowed;
	int64_t limit;               /* the capacity */
	int64_t remaining;           /* whole tokens available */
	int64_t reset_seconds;       /* until the bucket is full, rounded up */
	int64_t retry_after_seconds; /* until a token is available, at least 1 */
};

struct rate_bucket {
	uint64_t id;            /* a well-mixed number */
	int64_t rate;           /* tokens in `period_seconds`; at least 1 */
	int64_t capacity;       /* at least 1 */
	int64_t period_seconds; /* at most 3600; equal for all users of the bucket */
};

#define RATE_MAX 1000000 /* maximum tokens per period; larger rates are reduced to it */

/* Creates a limiter for about `buckets` buckets. Returns NULL without memory. */
struct rate_limiter *rate_limiter_create(size_t buckets) MUST_CHECK;
void rate_limiter_free(struct rate_limiter *limiter); /* NULL-safe */
/* Takes one token from bucket `id`, a well-mixed number. `rate` is in tokens per second; `rate` and
 * `capacity` are at least 1. now_us is monotonic. */
struct rate_state rate_take(struct rate_limiter *limiter, uint64_t id, int64_t rate,
                            int64_t capacity, int64_t now_us);
struct rate_state rate_take_of(struct rate_limiter *limiter, const struct rate_bucket *of,
                               int64_t now_us);
/* Returns the state without taking a token; `allowed` tells whether one is available. */
struct rate_state rate_check(struct rate_limiter *limiter, const struct rate_bucket *of,
                             int64_t now_us);
/* Takes one token from each bucket, or none if either is empty. Returns the state of the more
 * restrictive bucket: the one that refuses, or refuses for longer; else the one with fewer tokens;
 * `own` if both are equal. */
struct rate_state rate_take_both(struct rate_limiter *limiter, const struct rate_bucket *own,
                                 const struct rate_bucket *shared, int64_t now_us,
                                 bool *ret_is_shared);
/* Takes `tokens` (at least 0) from each bucket, for work whose amount is known only afterwards. A
 * bucket without enough tokens gets a debt, which it first regains: at most what it gains in
 * RATE_DEBT_SECONDS. Returns the state as rate_take_both; `allowed` is true. */
#define RATE_DEBT_SECONDS 60
struct rate_state rate_charge_both(struct rate_limiter *limiter, const struct rate_bucket *own,
                                   const struct rate_bucket *shared, int64_t tokens, int64_t now_us,
                                   bool *ret_is_shared);
/* Returns a token to a bucket of rate_take with this capacity, if the bucket is still in the
 * table. */
void rate_return(struct rate_limiter *limiter, uint64_t id, int64_t capacity);

#endif
