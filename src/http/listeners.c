#include "http/listeners.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/thread.h"
#include "http/http_internal.h"

#define INTERVAL_US (US_PER_SECOND / 2)

struct listeners {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct listener *first;
	size_t count;
	bool ending, ended;
};

/* Passes the request to a worker. If the queue is full, it waits for the next time, unless there is
 * none. */
static void pass_on(struct listeners *listeners, struct listener *listener, bool last)
{
	struct exchange *exchange = listener->exchange;
	if (last)
		listener->until_us = 0;
	if (worker_submit(exchange->server->workers[LANE_READERS], &exchange->task))
		return;
	if (!last && listeners_add(listeners, listener))
		return;
	if (!atomic_load(&exchange->abandoned))
		answer_error(exchange,
		             error_cause(&exchange->error, ERR_UNAVAILABLE, "the work queue is full"));
	loop_return(exchange);
}

static struct listener *take_all(struct listeners *listeners)
{
	struct listener *all = listeners->first;
	listeners->first = NULL;
	listeners->count = 0;
	return all;
}

static void *run(void *context)
{
	struct listeners *listeners = context;
	pthread_setname_np(pthread_self(), "http-listeners");
	pthread_mutex_lock(&listeners->lock);
	for (bool last = false; !last;) {
		int64_t until_us = clock_monotonic_us() + INTERVAL_US;
		while (!listeners->ending &&
		       thread_wait_until(&listeners->changed, &listeners->lock, until_us))
			continue;
		while (!listeners->ending && !listeners->first)
			pthread_cond_wait(&listeners->changed, &listeners->lock);
		last = listeners->ending;
		struct listener *next = take_all(listeners);
		pthread_mutex_unlock(&listeners->lock);
		for (struct listener *listener; (listener = next);) {
			next = listener->next;
			pass_on(listeners, listener, last);
		}
		pthread_mutex_lock(&listeners->lock);
	}
	pthread_mutex_unlock(&listeners->lock);
	return NULL;
}

struct listeners *listeners_start(void)
{
	struct listeners *listeners = calloc(1, sizeof *listeners);
	if (!listeners)
		return NULL;
	pthread_mutex_init(&listeners->lock, NULL);
	pthread_cond_init(&listeners->changed, NULL);
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	listeners->ended = pthread_create(&listeners->thread, NULL, run, listeners) != 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!listeners->ended)
		return listeners;
	listeners_free(listeners);
	return NULL;
}

static bool has_capacity(const struct listeners *listeners, int64_t chain)
{
	size_t of_channel = 0;
	for (const struct listener *one = listeners->first; one; one = one->next)
		of_channel += one->chain == chain;
	return listeners->count < LISTENERS_MAX && of_channel < LISTENERS_OF_CHANNEL_MAX;
}

bool listeners_add(struct listeners *listeners, struct listener *listener)
{
	pthread_mutex_lock(&listeners->lock);
	bool added = !listeners->ending && has_capacity(listeners, listener->chain);
	if (added) {
		listener->next = listeners->first;
		listeners->first = listener;
		if (listeners->count++ == 0)
			pthread_cond_signal(&listeners->changed);
	}
	pthread_mutex_unlock(&listeners->lock);
	return added;
}

void listeners_end(struct listeners *listeners)
{
	if (!listeners || listeners->ended)
		return;
	pthread_mutex_lock(&listeners->lock);
	listeners->ending = true;
	pthread_cond_signal(&listeners->changed);
	pthread_mutex_unlock(&listeners->lock);
	pthread_join(listeners->thread, NULL);
	listeners->ended = true;
}

void listeners_free(struct listeners *listeners)
{
	if (!listeners)
		return;
	pthread_cond_destroy(&listeners->changed);
	pthread_mutex_destroy(&listeners->lock);
	free(listeners);
}
