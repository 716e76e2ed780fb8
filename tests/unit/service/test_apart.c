/* Chains that are set apart: their pauses, and what makes room for what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

static void one_is_listed_by_account_and_chain(void **state)
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

/* It doubles with every failure in a row up to ten minutes, and counts from the last one. */
static void the_pause_grows_with_every_failure(void **state)
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

static void what_went_well_is_forgotten(void **state)
{
	for (int64_t chain = 0; chain < 3; chain++)
		for (int64_t failure = 0; failure <= chain; failure++)
			apart_add(&apart, 1, chain, START);
	assert_true(apart_remove(&apart, 1, 0));
	assert_false(apart_has(&apart, 1, 0));
	assert_false(apart_remove(&apart, 1, 0));
	assert_int_equal(apart_add(&apart, 1, 0, START), 1);
	/* The others' failures are still in a row. */
	assert_int_equal(apart_add(&apart, 1, 1, START), 3);
	assert_int_equal(apart_add(&apart, 1, 2, START), 4);
	assert_int_equal(apart_count(&apart, START), 3);
}

static void only_the_last_hour_is_counted(void **state)
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

static void the_one_that_failed_longest_ago_makes_room(void **state)
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
	/* The last one listed is the oldest now, unless it fails again. */
	apart_add(&apart, 1, APART_MAX - 1, START + HOUR / 2);
	apart_add(&apart, 1, NEW + 1, START + HOUR / 2);
	assert_true(apart_has(&apart, 1, APART_MAX - 1));
	assert_false(apart_has(&apart, 1, APART_MAX - 2));
}

static void fewer_and_fewer_failures_are_told(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_is_listed_by_account_and_chain, set_up),
		cmocka_unit_test_setup(the_pause_grows_with_every_failure, set_up),
		cmocka_unit_test_setup(what_went_well_is_forgotten, set_up),
		cmocka_unit_test_setup(only_the_last_hour_is_counted, set_up),
		cmocka_unit_test_setup(the_one_that_failed_longest_ago_makes_room, set_up),
		cmocka_unit_test(fewer_and_fewer_failures_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
