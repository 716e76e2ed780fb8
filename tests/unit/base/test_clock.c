#include "testing.h"
#include "base/clock.h"

static int64_t parse_good(const char *text)
{
	int64_t time_us = 0;
	struct error error = {0};
	if (time_parse(slice_of(text), "occurred_at", &time_us, &error) != 0)
		fail_msg("%s: %s", text, error.english);
	return time_us;
}

TEST_CASE(test_accepted)
{
	static const struct {
		const char *text;
		const char *normalized;
	} rows[] = {
		{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"},
		{"2026-01-02t03:04:05z", "2026-01-02T03:04:05.000000Z"},
		{"2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.100000Z"},
		{"2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901Z"},
		{"2026-01-02T03:04:05.999999999Z", "2026-01-02T03:04:05.999999Z"},
		{"2026-01-02T03:04:05.0000009Z", "2026-01-02T03:04:05.000000Z"},
		{"2026-01-02T03:04:05+01:00", "2026-01-02T02:04:05.000000Z"},
		{"2026-01-02T03:04:05.5-05:30", "2026-01-02T08:34:05.500000Z"},
		{"2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05.000000Z"},
		{"2026-01-01T00:00:00+23:59", "2025-12-31T00:01:00.000000Z"},
		{"2026-12-31T23:59:59-23:59", "2027-01-01T23:58:59.000000Z"},
		{"1985-04-12T23:20:50.52Z", "1985-04-12T23:20:50.520000Z"},
		{"1996-12-19T16:39:57-08:00", "1996-12-20T00:39:57.000000Z"},
		{"1937-01-01T12:00:27.87+00:20", "1937-01-01T11:40:27.870000Z"},
		{"1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"},
		{"2024-02-29T12:00:00Z", "2024-02-29T12:00:00.000000Z"},
		{"2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000000Z"},
		{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
		{"0001-01-01T00:00:00-00:01", "0001-01-01T00:01:00.000000Z"},
		{"9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999Z"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[TIME_TEXT_SIZE];
		time_format(parse_good(rows[i].text), text);
		assert_string_equal(text, rows[i].normalized);
	}
	assert_int_equal(parse_good("1970-01-01T00:00:00Z"), 0);
	assert_int_equal(parse_good("2026-01-02T03:04:05.678901Z"), INT64_C(1767323045678901));
	assert_int_equal(parse_good("0001-01-01T00:00:00Z"), INT64_C(-62135596800000000));
	assert_int_equal(parse_good("9999-12-31T23:59:59.999999Z"), INT64_C(253402300799999999));
}

TEST_CASE(test_refused)
{
	static const struct {
		const char *text;
		enum message message;
	} rows[] = {
		{"", MSG_BASE_TIME_SHAPE},
		{"2026-01-02", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05", MSG_BASE_TIME_SHAPE},
		{"2026-01-02 03:04:05Z", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04Z", MSG_BASE_TIME_SHAPE},
		{"2026-1-2T03:04:05Z", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05.Z", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05,5Z", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05.1234567890Z", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05.5", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05ZZ", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05Z ", MSG_BASE_TIME_SHAPE},
		{" 2026-01-02T03:04:05Z", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05+1:00", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05+0100", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05+01", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05+24:00", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05+01:60", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:05\xe2\x88\x92"
	     "01:00",
	     MSG_BASE_TIME_SHAPE},
		{"+2026-01-02T03:04:05Z", MSG_BASE_TIME_SHAPE},
		{"-026-01-02T03:04:05Z", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T24:00:00Z", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:60:00Z", MSG_BASE_TIME_SHAPE},
		{"2026-01-02T03:04:61Z", MSG_BASE_TIME_SHAPE},
		{"2016-12-31T23:59:60Z", MSG_BASE_TIME_SECOND},
		{"0000-01-01T00:00:00Z", MSG_BASE_TIME_YEAR},
		{"0001-01-01T00:00:00+00:01", MSG_BASE_TIME_YEAR},
		{"9999-12-31T23:59:59-00:01", MSG_BASE_TIME_YEAR},
		{"2026-00-10T00:00:00Z", MSG_BASE_TIME_DAY},
		{"2026-13-10T00:00:00Z", MSG_BASE_TIME_DAY},
		{"2026-01-00T00:00:00Z", MSG_BASE_TIME_DAY},
		{"2026-01-32T00:00:00Z", MSG_BASE_TIME_DAY},
		{"2026-04-31T00:00:00Z", MSG_BASE_TIME_DAY},
		{"2026-02-29T00:00:00Z", MSG_BASE_TIME_DAY},
		{"1900-02-29T00:00:00Z", MSG_BASE_TIME_DAY},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int64_t time_us = 77;
		struct error error = {0};
		int result = time_parse(slice_of(rows[i].text), "from", &time_us, &error);
		if (result != ERR_VALIDATION || error.message != rows[i].message)
			fail_msg("%s: %d %s", rows[i].text, result, error.english);
		assert_non_null(strstr(error.english, "'from'"));
		assert_non_null(strstr(error.spanish, "'from'"));
		assert_int_equal(time_us, 77);
	}
	assert_int_equal(time_parse(slice_of("x"), "from", &(int64_t){0}, NULL), ERR_VALIDATION);
	assert_int_equal(time_parse((struct slice){0}, "from", &(int64_t){0}, NULL), ERR_VALIDATION);
}

/* Compares every day of the calendar with a simple count. */
TEST_CASE(test_every_day)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int64_t start_us = parse_good("0001-01-01T00:00:00Z");
	int64_t count = 0;
	for (int year = 1; year <= 9999; year++) {
		bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
		for (int month = 1; month <= 12; month++) {
			int length = lengths[month - 1] + (leap && month == 2);
			for (int day = 1; day <= length; day++, count++) {
				char expected[64];
				char key[11];
				int64_t time_us = start_us + count * US_PER_DAY;
				int64_t last_us = time_us + US_PER_DAY - 1;
				snprintf(expected, sizeof expected, "%04d-%02d-%02d", year, month, day);
				time_day_key(time_us, key);
				if (strcmp(key, expected) != 0)
					fail_msg("%s is not %s", key, expected);
				time_day_key(last_us, key);
				if (strcmp(key, expected) != 0)
					fail_msg("%s is not %s at its end", key, expected);
				if (time_next_day(last_us) != time_us + US_PER_DAY || time_year(last_us) != year)
					fail_msg("what follows %s", expected);
				int64_t number = time_day(last_us), first, last;
				time_month_days(last_us, &first, &last);
				if (number != time_us / US_PER_DAY || first != number - (day - 1) ||
				    last != number + length - day)
					fail_msg("the month of %s", expected);
				snprintf(expected + 10, sizeof expected - 10, "T23:59:59.999999Z");
				if (parse_good(expected) != last_us)
					fail_msg("reading %s", expected);
			}
		}
	}
	assert_int_equal(count, 3652059);
}

TEST_CASE(test_keys)
{
	char month[8];
	time_month_key(parse_good("2024-02-29T23:59:59.999999Z"), month);
	assert_string_equal(month, "2024-02");
	time_month_key(parse_good("1969-12-31T23:59:59.999999Z"), month);
	assert_string_equal(month, "1969-12");
}

TEST_CASE(test_clocks)
{
	int64_t before_us = clock_monotonic_us();
	assert_true(clock_monotonic_us() >= before_us);
	assert_true(clock_now_us() > parse_good("2020-01-01T00:00:00Z"));
}

TEST_MAIN(NULL, NULL)
