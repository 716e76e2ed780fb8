#include "jobs/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Background work gives way to requests. */
#define WORKER_NICE 5

struct worker {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool woken;
	atomic_bool stopping;
	worker_run_function *run;
	void *context;
};

static void wait_for_call(struct worker *worker, int64_t pause_us)
{
	int64_t until_us = clock_monotonic_us() + pause_us;
	struct timespec until = {.tv_sec = until_us / US_PER_SECOND,
	                         .tv_nsec = until_us % US_PER_SECOND * 1000};
	pthread_mutex_lock(&worker->mutex);
	while (!worker->woken && !atomic_load(&worker->stopping))
		if (pthread_cond_timedwait(&worker->changed, &worker->mutex, &until) != 0)
			break;
	worker->woken = false;
	pthread_mutex_unlock(&worker->mutex);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	/* On Linux a thread has a priority of its own, under its own number. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), WORKER_NICE);
	while (!atomic_load(&worker->stopping))
		wait_for_call(worker, worker->run(worker->context, &worker->stopping));
	return NULL;
}

int worker_start(const char *name, worker_run_function *run, void *context,
                 struct worker **ret_worker, struct error *error)
{
	struct worker *worker = calloc(1, sizeof *worker);
	if (!worker)
		return ERR_NO_MEMORY;
	worker->run = run;
	worker->context = context;
	pthread_mutex_init(&worker->mutex, NULL);
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&worker->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	int failure = pthread_create(&worker->thread, NULL, work, worker);
	if (failure) {
		pthread_cond_destroy(&worker->changed);
		pthread_mutex_destroy(&worker->mutex);
		free(worker);
		return error_cause(error, ERR_NO_MEMORY, "thread %s: %s", name, strerror(failure));
	}
	pthread_setname_np(worker->thread, name);
	*ret_worker = worker;
	return OK;
}

void worker_wake(struct worker *worker)
{
	if (!worker)
		return;
	pthread_mutex_lock(&worker->mutex);
	worker->woken = true;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->mutex);
}

void worker_ask_to_stop(struct worker *worker)
{
	if (!worker)
		return;
	atomic_store(&worker->stopping, true);
	worker_wake(worker);
}

void worker_join(struct worker *worker)
{
	if (!worker)
		return;
	worker_ask_to_stop(worker);
	pthread_join(worker->thread, NULL);
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->mutex);
	free(worker);
}
