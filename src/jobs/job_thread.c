#include "jobs/job_thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/epoch.h"
#include "base/thread.h"

/* Background work has a lower priority than requests. */
#define JOB_NICE 5
#define THREAD_NAME_MAX 15 /* of Linux */

struct job_thread {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool woken;
	atomic_bool stopping;
	job_thread_run_function *run;
	void *context;
};

static void wait_for_call(struct job_thread *thread, int64_t pause_us)
{
	int64_t until_us = clock_monotonic_us() + pause_us;
	pthread_mutex_lock(&thread->mutex);
	while (!thread->woken && !atomic_load(&thread->stopping))
		if (!thread_wait_until(&thread->changed, &thread->mutex, until_us))
			break;
	thread->woken = false;
	pthread_mutex_unlock(&thread->mutex);
}

static void *work(void *argument)
{
	struct job_thread *thread = argument;
	/* On Linux each thread has its own priority, set by its thread ID. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), JOB_NICE);
	while (!atomic_load(&thread->stopping)) {
		epoch_enter();
		int64_t pause_us = thread->run(thread->context, &thread->stopping);
		epoch_leave();
		wait_for_call(thread, pause_us);
	}
	return NULL;
}

int job_thread_start(const char *name, job_thread_run_function *run, void *context,
                     struct job_thread **ret_thread, struct error *error)
{
	assert(run && ret_thread);
	assert(strlen(name) <= THREAD_NAME_MAX); /* else it stays unnamed */
	struct job_thread *thread = calloc(1, sizeof *thread);
	if (!thread)
		return ERR_NO_MEMORY;
	thread->run = run;
	thread->context = context;
	pthread_mutex_init(&thread->mutex, NULL);
	pthread_cond_init(&thread->changed, NULL);
	int failure = pthread_create(&thread->thread, NULL, work, thread);
	if (failure) {
		pthread_cond_destroy(&thread->changed);
		pthread_mutex_destroy(&thread->mutex);
		free(thread);
		return error_cause(error, ERR_NO_MEMORY, "thread %s: %s", name, strerror(failure));
	}
	pthread_setname_np(thread->thread, name);
	*ret_thread = thread;
	return OK;
}

void job_thread_wake(struct job_thread *thread)
{
	if (!thread)
		return;
	pthread_mutex_lock(&thread->mutex);
	thread->woken = true;
	pthread_cond_signal(&thread->changed);
	pthread_mutex_unlock(&thread->mutex);
}

void job_thread_request_stop(struct job_thread *thread)
{
	if (!thread)
		return;
	atomic_store(&thread->stopping, true);
	job_thread_wake(thread);
}

void job_thread_join(struct job_thread *thread)
{
	if (!thread)
		return;
	job_thread_request_stop(thread);
	pthread_join(thread->thread, NULL);
}

void job_thread_free(struct job_thread *thread)
{
	if (!thread)
		return;
	assert(atomic_load(&thread->stopping)); /* by job_thread_join */
	pthread_cond_destroy(&thread->changed);
	pthread_mutex_destroy(&thread->mutex);
	free(thread);
}
