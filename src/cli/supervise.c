#include "cli/supervise.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/notify.h"
#include "http/server.h"

/* A supervisor waits for 90 seconds at least, as systemd does, or is told otherwise. */
#define LOOK_EVERY_US (5 * US_PER_SECOND)
#define EXTEND_US (60 * US_PER_SECOND)
/* What a start that only waits uses, for its own polling, in each look's time. */
#define IDLE_PROCESSOR_US (US_PER_SECOND / 20)

struct supervision {
	pthread_t thread; /* while it starts, and while it ends */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool runs;           /* the thread */
	int64_t watchdog_us; /* 0: nobody waits for a sign of life */
	int64_t alive_us;    /* when it was last given */
};

struct work {
	int64_t processor_us;
	int64_t blocks; /* read and written */
};

static struct work work_done(void)
{
	struct rusage used = {0};
	getrusage(RUSAGE_SELF, &used);
	return (struct work){
		.processor_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * US_PER_SECOND +
	                    used.ru_utime.tv_usec + used.ru_stime.tv_usec,
		.blocks = used.ru_inblock + used.ru_oublock,
	};
}

/* False: the thread is to end. The mutex is held. */
static bool pause_thread(struct supervision *supervision, int64_t pause_us)
{
	int64_t until_us = clock_monotonic_us() + pause_us;
	struct timespec until = {.tv_sec = until_us / US_PER_SECOND,
	                         .tv_nsec = until_us % US_PER_SECOND * 1000};
	while (supervision->runs)
		if (pthread_cond_clockwait(&supervision->changed, &supervision->mutex, CLOCK_MONOTONIC,
		                           &until) != 0)
			break;
	return supervision->runs;
}

static void *watch_start(void *context)
{
	struct supervision *supervision = context;
	struct work before = work_done();
	pthread_mutex_lock(&supervision->mutex);
	while (pause_thread(supervision, LOOK_EVERY_US)) {
		struct work now = work_done();
		if (now.processor_us - before.processor_us > IDLE_PROCESSOR_US ||
		    now.blocks != before.blocks)
			notify_extend(EXTEND_US);
		before = now;
	}
	pthread_mutex_unlock(&supervision->mutex);
	return NULL;
}

/* How long an end takes is bounded by whoever ends the process (node_close). */
static void *watch_end(void *context)
{
	struct supervision *supervision = context;
	pthread_mutex_lock(&supervision->mutex);
	while (pause_thread(supervision, supervision->watchdog_us / 2))
		notify_alive();
	pthread_mutex_unlock(&supervision->mutex);
	return NULL;
}

static void start_thread(struct supervision *supervision, void *(*run)(void *context))
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	supervision->runs = true;
	if (pthread_create(&supervision->thread, NULL, run, supervision) != 0)
		supervision->runs = false;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end_thread(struct supervision *supervision)
{
	pthread_mutex_lock(&supervision->mutex);
	bool runs = supervision->runs;
	supervision->runs = false;
	if (runs)
		pthread_cond_signal(&supervision->changed);
	pthread_mutex_unlock(&supervision->mutex);
	if (runs)
		pthread_join(supervision->thread, NULL);
}

struct supervision *supervise_start(void)
{
	struct supervision *supervision = notify_is_heard() ? calloc(1, sizeof *supervision) : NULL;
	if (!supervision)
		return NULL;
	pthread_mutex_init(&supervision->mutex, NULL);
	pthread_cond_init(&supervision->changed, NULL);
	supervision->watchdog_us = notify_watchdog_us();
	notify_status("starts");
	start_thread(supervision, watch_start);
	return supervision;
}

void supervise_ready(struct supervision *supervision, const char *listen)
{
	char status[256];
	if (!supervision)
		return;
	end_thread(supervision);
	snprintf(status, sizeof status, "serves on %s", listen);
	notify_ready(status);
	supervision->alive_us = clock_monotonic_us();
}

void supervise_look(struct supervision *supervision, struct http_server *http)
{
	int64_t now_us = clock_monotonic_us();
	if (!supervision || !supervision->watchdog_us ||
	    now_us - supervision->alive_us < supervision->watchdog_us / 2 || !http_has_turned(http))
		return;
	notify_alive();
	supervision->alive_us = now_us;
}

void supervise_stop(struct supervision *supervision)
{
	if (!supervision)
		return;
	end_thread(supervision);
	notify_stopping(supervision->watchdog_us > 0);
	if (supervision->watchdog_us)
		start_thread(supervision, watch_end);
}

void supervise_free(struct supervision *supervision)
{
	if (!supervision)
		return;
	end_thread(supervision);
	pthread_cond_destroy(&supervision->changed);
	pthread_mutex_destroy(&supervision->mutex);
	free(supervision);
}
