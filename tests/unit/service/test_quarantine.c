/* Quarantined chains: their pauses, and which entry makes space for which. */
#include "testing.h"
#include "base/clock.h"
#include "service/quarantine.h"

#define SECOND US_PER_SECOND
#define HOUR (3600 * SECOND)
#define START (1000 * SECOND)

static struct quarantine apart;

static int set_up(void **state)
{
	apart = (struct quarantine){0};
	return 0;
}

TEST_CASE(one_is_listed_by_account_and_chain)
{
	assert_false(quarantine_has(&apart, 1, 2));
	assert_int_equal(quarantine_add(&apart, 1, 2, START), 1);
	assert_true(quarantine_has(&apart, 1, 2));
	assert_false(quarantine_has(&apart, 1, 3));
	assert_false(quarantine_has(&apart, 3, 2));
	assert_false(quarantine_has(&apart, 2, 1));
	assert_int_equal(quarantine_add(&apart, 1, 3, START), 1);
	assert_int_equal(quarantine_add(&apart, 1, 2, START), 2);
	assert_int_equal(apart.count, 2);
}

/* The pause doubles with every consecutive failure up to ten minutes, and begins at the last
 * failure. */
TEST_CASE(the_pause_grows_with_every_failure)
{
	static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600};
	int64_t now_us = START;
	assert_false(quarantine_is_waiting(&apart, 1, 2, 0));
	for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
		assert_int_equal(quarantine_add(&apart, 1, 2, now_us), i + 1);
		int64_t end_us = now_us + pauses[i] * SECOND;
		assert_true(quarantine_is_waiting(&apart, 1, 2, now_us));
		assert_true(quarantine_is_waiting(&apart, 1, 2, end_us - 1));
		assert_false(quarantine_is_waiting(&apart, 1, 2, end_us));
		assert_true(quarantine_has(&apart, 1, 2));
		now_us = end_us + 5 * SECOND;
	}
}

TEST_CASE(what_went_well_is_forgotten)
{
	for (int64_t chain = 0; chain < 3; chain++)
		for (int64_t failure = 0; failure <= chain; failure++)
			quarantine_add(&apart, 1, chain, START);
	assert_true(quarantine_remove(&apart, 1, 0));
	assert_false(quarantine_has(&apart, 1, 0));
	assert_false(quarantine_remove(&apart, 1, 0));
	assert_int_equal(quarantine_add(&apart, 1, 0, START), 1);
	/* The failures of the others still count as consecutive. */
	assert_int_equal(quarantine_add(&apart, 1, 1, START), 3);
	assert_int_equal(quarantine_add(&apart, 1, 2, START), 4);
	assert_int_equal(quarantine_count_recent(&apart, START), 3);
}

TEST_CASE(only_the_last_hour_is_counted)
{
	quarantine_add(&apart, 1, 1, START);
	quarantine_add(&apart, 1, 2, START + 10 * SECOND);
	assert_int_equal(quarantine_count_recent(&apart, START + HOUR - 1), 2);
	assert_int_equal(quarantine_count_recent(&apart, START + HOUR), 1);
	assert_int_equal(quarantine_count_recent(&apart, START + HOUR + 10 * SECOND), 0);
	assert_true(quarantine_has(&apart, 1, 1));
	quarantine_add(&apart, 1, 1, START + HOUR);
	assert_int_equal(quarantine_count_recent(&apart, START + HOUR + 10 * SECOND), 1);
}

TEST_CASE(the_one_that_failed_longest_ago_makes_room)
{
	enum { OLDEST = 100, NEW = QUARANTINE_MAX };
	for (int64_t chain = 0; chain < QUARANTINE_MAX; chain++)
		quarantine_add(&apart, 1, chain,
		               chain == OLDEST ? START : START + (QUARANTINE_MAX - chain) * SECOND);
	assert_int_equal(quarantine_count_recent(&apart, START), QUARANTINE_MAX);
	assert_int_equal(quarantine_add(&apart, 1, NEW, START + HOUR / 2), 1);
	assert_false(quarantine_has(&apart, 1, OLDEST));
	for (int64_t chain = 0; chain <= QUARANTINE_MAX; chain++)
		assert_true(chain == OLDEST || quarantine_has(&apart, 1, chain));
	assert_int_equal(apart.count, QUARANTINE_MAX);
	/* The last one listed is now the oldest, unless it fails again. */
	quarantine_add(&apart, 1, QUARANTINE_MAX - 1, START + HOUR / 2);
	quarantine_add(&apart, 1, NEW + 1, START + HOUR / 2);
	assert_true(quarantine_has(&apart, 1, QUARANTINE_MAX - 1));
	assert_false(quarantine_has(&apart, 1, QUARANTINE_MAX - 2));
}

TEST_CASE_WITH(fewer_and_fewer_failures_are_told, NULL, NULL)
{
	unsigned told = 0;
	for (unsigned failures = 1; failures <= 1024; failures++)
		told += quarantine_is_logged(failures);
	assert_int_equal(told, 11);
	assert_true(quarantine_is_logged(1));
	assert_true(quarantine_is_logged(2));
	assert_false(quarantine_is_logged(3));
	assert_true(quarantine_is_logged(1024));
	assert_false(quarantine_is_logged(1023));
}

TEST_MAIN_EACH(set_up, NULL)
