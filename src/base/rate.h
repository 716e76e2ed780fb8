/* Token buckets in one bounded table: per key, and per client address for callers without a valid
 * key. When a set of the table is full the bucket that was touched longest ago gives way. Thread
 * safe. */
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

#define RATE_MAX 1000000 /* tokens per second; more is taken as this */

/* Room for about `buckets` buckets. NULL without memory. */
struct rate_limiter *rate_limiter_create(size_t buckets) MUST_CHECK;
void rate_limiter_free(struct rate_limiter *limiter); /* NULL-safe */
/* Takes one token of bucket `id` (any well-mixed number). `rate` is in tokens per second, both at
 * least 1; now_us is of the monotonic clock. */
struct rate_state rate_take(struct rate_limiter *limiter, uint64_t id, int64_t rate,
                            int64_t capacity, int64_t now_us);
/* Puts a token back into a bucket of so many, if it is still there. */
void rate_give_back(struct rate_limiter *limiter, uint64_t id, int64_t capacity);

#endif
