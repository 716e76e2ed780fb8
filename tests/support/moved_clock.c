/* Preloaded into any program: moves its wall clock by CLOCK_OFFSET_SECONDS, and by the current
 * value of the file CLOCK_OFFSET_FILE (a native 64-bit number of seconds); positive: forward.
 * Clocks that measure durations are not moved, nor are file times, which the kernel sets. Programs
 * that call the kernel without the C library, such as Go programs, are not affected. CLOCK_LIBRARY
 * is the path of this library, for processes that are started with an empty environment. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* Deadlines of clocks that count from the start of the machine are earlier than this (2001). */
#define FIRST_WALL_SECONDS 1000000000

static int64_t fixed_offset;
static const int64_t none;
static const volatile int64_t *set_offset = &none;

#define REAL(function) ((__typeof__(&(function)))find(#function))

static void *find(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* Environment of processes that would start without variables. */
static char *inherited[5];

static void inherit(const char *name, const char *value)
{
	static int count;
	char *variable;
	if (value && asprintf(&variable, "%s=%s", name, value) >= 0)
		inherited[count++] = variable;
}

__attribute__((constructor)) static void prepare(void)
{
	const char *seconds = getenv("CLOCK_OFFSET_SECONDS");
	const char *path = getenv("CLOCK_OFFSET_FILE");
	inherit("LD_PRELOAD", getenv("CLOCK_LIBRARY"));
	inherit("CLOCK_OFFSET_SECONDS", seconds);
	inherit("CLOCK_OFFSET_FILE", path);
	inherit("ASAN_OPTIONS", "verify_asan_link_order=0");
	fixed_offset = seconds ? strtoll(seconds, NULL, 10) : 0;
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (file < 0)
		return;
	void *mapped = mmap(NULL, sizeof *set_offset, PROT_READ, MAP_SHARED, file, 0);
	if (mapped != MAP_FAILED)
		set_offset = mapped;
	close(file);
}

static int64_t offset(void)
{
	return fixed_offset + *set_offset;
}

/* ---- the time ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*real)(clockid_t, struct timespec *);
	if (!real)
		real = REAL(clock_gettime);
	int result = real(clock, time);
	if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		time->tv_sec += offset();
	return result;
}

int timespec_get(struct timespec *time, int base)
{
	return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, time) ? base : 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	static int (*real)(struct timeval *restrict, void *restrict);
	if (!real)
		real = REAL(gettimeofday);
	int result = real(time, zone);
	if (!result)
		time->tv_sec += offset();
	return result;
}

time_t time(time_t *ret)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}

/* ---- absolute time-outs ---- */

/* Returns the deadline for the kernel, whose clock is not moved. */
static struct timespec unmoved(const struct timespec *until)
{
	struct timespec result = *until;
	if (result.tv_sec >= FIRST_WALL_SECONDS)
		result.tv_sec -= offset();
	return result;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
	static __typeof__(&pthread_cond_timedwait) real;
	if (!real) /* if an older version exists, dlsym may return that one */
		real = (__typeof__(real))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	if (!real)
		real = REAL(pthread_cond_timedwait);
	struct timespec deadline = unmoved(until);
	return real(condition, mutex, &deadline);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict until)
{
	struct timespec deadline = unmoved(until);
	return REAL(pthread_mutex_timedlock)(mutex, &deadline);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until)
{
	struct timespec deadline = unmoved(until);
	return REAL(sem_timedwait)(semaphore, &deadline);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
	struct timespec deadline = *until;
	if ((flags & TIMER_ABSTIME) && clock == CLOCK_REALTIME)
		deadline = unmoved(until);
	return REAL(clock_nanosleep)(clock, flags, &deadline, left);
}

int timerfd_settime(int timer, int flags, const struct itimerspec *until, struct itimerspec *before)
{
	struct itimerspec deadline = *until;
	if (flags & TFD_TIMER_ABSTIME)
		deadline.it_value = unmoved(&until->it_value);
	return REAL(timerfd_settime)(timer, flags, &deadline, before);
}

/* ---- processes ---- */

int posix_spawn(pid_t *restrict ret, const char *restrict path,
                const posix_spawn_file_actions_t *restrict actions,
                const posix_spawnattr_t *restrict attributes, char *const words[restrict],
                char *const environment[restrict])
{
	__typeof__(&posix_spawn) real = REAL(posix_spawn);
	return real(ret, path, actions, attributes, words, environment[0] ? environment : inherited);
}
