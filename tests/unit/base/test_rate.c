#include <pthread.h>

#include "testing.h"
#include "base/clock.h"
#include "base/rate.h"

TEST_CASE(test_bucket)
{
	struct rate_limiter *limiter = rate_limiter_create(64);
	int64_t now = 1000 * US_PER_SECOND;
	for (int i = 0; i < 10; i++) {
		struct rate_state rate = rate_take(limiter, 7, 10, 10, now);
		assert_true(rate.allowed);
		assert_int_equal(rate.limit, 10);
		assert_int_equal(rate.remaining, 9 - i);
		assert_int_equal(rate.reset_seconds, 1);
		assert_int_equal(rate.retry_after_seconds, 0);
	}
	struct rate_state rate = rate_take(limiter, 7, 10, 10, now);
	assert_false(rate.allowed);
	assert_int_equal(rate.remaining, 0);
	assert_int_equal(rate.retry_after_seconds, 1);
	assert_true(rate_take(limiter, 8, 10, 10, now).allowed); /* another's bucket */

	assert_false(rate_take(limiter, 7, 10, 10, now + 99999).allowed);
	assert_true(rate_take(limiter, 7, 10, 10, now + 100000).allowed);
	assert_false(rate_take(limiter, 7, 10, 10, now + 100000).allowed);
	/* Never more than the capacity, however long it was idle. */
	rate = rate_take(limiter, 7, 10, 10, now + INT64_C(1000000) * US_PER_SECOND);
	assert_int_equal(rate.remaining, 9);
	rate_limiter_free(limiter);
}

TEST_CASE(test_burst)
{
	struct rate_limiter *limiter = rate_limiter_create(64);
	int64_t now = 5;
	for (int i = 0; i < 200; i++)
		assert_true(rate_take(limiter, 1, 50, 200, now).allowed);
	struct rate_state rate = rate_take(limiter, 1, 50, 200, now);
	assert_false(rate.allowed);
	assert_int_equal(rate.reset_seconds, 4);
	assert_int_equal(rate_take(limiter, 1, 50, 200, now + 3 * US_PER_SECOND).remaining, 149);
	rate_limiter_free(limiter);
}

TEST_CASE(test_bounded)
{
	struct rate_limiter *limiter = rate_limiter_create(64);
	/* Far more callers than buckets: nothing breaks, and the constant caller keeps its bucket. */
	for (int64_t i = 1; i < 20000; i++) {
		assert_true(rate_take(limiter, (uint64_t)i * 7919, 1, 1, i).allowed);
		rate_take(limiter, 3, 1, 1, i);
		assert_false(rate_take(limiter, 3, 1, 1, i).allowed);
	}
	struct rate_state rate = rate_take(limiter, 12345, INT64_MAX, INT64_MAX, 100000);
	assert_true(rate.allowed && rate.remaining > 0 && rate.reset_seconds >= 0);
	rate_limiter_free(limiter);
}

TEST_CASE(test_give_back)
{
	struct rate_limiter *limiter = rate_limiter_create(64);
	rate_return(limiter, 5, 2); /* a bucket that does not exist */
	assert_int_equal(rate_take(limiter, 5, 1, 2, 1000).remaining, 1);
	assert_int_equal(rate_take(limiter, 5, 1, 2, 1000).remaining, 0);
	assert_false(rate_take(limiter, 5, 1, 2, 1000).allowed);
	rate_return(limiter, 5, 2);
	assert_true(rate_take(limiter, 5, 1, 2, 1000).allowed);
	for (int i = 0; i < 9; i++)
		rate_return(limiter, 5, 2); /* never more than the capacity */
	assert_true(rate_take(limiter, 5, 1, 2, 1000).allowed);
	assert_true(rate_take(limiter, 5, 1, 2, 1000).allowed);
	assert_false(rate_take(limiter, 5, 1, 2, 1000).allowed);
	/* A time that arrives out of order refills nothing twice. */
	assert_false(rate_take(limiter, 5, 1, 2, 500).allowed);
	assert_false(rate_take(limiter, 5, 1, 2, 1000 + 999999).allowed);
	rate_limiter_free(limiter);
}

TEST_CASE(test_period)
{
	const struct rate_bucket minutely = {.id = 9, .rate = 10, .capacity = 10, .period_seconds = 60};
	struct rate_limiter *limiter = rate_limiter_create(64);
	int64_t now = 1000000;
	assert_int_equal(rate_check(limiter, &minutely, now).remaining, 10); /* and takes none */
	for (int i = 0; i < 10; i++)
		assert_true(rate_take_of(limiter, &minutely, now).allowed);
	struct rate_state rate = rate_take_of(limiter, &minutely, now);
	assert_false(rate.allowed);
	assert_int_equal(rate.limit, 10);
	assert_int_equal(rate.retry_after_seconds, 6);
	assert_int_equal(rate.reset_seconds, 60);
	now += 6 * US_PER_SECOND - 1;
	assert_false(rate_check(limiter, &minutely, now).allowed);
	assert_true(rate_take_of(limiter, &minutely, now + 1).allowed);
	assert_false(rate_take_of(limiter, &minutely, now + 1).allowed);
	rate_limiter_free(limiter);
}

TEST_CASE(test_both)
{
	struct rate_limiter *limiter = rate_limiter_create(64);
	const struct rate_bucket shared = {1000, 1, 6, 1};
	bool is_shared;
	int allowed = 0;
	for (uint64_t key = 1; key <= 40; key++) {
		struct rate_bucket own = {key, 1, 4, 1};
		for (int i = 0; i < 4; i++)
			allowed += rate_take_both(limiter, &own, &shared, 5000, &is_shared).allowed;
	}
	assert_int_equal(allowed, 6);
	assert_true(is_shared);
	/* The refused request took nothing from the other bucket. */
	assert_int_equal(rate_check(limiter, &(struct rate_bucket){40, 1, 4, 1}, 5000).remaining, 4);

	const struct rate_bucket wide = {1001, 10, 10, 1}, own = {2000, 1, 2, 1};
	struct rate_state rate = rate_take_both(limiter, &own, &wide, 5000, &is_shared);
	assert_true(rate.allowed && !is_shared);
	assert_int_equal(rate.limit, 2);
	assert_int_equal(rate.remaining, 1);
	assert_true(rate_take_both(limiter, &own, &wide, 5000, &is_shared).allowed);
	rate = rate_take_both(limiter, &own, &wide, 5000, &is_shared);
	assert_false(rate.allowed || is_shared);
	assert_int_equal(rate.retry_after_seconds, 1);
	assert_int_equal(rate_check(limiter, &wide, 5000).remaining, 8);
	for (int i = 0; i < 8; i++)
		rate_take_of(limiter, &wide, 5000);
	const struct rate_bucket fresh = {2001, 1, 2, 1};
	rate = rate_take_both(limiter, &fresh, &wide, 5000, &is_shared);
	assert_true(!rate.allowed && is_shared);
	assert_int_equal(rate.limit, 10);
	/* Both in one full set: the bucket of this request is not evicted for the other. */
	struct rate_limiter *small = rate_limiter_create(1);
	for (uint64_t id = 1; id <= 8; id++)
		rate_take(small, id, 1, 1, 7000);
	rate_take_both(small, &(struct rate_bucket){50, 1, 5, 1}, &(struct rate_bucket){51, 1, 5, 1},
	               7000, &is_shared);
	assert_int_equal(rate_check(small, &(struct rate_bucket){50, 1, 5, 1}, 7000).remaining, 4);
	assert_int_equal(rate_check(small, &(struct rate_bucket){51, 1, 5, 1}, 7000).remaining, 4);
	rate_limiter_free(small);
	rate_limiter_free(limiter);
}

/* What is charged afterwards may exceed the tokens left, and is regained before the next one. */
TEST_CASE(test_debt)
{
	struct rate_limiter *limiter = rate_limiter_create(64);
	const struct rate_bucket own = {1, 10, 40, 1}, shared = {2, 20, 80, 1};
	int64_t now = 1000 * US_PER_SECOND;
	bool is_shared;
	struct rate_state rate = rate_charge_both(limiter, &own, &shared, 0, now, &is_shared);
	assert_int_equal(rate.remaining, 40);
	rate = rate_charge_both(limiter, &own, &shared, 100, now, &is_shared);
	assert_true(rate.allowed && !is_shared);
	assert_int_equal(rate.limit, 40);
	assert_int_equal(rate.remaining, 0);
	assert_int_equal(rate.reset_seconds, 10);
	rate = rate_take_both(limiter, &own, &shared, now, &is_shared);
	assert_false(rate.allowed);
	assert_int_equal(rate.retry_after_seconds, 7); /* 60 owed and one to take, at 10 a second */
	assert_false(rate_take_of(limiter, &own, now + 6 * US_PER_SECOND).allowed);
	assert_true(rate_take_of(limiter, &own, now + 61 * US_PER_SECOND / 10).allowed);
	/* A debt is bounded, whatever is charged. */
	for (int i = 0; i < 3; i++)
		rate_charge_both(limiter, &own, &shared, RATE_MAX, now + 7 * US_PER_SECOND, &is_shared);
	now += (7 + RATE_DEBT_SECONDS) * US_PER_SECOND;
	assert_false(rate_take_of(limiter, &own, now).allowed);
	assert_true(rate_take_of(limiter, &own, now + US_PER_SECOND / 10).allowed);
	assert_false(rate_take_of(limiter, &shared, now).allowed);
	rate_limiter_free(limiter);
}

#define THREADS 4
#define ROUNDS 20000

struct taker {
	struct rate_limiter *limiter;
	uint64_t key;
	int64_t allowed;
};

static void *take_many(void *context)
{
	struct taker *taker = context;
	const struct rate_bucket shared = {77, 1, THREADS * ROUNDS / 2, 1};
	const struct rate_bucket own = {taker->key, 1, ROUNDS, 1};
	bool is_shared;
	for (int i = 0; i < ROUNDS; i++)
		taker->allowed += rate_take_both(taker->limiter, &own, &shared, 9000, &is_shared).allowed;
	return NULL;
}

TEST_CASE(test_threads)
{
	struct taker takers[THREADS];
	pthread_t threads[THREADS];
	struct rate_limiter *limiter = rate_limiter_create(4096);
	for (size_t i = 0; i < THREADS; i++) {
		takers[i] = (struct taker){limiter, 100 + i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, &takers[i]), 0);
	}
	int64_t allowed = 0, left = 0;
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		allowed += takers[i].allowed;
		left += rate_check(limiter, &(struct rate_bucket){100 + i, 1, ROUNDS, 1}, 9000).remaining;
	}
	assert_int_equal(allowed, THREADS * ROUNDS / 2);
	assert_int_equal(left, THREADS * ROUNDS - allowed);
	rate_limiter_free(limiter);
}

TEST_MAIN(NULL, NULL)
