#include "base/log_throttle.h"

#include <inttypes.h>
#include <stdio.h>

bool log_throttle_take(struct log_throttle *pace, int64_t now_us,
                       char omitted[LOG_THROTTLE_NUMBER_SIZE])
{
	pthread_mutex_lock(&pace->lock);
	if (now_us - pace->since_us >= pace->period_us) {
		pace->since_us = now_us;
		pace->lines = 0;
	}
	bool may = pace->lines < pace->most;
	if (may) {
		snprintf(omitted, LOG_THROTTLE_NUMBER_SIZE, "%" PRId64, pace->omitted);
		pace->lines++;
		pace->omitted = 0;
	} else {
		pace->omitted++;
	}
	pthread_mutex_unlock(&pace->lock);
	return may;
}
