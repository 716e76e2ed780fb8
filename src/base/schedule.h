/* When what failed is tried again. Pure: whoever asks brings the random number. */
#ifndef BASE_SCHEDULE_H
#define BASE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must_check.h"

#define SCHEDULE_WAITS_MAX 20

/* The waits between one try and the next, as an operator lists them. */
struct schedule {
	size_t count;
	int64_t waits_us[SCHEDULE_WAITS_MAX];
};

/* "1m, 5m,2h": durations (base/clock.h), commas, spaces around them allowed; NULL or empty: none.
 * False: another text, or too many. */
bool schedule_parse(const char *text, struct schedule *ret) MUST_CHECK;
/* The wait after `tries` of them (from 1), with up to 10 % added by `random`, so that nodes and
 * their work do not come back all at once; -1: it is used up. */
int64_t schedule_wait_us(const struct schedule *schedule, int64_t tries, uint32_t random);

/* Exponential back-off without jitter: `first_us` after one failure, twice as long after each
 * further one, never longer than `longest_us`. */
int64_t backoff_us(int64_t failures, int64_t first_us, int64_t longest_us);

#endif
