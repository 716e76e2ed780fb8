#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rate.h"

static void test_bucket(void **state)
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
	/* Never more than the capacity, however long it was left alone. */
	rate = rate_take(limiter, 7, 10, 10, now + INT64_C(1000000) * US_PER_SECOND);
	assert_int_equal(rate.remaining, 9);
	rate_limiter_free(limiter);
}

static void test_burst(void **state)
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

static void test_bounded(void **state)
{
	struct rate_limiter *limiter = rate_limiter_create(64);
	/* Far more callers than buckets: nothing breaks, and the one that comes all the time stays. */
	for (int64_t i = 1; i < 20000; i++) {
		assert_true(rate_take(limiter, (uint64_t)i * 7919, 1, 1, i).allowed);
		rate_take(limiter, 3, 1, 1, i);
		assert_false(rate_take(limiter, 3, 1, 1, i).allowed);
	}
	struct rate_state rate = rate_take(limiter, 12345, INT64_MAX, INT64_MAX, 100000);
	assert_true(rate.allowed && rate.remaining > 0 && rate.reset_seconds >= 0);
	rate_limiter_free(limiter);
}

static void test_give_back(void **state)
{
	struct rate_limiter *limiter = rate_limiter_create(64);
	rate_give_back(limiter, 5, 2); /* one that is not there */
	assert_int_equal(rate_take(limiter, 5, 1, 2, 1000).remaining, 1);
	assert_int_equal(rate_take(limiter, 5, 1, 2, 1000).remaining, 0);
	assert_false(rate_take(limiter, 5, 1, 2, 1000).allowed);
	rate_give_back(limiter, 5, 2);
	assert_true(rate_take(limiter, 5, 1, 2, 1000).allowed);
	for (int i = 0; i < 9; i++)
		rate_give_back(limiter, 5, 2); /* never more than there is room for */
	assert_true(rate_take(limiter, 5, 1, 2, 1000).allowed);
	assert_true(rate_take(limiter, 5, 1, 2, 1000).allowed);
	assert_false(rate_take(limiter, 5, 1, 2, 1000).allowed);
	/* A time that comes late refills nothing twice. */
	assert_false(rate_take(limiter, 5, 1, 2, 500).allowed);
	assert_false(rate_take(limiter, 5, 1, 2, 1000 + 999999).allowed);
	rate_limiter_free(limiter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bucket),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_give_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
