/* How often lines of one kind are logged that clients can cause as often as they like. Those beyond
 * are counted, and the next line that is written has their number as "omitted". Thread safe. */
#ifndef BASE_LOG_PACE_H
#define BASE_LOG_PACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LOG_PACE_NUMBER_SIZE 24

struct log_pace {
	pthread_mutex_t lock;
	const int64_t most, period_us;
	int64_t since_us;       /* monotonic: when the present period began */
	int64_t lines, omitted; /* in it; since the last line */
};

/* One for each place that logs: at most `most` lines in `seconds`. */
#define LOG_PACE(most, seconds)                                                                    \
	{                                                                                              \
		PTHREAD_MUTEX_INITIALIZER, (most), (seconds)*INT64_C(1000000), INT64_MIN / 2, 0, 0         \
	}

/* Whether a line may be written now (monotonic); then `omitted` is how many could not since the one
 * before. */
bool log_pace_take(struct log_pace *pace, int64_t now_us, char omitted[LOG_PACE_NUMBER_SIZE]);

#endif
