/* Preloaded into a node: its clock runs behind by CLOCK_LAG_SECONDS. What measures durations
 * (CLOCK_MONOTONIC) is left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static long lag_seconds;

__attribute__((constructor)) static void prepare(void)
{
	const char *lag = getenv("CLOCK_LAG_SECONDS");
	real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	lag_seconds = lag ? strtol(lag, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (!real_clock_gettime)
		prepare();
	int result = real_clock_gettime(clock, time);
	if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		time->tv_sec -= lag_seconds;
	return result;
}
