#include "service/registrar.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "store/db.h"

#define QUEUE_MAX 16384
#define BATCH_MAX 1024

struct registrar {
	struct service *service;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t arrived;
	struct pending_registration *first;
	struct pending_registration **end;
	size_t length;
	bool stopping;
	/* Of the thread alone. */
	struct pending_registration *taken[BATCH_MAX];
	struct registration *items[BATCH_MAX];
	/* Written by the thread, read by anybody. */
	atomic_uint_fast64_t registered, replayed, conflicts, refused, batches, batch_failures;
};

int register_submit(struct service *service, struct pending_registration *pending,
                    struct error *error)
{
	struct registrar *registrar = service->registrar;
	bool live = pending->registration.chain % 2 == MODE_LIVE;
	int result = live ? service_clock_ready(service, error) : OK;
	if (result != OK)
		return result;
	pending->next = NULL;
	pthread_mutex_lock(&registrar->mutex);
	bool refused = registrar->stopping || registrar->length >= QUEUE_MAX;
	bool was_empty = registrar->length == 0;
	if (!refused) {
		*registrar->end = pending;
		registrar->end = &pending->next;
		registrar->length++;
	}
	pthread_mutex_unlock(&registrar->mutex);
	if (refused)
		return error_cause(error, ERR_UNAVAILABLE, "the registration queue is full or closed");
	if (was_empty)
		pthread_cond_signal(&registrar->arrived);
	return OK;
}

/* Waits for work; 0 only when stopping and nothing is left. */
static size_t take_batch(struct registrar *registrar)
{
	size_t count = 0;
	pthread_mutex_lock(&registrar->mutex);
	while (!registrar->first && !registrar->stopping)
		pthread_cond_wait(&registrar->arrived, &registrar->mutex);
	while (registrar->first && count < BATCH_MAX) {
		struct pending_registration *pending = registrar->first;
		registrar->first = pending->next;
		registrar->taken[count] = pending;
		registrar->items[count++] = &pending->registration;
	}
	if (!registrar->first)
		registrar->end = &registrar->first;
	registrar->length -= count;
	pthread_mutex_unlock(&registrar->mutex);
	return count;
}

static void count_outcome(struct registrar *registrar, const struct registration *item)
{
	if (item->result == ERR_CONFLICT)
		atomic_fetch_add_explicit(&registrar->conflicts, 1, memory_order_relaxed);
	else if (item->result != OK)
		atomic_fetch_add_explicit(&registrar->refused, 1, memory_order_relaxed);
	else if (item->replayed)
		atomic_fetch_add_explicit(&registrar->replayed, 1, memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&registrar->registered, 1, memory_order_relaxed);
}

static void log_failure(struct registrar *registrar, const struct error *error, size_t count)
{
	char number[24];
	snprintf(number, sizeof number, "%zu", count);
	atomic_fetch_add_explicit(&registrar->batch_failures, 1, memory_order_relaxed);
	log_error("batch_failed", "cause", error->cause, "registrations", number);
}

static void handle_batch(struct registrar *registrar, size_t count)
{
	struct store *store = registrar->service->store;
	struct error error;
	error_clear(&error);
	int result = store_register(store, 0, registrar->items, count, clock_now_us(), &error);
	if (result != OK)
		log_failure(registrar, &error, count);
	atomic_fetch_add_explicit(&registrar->batches, 1, memory_order_relaxed);
	for (size_t i = 0; i < count; i++) {
		struct registration *item = registrar->items[i];
		if (result != OK) {
			item->result = error_http_status(result) == 503 ? result : ERR_UNAVAILABLE;
			item->error = error;
			item->error.code = item->result;
		}
		count_outcome(registrar, item);
		registrar->taken[i]->done(registrar->taken[i]);
	}
	if (db_maintain(store_db(store), &error) != OK)
		log_error("checkpoint_failed", "cause", error.cause);
}

static void *registrar_run(void *argument)
{
	struct registrar *registrar = argument;
	pthread_setname_np(pthread_self(), "sequencer");
	size_t count;
	while ((count = take_batch(registrar)) > 0)
		handle_batch(registrar, count);
	return NULL;
}

int registrar_start(struct service *service, struct registrar **ret, struct error *error)
{
	struct registrar *registrar = calloc(1, sizeof *registrar);
	if (!registrar)
		return ERR_NO_MEMORY;
	registrar->service = service;
	registrar->end = &registrar->first;
	pthread_mutex_init(&registrar->mutex, NULL);
	pthread_cond_init(&registrar->arrived, NULL);
	if (pthread_create(&registrar->thread, NULL, registrar_run, registrar) != 0) {
		free(registrar);
		return error_cause(error, ERR_NO_MEMORY, "the sequencer's thread cannot start");
	}
	*ret = registrar;
	return OK;
}

void registrar_stop(struct registrar *registrar)
{
	if (!registrar)
		return;
	pthread_mutex_lock(&registrar->mutex);
	registrar->stopping = true;
	pthread_mutex_unlock(&registrar->mutex);
	pthread_cond_signal(&registrar->arrived);
	pthread_join(registrar->thread, NULL);
	pthread_mutex_destroy(&registrar->mutex);
	pthread_cond_destroy(&registrar->arrived);
	free(registrar);
}

void registrar_read_counts(struct registrar *registrar, struct service_counts *ret)
{
	ret->registered = atomic_load(&registrar->registered);
	ret->replayed = atomic_load(&registrar->replayed);
	ret->conflicts = atomic_load(&registrar->conflicts);
	ret->refused = atomic_load(&registrar->refused);
	ret->batches = atomic_load(&registrar->batches);
	ret->batch_failures = atomic_load(&registrar->batch_failures);
	pthread_mutex_lock(&registrar->mutex);
	ret->queue_length = registrar->length;
	pthread_mutex_unlock(&registrar->mutex);
}
