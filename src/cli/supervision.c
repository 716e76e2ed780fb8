#include "cli/supervision.h"

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

/* Supervisors wait at least 90 seconds, as systemd does, unless configured otherwise. */
#define CHECK_INTERVAL_US (5 * US_PER_SECOND)
#define EXTEND_US (60 * US_PER_SECOND)
/* Processor time that an idle start uses for polling in one interval. */
#define IDLE_PROCESSOR_US (US_PER_SECOND / 20)

struct supervision {
	pthread_t thread; /* runs during start and stop */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool runs;           /* the thread runs */
	int64_t watchdog_us; /* 0: no watchdog */
	int64_t alive_us;    /* time of the last keep-alive notification */
};

struct work {
	int64_t processor_us;
	int64_t blocks; /* blocks read and written */
};

static struct work measure_work(void)
{
	struct rusage used = {0};
	getrusage(RUSAGE_SELF, &used);
	return (struct work){
		.processor_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * US_PER_SECOND +
	                    used.ru_utime.tv_usec + used.ru_stime.tv_usec,
		.blocks = used.ru_inblock + used.ru_oublock,
	};
}

/* Returns false when the thread has to end. The mutex is held. */
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
	struct work before = measure_work();
	pthread_mutex_lock(&supervision->mutex);
	while (pause_thread(supervision, CHECK_INTERVAL_US)) {
		struct work now = measure_work();
		if (now.processor_us - before.processor_us > IDLE_PROCESSOR_US ||
		    now.blocks != before.blocks)
			notify_extend(EXTEND_US);
		before = now;
	}
	pthread_mutex_unlock(&supervision->mutex);
	return NULL;
}

/* Sends keep-alive notifications while the node stops. The duration is bounded by node_close, which
 * ends the process by force. */
static void *watch_stop(void *context)
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

static void stop_thread(struct supervision *supervision)
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

struct supervision *supervision_start(void)
{
	struct supervision *supervision = notify_is_enabled() ? calloc(1, sizeof *supervision) : NULL;
	if (!supervision)
		return NULL;
	pthread_mutex_init(&supervision->mutex, NULL);
	pthread_cond_init(&supervision->changed, NULL);
	supervision->watchdog_us = notify_watchdog_us();
	notify_status("starting");
	start_thread(supervision, watch_start);
	return supervision;
}

void supervision_notify_ready(struct supervision *supervision, const char *listen)
{
	char status[256];
	if (!supervision)
		return;
	stop_thread(supervision);
	snprintf(status, sizeof status, "serving on %s", listen);
	notify_ready(status);
	supervision->alive_us = clock_monotonic_us();
}

void supervision_keep_alive(struct supervision *supervision, struct http_server *http)
{
	int64_t now_us = clock_monotonic_us();
	if (!supervision || !supervision->watchdog_us ||
	    now_us - supervision->alive_us < supervision->watchdog_us / 2 || !http_has_iterated(http))
		return;
	notify_alive();
	supervision->alive_us = now_us;
}

void supervision_begin_stop(struct supervision *supervision)
{
	if (!supervision)
		return;
	stop_thread(supervision);
	notify_stopping(supervision->watchdog_us > 0);
	if (supervision->watchdog_us)
		start_thread(supervision, watch_stop);
}

void supervision_free(struct supervision *supervision)
{
	if (!supervision)
		return;
	stop_thread(supervision);
	pthread_cond_destroy(&supervision->changed);
	pthread_mutex_destroy(&supervision->mutex);
	free(supervision);
}
