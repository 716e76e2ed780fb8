#include "base/thread.h"

#include <time.h>

#include "base/clock.h"

_Thread_local bool thread_is_polling;

bool thread_wait_until(pthread_cond_t *changed, pthread_mutex_t *mutex, int64_t until_us)
{
	const struct timespec until = {.tv_sec = until_us / US_PER_SECOND,
	                               .tv_nsec = until_us % US_PER_SECOND * 1000};
	return pthread_cond_clockwait(changed, mutex, CLOCK_MONOTONIC, &until) == 0;
}
