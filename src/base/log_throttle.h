/* Rate limit for log lines that clients can cause without bound. Suppressed lines are counted, and
 * the next line reports their number as "omitted". Thread safe. */
#ifndef BASE_LOG_THROTTLE_H
#define BASE_LOG_THROTTLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LOG_THROTTLE_NUMBER_SIZE 24

struct log_throttle {
	pthread_mutex_t lock;
	const int64_t most, period_us;
	int64_t since_us;       /* monotonic: start of the current period */
	int64_t lines, omitted; /* in the period; since the last line */
};

/* Initializer, one per place that logs: at most `most` lines in `seconds`. */
#define LOG_THROTTLE(most, seconds)                                                                \
	{                                                                                              \
		PTHREAD_MUTEX_INITIALIZER, (most), (seconds)*INT64_C(1000000), INT64_MIN / 2, 0, 0         \
	}

/* Returns whether a line may be written at `now_us` (monotonic). If so, `omitted` is the number of
 * lines suppressed since the previous one. */
bool log_throttle_take(struct log_throttle *pace, int64_t now_us,
                       char omitted[LOG_THROTTLE_NUMBER_SIZE]);

#endif
