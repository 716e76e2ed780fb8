/* Times are int64_t microseconds since 1970-01-01T00:00:00Z, named `…_us`. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define TIME_TEXT_SIZE 28 /* "2026-01-02T03:04:05.678901Z" and NUL */
#define TIME_NONE INT64_MIN
#define US_PER_SECOND INT64_C(1000000)
#define US_PER_DAY (INT64_C(86400) * US_PER_SECOND)

/* Return the wall clock, the monotonic clock for waiting and measuring, and the monotonic clock
 * that includes time in suspend (CLOCK_BOOTTIME). */
int64_t clock_now_us(void);
int64_t clock_monotonic_us(void);
int64_t clock_boot_us(void);

/* Writes 27 characters with six fractional digits and Z. The year must be 1 to 9999. */
void time_format(int64_t time_us, char text[TIME_TEXT_SIZE]);

/* Parses a restricted RFC 3339 date-time: T or t, Z or z or ±hh:mm, and up to nine fractional
 * digits, truncated to six. Spaces, second 60, year 0000 and days that do not exist are refused.
 * The result in UTC must be in the years 0001 to 9999. Returns 0, or ERR_VALIDATION with a message
 * that names `field`. */
int time_parse(struct slice text, const char *field, int64_t *ret_us, struct error *error)
	MUST_CHECK;

/* Parses a duration with a unit ("500ms", "60s", "5m", "2h", "7d") or "0" into microseconds. */
bool duration_parse(struct slice text, int64_t *ret_us) MUST_CHECK;

/* Write the UTC day as "YYYY-MM-DD" and the UTC month as "YYYY-MM". time_next_day returns the start
 * of the next UTC day. */
void time_day_key(int64_t time_us, char key[11]);
void time_month_key(int64_t time_us, char key[8]);
int64_t time_next_day(int64_t time_us);
/* time_day returns the UTC day, counted from 1970-01-01, and time_month_days the first and the last
 * day of its month. */
int64_t time_day(int64_t time_us);
void time_month_days(int64_t time_us, int64_t *ret_first, int64_t *ret_last);
int time_year(int64_t time_us);

#endif
