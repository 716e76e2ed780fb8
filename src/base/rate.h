/* Token buckets in one bounded table: per key, per account, and per client address for callers
 * without a valid key. When a set of the table is full the bucket that was touched longest ago
 * gives way. Thread safe: each of many locks guards a part of the table, so that threads wait for
 * each other only where they take from neighbouring buckets at the same moment. */
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
	int64_t remaining;           /* whole tokens left */
	int64_t reset_seconds;       /* until it is full again, rounded up */
	int64_t retry_after_seconds; /* until there is a token, at least 1 */
};

struct rate_bucket {
	uint64_t id;            /* any well-mixed number */
	int64_t rate;           /* tokens in `period_seconds`; at least 1 */
	int64_t capacity;       /* at least 1 */
	int64_t period_seconds; /* at most 3600; the same for all that use the bucket */
};

#define RATE_MAX 1000000 /* tokens of a period; more is taken as this */

/* Room for about `buckets` buckets. NULL without memory. */
struct rate_limiter *rate_limiter_create(size_t buckets) MUST_CHECK;
void rate_limiter_free(struct rate_limiter *limiter); /* NULL-safe */
/* Takes one token of bucket `id` (any well-mixed number). `rate` is in tokens per second, both at
 * least 1; now_us is of the monotonic clock. */
struct rate_state rate_take(struct rate_limiter *limiter, uint64_t id, int64_t rate,
                            int64_t capacity, int64_t now_us);
struct rate_state rate_take_of(struct rate_limiter *limiter, const struct rate_bucket *of,
                               int64_t now_us);
/* Takes none; `allowed` says whether there is one. */
struct rate_state rate_look(struct rate_limiter *limiter, const struct rate_bucket *of,
                            int64_t now_us);
/* Takes one token of each, or none when either bucket is empty. Returns the state of the tighter
 * bucket: the one that refuses, or refuses for longer; else the one with fewer tokens left; `own`
 * when both are equal. */
struct rate_state rate_take_both(struct rate_limiter *limiter, const struct rate_bucket *own,
                                 const struct rate_bucket *shared, int64_t now_us,
                                 bool *ret_is_shared);
/* Puts a token back into a bucket of rate_take with this capacity, if it is still in the table. */
void rate_give_back(struct rate_limiter *limiter, uint64_t id, int64_t capacity);

#endif
