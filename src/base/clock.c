#include "base/clock.h"

#include <assert.h>
#include <time.h>

/* Days are counted from 0000-03-01. In a year that begins in March the leap day is last, so the
 * offset of a month does not depend on the year. */
#define DAYS_TO_1970 719468
#define FIRST_US (INT64_C(-62135596800) * US_PER_SECOND)  /* 0001-01-01T00:00:00Z */
#define BEYOND_US (INT64_C(253402300800) * US_PER_SECOND) /* 10000-01-01T00:00:00Z */

struct day {
	int year;
	int month; /* 1 to 12 */
	int day;   /* 1 to 31 */
};

static const int month_start[12] = {0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337};

static int64_t read_clock(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * US_PER_SECOND + now.tv_nsec / 1000;
}

int64_t clock_now_us(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t clock_monotonic_us(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_boot_us(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

static int year_start(int march_year)
{
	return 365 * march_year + march_year / 4 - march_year / 100 + march_year / 400;
}

static int64_t day_number(int year, int month, int day)
{
	int march_year = month > 2 ? year : year - 1;
	return year_start(march_year) + month_start[(month + 9) % 12] + day - 1 - DAYS_TO_1970;
}

static struct day day_of(int64_t number)
{
	int days = (int)(number + DAYS_TO_1970);
	int year = days / 366; /* never too large; up to seven years too small until 9999 */
	year += (days - year_start(year)) / 366;
	while (year_start(year + 1) <= days)
		year++;
	days -= year_start(year);
	int month = days / 31;
	if (month < 11 && month_start[month + 1] <= days)
		month++;
	days -= month_start[month];
	return (struct day){month < 10 ? year : year + 1, month < 10 ? month + 3 : month - 9, days + 1};
}

static int64_t day_number_at(int64_t time_us)
{
	assert(time_us >= FIRST_US && time_us < BEYOND_US);
	int64_t number = time_us / US_PER_DAY;
	return time_us % US_PER_DAY < 0 ? number - 1 : number;
}

static char *put_digits(char *text, int value, int count)
{
	for (int i = count - 1; i >= 0; i--) {
		text[i] = (char)('0' + value % 10);
		value /= 10;
	}
	return text + count;
}

static char *put_month(char *text, struct day day)
{
	text = put_digits(text, day.year, 4);
	*text++ = '-';
	return put_digits(text, day.month, 2);
}

static char *put_day(char *text, struct day day)
{
	text = put_month(text, day);
	*text++ = '-';
	return put_digits(text, day.day, 2);
}

void time_format(int64_t time_us, char text[TIME_TEXT_SIZE])
{
	int64_t number = day_number_at(time_us);
	int64_t rest_us = time_us - number * US_PER_DAY;
	int seconds = (int)(rest_us / US_PER_SECOND);
	text = put_day(text, day_of(number));
	*text++ = 'T';
	text = put_digits(text, seconds / 3600, 2);
	*text++ = ':';
	text = put_digits(text, seconds / 60 % 60, 2);
	*text++ = ':';
	text = put_digits(text, seconds % 60, 2);
	*text++ = '.';
	text = put_digits(text, (int)(rest_us % US_PER_SECOND), 6);
	*text++ = 'Z';
	*text = '\0';
}

void time_day_key(int64_t time_us, char key[11])
{
	*put_day(key, day_of(day_number_at(time_us))) = '\0';
}

void time_month_key(int64_t time_us, char key[8])
{
	*put_month(key, day_of(day_number_at(time_us))) = '\0';
}

int64_t time_day(int64_t time_us)
{
	return day_number_at(time_us);
}

void time_month_days(int64_t time_us, int64_t *ret_first, int64_t *ret_last)
{
	struct day day = day_of(day_number_at(time_us));
	*ret_first = day_number(day.year, day.month, 1);
	*ret_last =
		(day.month < 12 ? day_number(day.year, day.month + 1, 1) : day_number(day.year + 1, 1, 1)) -
		1;
}

int64_t time_next_day(int64_t time_us)
{
	return (day_number_at(time_us) + 1) * US_PER_DAY;
}

int time_year(int64_t time_us)
{
	return day_of(day_number_at(time_us)).year;
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Reads numbers in the positions that the pattern marks with '0'. All other characters must match
 * the pattern. At least one of them separates two numbers. */
static bool match(const char *text, const char *pattern, int *numbers)
{
	bool inside = false;
	numbers--;
	for (; *pattern; pattern++, text++) {
		if (*pattern != '0') {
			if (*text != *pattern && !(*pattern == 'T' && *text == 't'))
				return false;
			inside = false;
			continue;
		}
		if (!is_digit(*text))
			return false;
		if (!inside)
			*++numbers = 0;
		inside = true;
		*numbers = *numbers * 10 + (*text - '0');
	}
	return true;
}

/* Parses an optional fraction, in whole microseconds. */
static bool parse_fraction(struct slice *rest, int *ret_us)
{
	if (rest->size == 0 || rest->data[0] != '.')
		return true;
	size_t count = 0;
	int value_us = 0;
	for (; count + 1 < rest->size && is_digit(rest->data[count + 1]); count++)
		if (count < 6)
			value_us = value_us * 10 + (rest->data[count + 1] - '0');
	if (count < 1 || count > 9)
		return false;
	for (size_t i = count; i < 6; i++)
		value_us *= 10;
	*rest = slice_make(rest->data + 1 + count, rest->size - 1 - count);
	*ret_us = value_us;
	return true;
}

static bool parse_offset(struct slice rest, int *ret_minutes)
{
	if (slice_is(rest, "Z") || slice_is(rest, "z"))
		return true;
	int numbers[2];
	if (rest.size != 6 || (rest.data[0] != '+' && rest.data[0] != '-') ||
	    !match(rest.data + 1, "00:00", numbers) || numbers[0] > 23 || numbers[1] > 59)
		return false;
	int minutes = numbers[0] * 60 + numbers[1];
	*ret_minutes = rest.data[0] == '-' ? -minutes : minutes;
	return true;
}

static int month_days(int year, int month)
{
	static const int days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return days[month - 1] + (month == 2 && leap);
}

int time_parse(struct slice text, const char *field, int64_t *ret_us, struct error *error)
{
	static const char pattern[] = "0000-00-00T00:00:00";
	size_t size = sizeof pattern - 1;
	int part[6]; /* year, month, day, hour, minute, second */
	int fraction_us = 0;
	int offset_minutes = 0;
	if (text.size <= size || !match(text.data, pattern, part))
		return error_set(error, ERR_VALIDATION, MSG_BASE_TIME_SHAPE, field, NULL);
	struct slice rest = slice_make(text.data + size, text.size - size);
	if (!parse_fraction(&rest, &fraction_us) || !parse_offset(rest, &offset_minutes) ||
	    part[3] > 23 || part[4] > 59 || part[5] > 60)
		return error_set(error, ERR_VALIDATION, MSG_BASE_TIME_SHAPE, field, NULL);
	if (part[5] == 60)
		return error_set(error, ERR_VALIDATION, MSG_BASE_TIME_SECOND, field, NULL);
	if (part[0] == 0)
		return error_set(error, ERR_VALIDATION, MSG_BASE_TIME_YEAR, field, NULL);
	if (part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > month_days(part[0], part[1]))
		return error_set(error, ERR_VALIDATION, MSG_BASE_TIME_DAY, field, NULL);
	int64_t seconds = (part[3] * 60 + part[4] - offset_minutes) * INT64_C(60) + part[5];
	int64_t time_us =
		day_number(part[0], part[1], part[2]) * US_PER_DAY + seconds * US_PER_SECOND + fraction_us;
	if (time_us < FIRST_US || time_us >= BEYOND_US)
		return error_set(error, ERR_VALIDATION, MSG_BASE_TIME_YEAR, field, NULL);
	*ret_us = time_us;
	return OK;
}

bool duration_parse(struct slice text, int64_t *ret_us)
{
	static const struct {
		const char *unit;
		int64_t us;
	} units[] = {{"ms", 1000},
	             {"s", 1000000},
	             {"m", INT64_C(60000000)},
	             {"h", INT64_C(3600000000)},
	             {"d", INT64_C(86400000000)}};
	int64_t number = 0;
	size_t at = 0;
	while (at < text.size && at < 12 && text.data[at] >= '0' && text.data[at] <= '9')
		number = number * 10 + (text.data[at++] - '0');
	if (at == 0)
		return false;
	if (at == 1 && text.size == 1 && number == 0) {
		*ret_us = 0;
		return true;
	}
	struct slice unit = slice_make(text.data + at, text.size - at);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (slice_is(unit, units[i].unit))
			return !__builtin_mul_overflow(number, units[i].us, ret_us);
	return false;
}
