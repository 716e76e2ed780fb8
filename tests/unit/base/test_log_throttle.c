#include "testing.h"
#include "base/clock.h"
#include "base/log_throttle.h"

TEST_CASE(test_what_is_beyond_is_counted)
{
	struct log_throttle pace = LOG_THROTTLE(2, 60);
	char omitted[LOG_THROTTLE_NUMBER_SIZE];
	int64_t now_us = 5; /* the machine has just started */
	for (int i = 0; i < 2; i++) {
		assert_true(log_throttle_take(&pace, now_us, omitted));
		assert_string_equal(omitted, "0");
	}
	for (int i = 0; i < 1000; i++)
		assert_false(log_throttle_take(&pace, now_us + 59 * US_PER_SECOND, omitted));
	now_us += 60 * US_PER_SECOND;
	assert_true(log_throttle_take(&pace, now_us, omitted));
	assert_string_equal(omitted, "1000");
	assert_true(log_throttle_take(&pace, now_us, omitted));
	assert_string_equal(omitted, "0");
	assert_false(log_throttle_take(&pace, now_us, omitted));
	assert_true(log_throttle_take(&pace, now_us + US_PER_DAY, omitted));
	assert_string_equal(omitted, "1");
}

TEST_MAIN(NULL, NULL)
