#include "base/rate.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>

#include "base/clock.h"

#define WAYS 8
#define STRIPES_MAX 256 /* locks, each for several sets, to reduce contention */
#define CACHE_LINE 64

struct bucket {
	uint64_t id;
	int64_t touched_us; /* 0: never used */
	int64_t parts;
};

struct stripe {
	alignas(CACHE_LINE) pthread_mutex_t lock;
};

struct rate_limiter {
	size_t sets;    /* a power of two */
	size_t stripes; /* a power of two, of `locks` */
	struct bucket *buckets;
	struct stripe locks[];
};

struct rate_limiter *rate_limiter_create(size_t buckets)
{
	size_t sets = 1;
	while (sets * WAYS < buckets)
		sets *= 2;
	size_t stripes = sets < STRIPES_MAX ? sets : STRIPES_MAX;
	struct rate_limiter *limiter =
		aligned_alloc(CACHE_LINE, sizeof *limiter + stripes * sizeof(struct stripe));
	struct bucket *table = calloc(sets * WAYS, sizeof *table);
	if (!limiter || !table) {
		free(limiter);
		free(table);
		return NULL;
	}
	*limiter = (struct rate_limiter){.sets = sets, .stripes = stripes, .buckets = table};
	for (size_t i = 0; i < stripes; i++)
		pthread_mutex_init(&limiter->locks[i].lock, NULL);
	return limiter;
}

void rate_limiter_free(struct rate_limiter *limiter)
{
	if (!limiter)
		return;
	for (size_t i = 0; i < limiter->stripes; i++)
		pthread_mutex_destroy(&limiter->locks[i].lock);
	free(limiter->buckets);
	free(limiter);
}

static size_t set_of(const struct rate_limiter *limiter, uint64_t id)
{
	uint64_t mixed = (id ^ id >> 29) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(mixed >> 32) % limiter->sets;
}

static size_t stripe_of(const struct rate_limiter *limiter, uint64_t id)
{
	return set_of(limiter, id) % limiter->stripes;
}

static void lock(struct rate_limiter *limiter, size_t stripe)
{
	pthread_mutex_lock(&limiter->locks[stripe].lock);
}

static void unlock(struct rate_limiter *limiter, size_t stripe)
{
	pthread_mutex_unlock(&limiter->locks[stripe].lock);
}

/* Returns NULL if the bucket was evicted or never existed. */
static struct bucket *find(struct rate_limiter *limiter, uint64_t id)
{
	struct bucket *set = &limiter->buckets[set_of(limiter, id) * WAYS];
	for (struct bucket *bucket = set; bucket < set + WAYS; bucket++)
		if (bucket->touched_us && bucket->id == id)
			return bucket;
	return NULL;
}

/* `kept` is not evicted; NULL: any bucket may be. */
static struct bucket *find_or_make(struct rate_limiter *limiter, uint64_t id, int64_t full,
                                   int64_t now_us, const struct bucket *kept)
{
	struct bucket *found = find(limiter, id);
	if (found)
		return found;
	struct bucket *set = &limiter->buckets[set_of(limiter, id) * WAYS];
	struct bucket *oldest = NULL;
	for (struct bucket *bucket = set; bucket < set + WAYS; bucket++)
		if (bucket != kept && (!oldest || bucket->touched_us < oldest->touched_us))
			oldest = bucket;
	*oldest = (struct bucket){.id = id, .touched_us = now_us, .parts = full};
	return oldest;
}

/* Returns the parts per token, chosen so that a bucket gains `rate` parts per microsecond and
 * refilling needs no fractions. */
static int64_t token_of(const struct rate_bucket *of)
{
	return (of->period_seconds > 1 ? of->period_seconds : 1) * US_PER_SECOND;
}

static int64_t rate_of(const struct rate_bucket *of)
{
	return of->rate < RATE_MAX ? of->rate : RATE_MAX;
}

static int64_t capacity_of(const struct rate_bucket *of)
{
	return of->capacity < 4 * (int64_t)RATE_MAX ? of->capacity : 4 * (int64_t)RATE_MAX;
}

/* Returns the bucket, refilled up to now. */
static struct bucket *refill(struct rate_limiter *limiter, const struct rate_bucket *of,
                             int64_t now_us, const struct bucket *kept)
{
	int64_t full = capacity_of(of) * token_of(of), rate = rate_of(of);
	struct bucket *bucket = find_or_make(limiter, of->id, full, now_us, kept);
	int64_t passed_us = now_us - bucket->touched_us;
	int64_t missing = full - bucket->parts;
	if (missing < 0 || (passed_us >= 0 && passed_us > missing / rate))
		bucket->parts = full;
	else if (passed_us > 0)
		bucket->parts += passed_us * rate;
	if (passed_us > 0)
		bucket->touched_us = now_us;
	return bucket;
}

static bool has_token(const struct rate_bucket *of, const struct bucket *bucket)
{
	return bucket->parts >= token_of(of);
}

/* A debt is at most what the bucket gains in RATE_DEBT_SECONDS. */
static void subtract(const struct rate_bucket *of, struct bucket *bucket, int64_t tokens)
{
	int64_t least = -RATE_DEBT_SECONDS * US_PER_SECOND * rate_of(of);
	int64_t taken = tokens * token_of(of);
	bucket->parts = bucket->parts - taken > least ? bucket->parts - taken : least;
}

static struct rate_state state_of(const struct rate_bucket *of, const struct bucket *bucket,
                                  bool allowed)
{
	int64_t token = token_of(of), full = capacity_of(of) * token;
	int64_t per_second = rate_of(of) * US_PER_SECOND;
	struct rate_state state = {
		.allowed = allowed,
		.limit = capacity_of(of),
		.remaining = bucket->parts > 0 ? bucket->parts / token : 0,
	};
	state.reset_seconds = (full - bucket->parts + per_second - 1) / per_second;
	state.retry_after_seconds = allowed ? 0 : (token - bucket->parts + per_second - 1) / per_second;
	return state;
}

/* Takes `tokens` (1 or 0) if at least one token is available. */
static struct rate_state take(struct rate_limiter *limiter, const struct rate_bucket *of,
                              int64_t tokens, int64_t now_us)
{
	size_t stripe = stripe_of(limiter, of->id);
	lock(limiter, stripe);
	struct bucket *bucket = refill(limiter, of, now_us, NULL);
	bool allowed = has_token(of, bucket);
	if (allowed)
		subtract(of, bucket, tokens);
	struct rate_state state = state_of(of, bucket, allowed);
	unlock(limiter, stripe);
	return state;
}

struct rate_state rate_take_of(struct rate_limiter *limiter, const struct rate_bucket *of,
                               int64_t now_us)
{
	return take(limiter, of, 1, now_us);
}

struct rate_state rate_check(struct rate_limiter *limiter, const struct rate_bucket *of,
                             int64_t now_us)
{
	return take(limiter, of, 0, now_us);
}

struct rate_state rate_take(struct rate_limiter *limiter, uint64_t id, int64_t rate,
                            int64_t capacity, int64_t now_us)
{
	return take(limiter, &(struct rate_bucket){id, rate, capacity, 1}, 1, now_us);
}

static bool shared_is_nearer(const struct rate_state *own, const struct rate_state *shared)
{
	if (own->allowed && shared->allowed)
		return shared->remaining < own->remaining;
	if (own->allowed || shared->allowed)
		return own->allowed;
	return shared->retry_after_seconds > own->retry_after_seconds;
}

/* Takes `tokens` from each bucket. With `may_owe` they may be left with a debt. */
static struct rate_state take_both(struct rate_limiter *limiter, const struct rate_bucket *own,
                                   const struct rate_bucket *shared, int64_t tokens, bool may_owe,
                                   int64_t now_us, bool *ret_is_shared)
{
	size_t first = stripe_of(limiter, own->id), second = stripe_of(limiter, shared->id);
	size_t low = first < second ? first : second, high = first < second ? second : first;
	lock(limiter, low);
	if (high != low)
		lock(limiter, high);
	struct bucket *one = refill(limiter, own, now_us, NULL);
	struct bucket *other = refill(limiter, shared, now_us, one);
	bool own_has = may_owe || has_token(own, one);
	bool shared_has = may_owe || has_token(shared, other);
	if (own_has && shared_has) {
		subtract(own, one, tokens);
		subtract(shared, other, tokens);
	}
	const struct rate_state of_own = state_of(own, one, own_has);
	const struct rate_state of_shared = state_of(shared, other, shared_has);
	if (high != low)
		unlock(limiter, high);
	unlock(limiter, low);
	*ret_is_shared = shared_is_nearer(&of_own, &of_shared);
	return *ret_is_shared ? of_shared : of_own;
}

struct rate_state rate_take_both(struct rate_limiter *limiter, const struct rate_bucket *own,
                                 const struct rate_bucket *shared, int64_t now_us,
                                 bool *ret_is_shared)
{
	return take_both(limiter, own, shared, 1, false, now_us, ret_is_shared);
}

struct rate_state rate_charge_both(struct rate_limiter *limiter, const struct rate_bucket *own,
                                   const struct rate_bucket *shared, int64_t tokens, int64_t now_us,
                                   bool *ret_is_shared)
{
	return take_both(limiter, own, shared, tokens, true, now_us, ret_is_shared);
}

void rate_return(struct rate_limiter *limiter, uint64_t id, int64_t capacity)
{
	const struct rate_bucket of = {id, 1, capacity, 1};
	int64_t full = capacity_of(&of) * token_of(&of);
	size_t stripe = stripe_of(limiter, id);
	lock(limiter, stripe);
	struct bucket *bucket = find(limiter, id);
	if (bucket && bucket->parts < full)
		bucket->parts = full - bucket->parts > token_of(&of) ? bucket->parts + token_of(&of) : full;
	unlock(limiter, stripe);
}
