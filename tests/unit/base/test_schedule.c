/* Schedules as operators write them, and back-off. */
#include "testing.h"
#include "base/clock.h"
#include "base/schedule.h"

#define SECOND US_PER_SECOND

TEST_CASE(lists_are_read)
{
	struct schedule schedule;
	assert_true(schedule_parse("1m, 5m ,30s", &schedule));
	assert_int_equal(schedule.count, 3);
	assert_int_equal(schedule.waits_us[0], 60 * SECOND);
	assert_int_equal(schedule.waits_us[1], 300 * SECOND);
	assert_int_equal(schedule.waits_us[2], 30 * SECOND);
	assert_true(schedule_parse("1m,", &schedule)); /* nothing may follow the last comma */
	assert_int_equal(schedule.count, 1);
	assert_true(schedule_parse("", &schedule));
	assert_int_equal(schedule.count, 0);
	assert_true(schedule_parse(NULL, &schedule));
	assert_int_equal(schedule.count, 0);
}

TEST_CASE(other_texts_are_refused)
{
	static const char *const bad[] = {"1x", ",1m", "1m,,2m", "1m 2m", " ", "-1m", "soon"};
	struct schedule schedule = {.count = 7};
	char text[3 * (SCHEDULE_WAITS_MAX + 1) + 1] = "";
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (schedule_parse(bad[i], &schedule))
			fail_msg("'%s' was taken", bad[i]);
	for (int i = 0; i < SCHEDULE_WAITS_MAX; i++)
		strcat(text, i ? ",1s" : "1s");
	assert_int_equal(schedule.count, 7); /* untouched */
	assert_true(schedule_parse(text, &schedule));
	assert_int_equal(schedule.count, SCHEDULE_WAITS_MAX);
	assert_false(schedule_parse(strcat(text, ",1s"), &schedule));
}

/* Up to 10 % is added, never subtracted. */
TEST_CASE(waits_grow_a_little_by_chance)
{
	struct schedule schedule = {.count = 3,
	                            .waits_us = {60 * SECOND, 300 * SECOND, 86400 * SECOND}};
	for (size_t i = 0; i < schedule.count; i++) {
		int64_t least_us = schedule.waits_us[i];
		int64_t tries = (int64_t)i + 1;
		assert_int_equal(schedule_wait_us(&schedule, tries, 0), least_us);
		assert_int_equal(schedule_wait_us(&schedule, tries, UINT32_MAX), least_us / 10 * 11);
		assert_in_range(schedule_wait_us(&schedule, tries, UINT32_MAX / 2), least_us / 100 * 104,
		                least_us / 100 * 106);
	}
	assert_int_equal(schedule_wait_us(&schedule, 4, 0), -1);
	assert_int_equal(schedule_wait_us(&(struct schedule){0}, 1, 0), -1);
}

TEST_CASE(back_off_doubles_up_to_its_longest)
{
	static const int64_t seconds[] = {2, 4, 8, 16, 32, 60, 60};
	assert_int_equal(backoff_us(0, 2 * SECOND, 60 * SECOND), 2 * SECOND);
	for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
		assert_int_equal(backoff_us((int64_t)i + 1, 2 * SECOND, 60 * SECOND), seconds[i] * SECOND);
	assert_int_equal(backoff_us(INT64_MAX, SECOND, 600 * SECOND), 600 * SECOND);
}

TEST_MAIN(NULL, NULL)
