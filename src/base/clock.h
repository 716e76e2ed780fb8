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

/* The wall clock, and two that only go forward: for waiting and measuring, and one that counts what
 * the machine slept, too. */
int64_t clock_now_us(void);
int64_t clock_monotonic_us(void);
int64_t clock_boot_us(void);

/* Always 27 characters, six fractional digits, Z. The year must be 1 to 9999. */
void time_format(int64_t time_us, char text[TIME_TEXT_SIZE]);

/* RFC 3339 date-time, as decisions narrow it: T or t, Z or z or ±hh:mm, up to nine fractional
 * digits (truncated to six, towards the past), no space, no second 60, no year 0000, a real
 * calendar day; the result in UTC must lie in years 0001 to 9999. 0 or ERR_VALIDATION with the
 * sentence naming `field`. */
int time_parse(struct slice text, const char *field, int64_t *ret_us, struct error *error)
	MUST_CHECK;

/* A duration as people write it ("500ms", "60s", "5m", "2h", "7d"; "0" needs no unit), in
 * microseconds. */
bool duration_parse(struct slice text, int64_t *ret_us) MUST_CHECK;

/* UTC day "YYYY-MM-DD" and month "YYYY-MM", the first moment of the next day, and the year. */
void time_day_key(int64_t time_us, char key[11]);
void time_month_key(int64_t time_us, char key[8]);
int64_t time_next_day(int64_t time_us);
/* The UTC day, counted from 1970-01-01, and the first and the last one of its month. */
int64_t time_day(int64_t time_us);
void time_month_days(int64_t time_us, int64_t *ret_first, int64_t *ret_last);
int time_year(int64_t time_us);

#endif
