#include "base/rate.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"

#define WAYS 8
#define TOKEN US_PER_SECOND /* a token is a million parts, so that refilling needs no fractions */

struct bucket {
	uint64_t id;
	int64_t touched_us; /* 0: never used */
	int64_t parts;
};

struct rate_limiter {
	pthread_mutex_t lock;
	size_t sets; /* a power of two */
	struct bucket buckets[];
};

struct rate_limiter *rate_limiter_create(size_t buckets)
{
	size_t sets = 1;
	while (sets * WAYS < buckets)
		sets *= 2;
	struct rate_limiter *limiter = calloc(1, sizeof *limiter + sets * WAYS * sizeof(struct bucket));
	if (!limiter)
		return NULL;
	limiter->sets = sets;
	pthread_mutex_init(&limiter->lock, NULL);
	return limiter;
}

void rate_limiter_free(struct rate_limiter *limiter)
{
	if (!limiter)
		return;
	pthread_mutex_destroy(&limiter->lock);
	free(limiter);
}

static struct bucket *set_of(struct rate_limiter *limiter, uint64_t id)
{
	uint64_t mixed = (id ^ id >> 29) * UINT64_C(0x9e3779b97f4a7c15);
	return &limiter->buckets[(size_t)(mixed >> 32) % limiter->sets * WAYS];
}

/* NULL: it has given way, or never was. */
static struct bucket *find(struct rate_limiter *limiter, uint64_t id)
{
	struct bucket *set = set_of(limiter, id);
	for (struct bucket *bucket = set; bucket < set + WAYS; bucket++)
		if (bucket->touched_us && bucket->id == id)
			return bucket;
	return NULL;
}

static struct bucket *find_or_make(struct rate_limiter *limiter, uint64_t id, int64_t full,
                                   int64_t now_us)
{
	struct bucket *found = find(limiter, id);
	if (found)
		return found;
	struct bucket *set = set_of(limiter, id);
	struct bucket *oldest = set;
	for (struct bucket *bucket = set + 1; bucket < set + WAYS; bucket++)
		if (bucket->touched_us < oldest->touched_us)
			oldest = bucket;
	*oldest = (struct bucket){.id = id, .touched_us = now_us, .parts = full};
	return oldest;
}

struct rate_state rate_take(struct rate_limiter *limiter, uint64_t id, int64_t rate,
                            int64_t capacity, int64_t now_us)
{
	if (rate > RATE_MAX)
		rate = RATE_MAX;
	if (capacity > 4 * (int64_t)RATE_MAX)
		capacity = 4 * (int64_t)RATE_MAX;
	int64_t full = capacity * TOKEN;

	pthread_mutex_lock(&limiter->lock);
	struct bucket *bucket = find_or_make(limiter, id, full, now_us);
	int64_t passed_us = now_us - bucket->touched_us;
	int64_t missing = full - bucket->parts;
	if (passed_us >= 0 && passed_us > missing / rate)
		bucket->parts = full;
	else if (passed_us > 0)
		bucket->parts += passed_us * rate;
	if (passed_us > 0)
		bucket->touched_us = now_us;
	bool allowed = bucket->parts >= TOKEN;
	if (allowed)
		bucket->parts -= TOKEN;
	int64_t parts = bucket->parts;
	pthread_mutex_unlock(&limiter->lock);

	int64_t per_second = rate * US_PER_SECOND;
	struct rate_state state = {.allowed = allowed, .limit = capacity, .remaining = parts / TOKEN};
	state.reset_seconds = (full - parts + per_second - 1) / per_second;
	state.retry_after_seconds = allowed ? 0 : (TOKEN - parts + per_second - 1) / per_second;
	return state;
}

void rate_give_back(struct rate_limiter *limiter, uint64_t id, int64_t capacity)
{
	int64_t full = (capacity < 4 * (int64_t)RATE_MAX ? capacity : 4 * (int64_t)RATE_MAX) * TOKEN;
	pthread_mutex_lock(&limiter->lock);
	struct bucket *bucket = find(limiter, id);
	if (bucket && bucket->parts < full)
		bucket->parts = full - bucket->parts > TOKEN ? bucket->parts + TOKEN : full;
	pthread_mutex_unlock(&limiter->lock);
}
