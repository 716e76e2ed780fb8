/* Retry schedules and exponential back-off. Pure functions; the caller passes the random number. */
#ifndef BASE_SCHEDULE_H
#define BASE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must_check.h"

#define SCHEDULE_WAITS_MAX 20

/* Waits between attempts, as configured by an operator. */
struct schedule {
	size_t count;
	int64_t waits_us[SCHEDULE_WAITS_MAX];
};

/* Parses a list of durations (base/clock.h) such as "1m, 5m,2h", separated by commas with optional
 * spaces. NULL or empty: no waits. Returns false if the text is not valid or has too many. */
bool schedule_parse(const char *text, struct schedule *ret) MUST_CHECK;
/* Returns the wait after attempt `tries` (from 1), with up to 10 % of jitter from `random`, so that
 * nodes and jobs do not retry at the same time. -1: no attempts are left. */
int64_t schedule_wait_us(const struct schedule *schedule, int64_t tries, uint32_t random);

/* Exponential back-off without jitter: `first_us` after one failure, doubled after each further
 * failure, at most `longest_us`. */
int64_t backoff_us(int64_t failures, int64_t first_us, int64_t longest_us);

#endif
