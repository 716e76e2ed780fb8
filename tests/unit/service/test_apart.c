/* Quarantined chains: their pauses, and which entry makes space for which. */
#include "testing.h"
#include "base/clock.h"
#include "service/apart.h"

#define SECOND US_PER_SECOND
#define HOUR (3600 * SECOND)
#define START (1000 * SECOND)

static struct apart apart;

static int set_up(void **state)
{
	apart = (struct apart){0};
	return 0;
}

TEST_CASE(one_is_listed_by_account_and_chain)
{
	assert_false(apart_has(&apart, 1, 2));
	assert_int_equal(apart_add(&apart, 1, 2, START), 1);
	assert_true(apart_has(&apart, 1, 2));
	assert_false(apart_has(&apart, 1, 3));
	assert_false(apart_has(&apart, 3, 2));
	assert_false(apart_has(&apart, 2, 1));
	assert_int_equal(apart_add(&apart, 1, 3, START), 1);
	assert_int_equal(apart_add(&apart, 1, 2, START), 2);
	assert_int_equal(apart.count, 2);
}

/* The pause doubles with every consecutive failure up to ten minutes, and begins at the last
 * failure. */
TEST_CASE(the_pause_grows_with_every_failure)
{
	static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600};
	int64_t now_us = START;
	assert_false(apart_waits(&apart, 1, 2, 0));
	for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
		assert_int_equal(apart_add(&apart, 1, 2, now_us), i + 1);
		int64_t end_us = now_us + pauses[i] * SECOND;
		assert_true(apart_waits(&apart, 1, 2, now_us));
		assert_true(apart_waits(&apart, 1, 2, end_us - 1));
		assert_false(apart_waits(&apart, 1, 2, end_us));
		assert_true(apart_has(&apart, 1, 2));
		now_us = end_us + 5 * SECOND;
	}
}

TEST_CASE(what_went_well_is_forgotten)
{
	for (int64_t chain = 0; chain < 3; chain++)
		for (int64_t failure = 0; failure <= chain; failure++)
			apart_add(&apart, 1, chain, START);
	assert_true(apart_remove(&apart, 1, 0));
	assert_false(apart_has(&apart, 1, 0));
	assert_false(apart_remove(&apart, 1, 0));
	assert_int_equal(apart_add(&apart, 1, 0, START), 1);
	/* The failures of the others still count as consecutive. */
	assert_int_equal(apart_add(&apart, 1, 1, START), 3);
	assert_int_equal(apart_add(&apart, 1, 2, START), 4);
	assert_int_equal(apart_count(&apart, START), 3);
}

TEST_CASE(only_the_last_hour_is_counted)
{
	apart_add(&apart, 1, 1, START);
	apart_add(&apart, 1, 2, START + 10 * SECOND);
	assert_int_equal(apart_count(&apart, START + HOUR - 1), 2);
	assert_int_equal(apart_count(&apart, START + HOUR), 1);
	assert_int_equal(apart_count(&apart, START + HOUR + 10 * SECOND), 0);
	assert_true(apart_has(&apart, 1, 1));
	apart_add(&apart, 1, 1, START + HOUR);
	assert_int_equal(apart_count(&apart, START + HOUR + 10 * SECOND), 1);
}

TEST_CASE(the_one_that_failed_longest_ago_makes_room)
{
	enum { OLDEST = 100, NEW = APART_MAX };
	for (int64_t chain = 0; chain < APART_MAX; chain++)
		apart_add(&apart, 1, chain, chain == OLDEST ? START : START + (APART_MAX - chain) * SECOND);
	assert_int_equal(apart_count(&apart, START), APART_MAX);
	assert_int_equal(apart_add(&apart, 1, NEW, START + HOUR / 2), 1);
	assert_false(apart_has(&apart, 1, OLDEST));
	for (int64_t chain = 0; chain <= APART_MAX; chain++)
		assert_true(chain == OLDEST || apart_has(&apart, 1, chain));
	assert_int_equal(apart.count, APART_MAX);
	/* The last one listed is now the oldest, unless it fails again. */
	apart_add(&apart, 1, APART_MAX - 1, START + HOUR / 2);
	apart_add(&apart, 1, NEW + 1, START + HOUR / 2);
	assert_true(apart_has(&apart, 1, APART_MAX - 1));
	assert_false(apart_has(&apart, 1, APART_MAX - 2));
}

TEST_CASE_WITH(fewer_and_fewer_failures_are_told, NULL, NULL)
{
	unsigned told = 0;
	for (unsigned failures = 1; failures <= 1024; failures++)
		told += apart_tells(failures);
	assert_int_equal(told, 11);
	assert_true(apart_tells(1));
	assert_true(apart_tells(2));
	assert_false(apart_tells(3));
	assert_true(apart_tells(1024));
	assert_false(apart_tells(1023));
}

TEST_MAIN_EACH(set_up, NULL)
