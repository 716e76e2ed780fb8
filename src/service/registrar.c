#include "service/registrar.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "store/db.h"

#define QUEUE_MAX 16384 /* of each sequencer */
#define BATCH_MAX 1024

/* One thread and its queue. */
struct sequencer {
	struct registrar *registrar;
	unsigned number;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t arrived;
	struct pending_registration *first;
	struct pending_registration **end;
	size_t length;
	bool stopping;
	/* Of the thread alone: its batch. */
	size_t count;
	struct pending_registration *taken[BATCH_MAX];
	struct registration *items[BATCH_MAX];
};

struct registrar {
	struct service *service;
	/* Written by the threads, read by anybody. */
	atomic_uint_fast64_t registered, replayed, conflicts, refused, batches, batch_failures;
	unsigned count, started;
	struct sequencer sequencers[];
};

int register_submit(struct service *service, struct pending_registration *pending,
                    struct error *error)
{
	struct registrar *registrar = service->registrar;
	bool live = pending->registration.chain % 2 == MODE_LIVE;
	int result = live ? service_clock_ready(service, error) : OK;
	if (result != OK)
		return result;
	struct sequencer *sequencer =
	    &registrar->sequencers[(uint64_t)pending->registration.account % registrar->count];
	pending->next = NULL;
	pthread_mutex_lock(&sequencer->mutex);
	bool refused = sequencer->stopping || sequencer->length >= QUEUE_MAX;
	bool was_empty = sequencer->length == 0;
	if (!refused) {
		*sequencer->end = pending;
		sequencer->end = &pending->next;
		sequencer->length++;
	}
	pthread_mutex_unlock(&sequencer->mutex);
	if (refused)
		return error_cause(error, ERR_UNAVAILABLE, "the registration queue is full or closed");
	if (was_empty)
		pthread_cond_signal(&sequencer->arrived);
	return OK;
}

/* With store.sharded a batch is of one account, so that its transaction stays on one shard: those of
 * others wait for their turn. Whoever waits longest says whose turn it is. */
static bool belongs(const struct sequencer *sequencer, const struct pending_registration *pending)
{
	return sequencer->count == 0 || !sequencer->registrar->service->settings->store_sharded ||
	       pending->registration.account == sequencer->items[0]->account;
}

static int compare_numbers(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a;
	int64_t right = *(const int64_t *)b;
	return (left > right) - (left < right);
}

static bool is_listed(const int64_t *accounts, size_t count, int64_t account)
{
	return bsearch(&account, accounts, count, sizeof account, compare_numbers) != NULL;
}

/* Moves what may join the batch out of the queue, whose mutex is held; `accounts` NULL: of all. */
static void take_waiting(struct sequencer *sequencer, const int64_t *accounts, size_t account_count)
{
	struct pending_registration **at = &sequencer->first;
	while (*at && sequencer->count < BATCH_MAX) {
		struct pending_registration *pending = *at;
		bool joins = accounts ? is_listed(accounts, account_count, pending->registration.account)
		                      : belongs(sequencer, pending);
		if (!joins) {
			at = &pending->next;
			continue;
		}
		*at = pending->next;
		if (sequencer->end == &pending->next)
			sequencer->end = at;
		sequencer->length--;
		sequencer->taken[sequencer->count] = pending;
		sequencer->items[sequencer->count++] = &pending->registration;
	}
}

/* Waits for work; false only when stopping and nothing is left. */
static bool take_batch(struct sequencer *sequencer)
{
	sequencer->count = 0;
	pthread_mutex_lock(&sequencer->mutex);
	while (!sequencer->first && !sequencer->stopping)
		pthread_cond_wait(&sequencer->arrived, &sequencer->mutex);
	take_waiting(sequencer, NULL, 0);
	pthread_mutex_unlock(&sequencer->mutex);
	return sequencer->count > 0;
}

/* The store has the accounts now: what has come for them since is of this batch. */
static void grow_batch(struct registration_batch *batch, const int64_t *accounts,
                       size_t account_count)
{
	struct sequencer *sequencer = batch->context;
	pthread_mutex_lock(&sequencer->mutex);
	take_waiting(sequencer, accounts, account_count);
	pthread_mutex_unlock(&sequencer->mutex);
	batch->count = sequencer->count;
	batch->now_us = clock_now_us();
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

static void handle_batch(struct sequencer *sequencer)
{
	struct registrar *registrar = sequencer->registrar;
	struct store *store = registrar->service->store;
	struct error error;
	error_clear(&error);
	struct registration_batch batch = {.items = sequencer->items,
	                                   .count = sequencer->count,
	                                   .now_us = clock_now_us(),
	                                   .grow = grow_batch,
	                                   .context = sequencer};
	int result = store_register_batch(store, sequencer->number, &batch, &error);
	if (result != OK)
		log_failure(registrar, &error, sequencer->count);
	atomic_fetch_add_explicit(&registrar->batches, 1, memory_order_relaxed);
	for (size_t i = 0; i < sequencer->count; i++) {
		struct registration *item = sequencer->items[i];
		if (result != OK) {
			item->result = error_http_status(result) == 503 ? result : ERR_UNAVAILABLE;
			item->error = error;
			item->error.code = item->result;
		}
		count_outcome(registrar, item);
		sequencer->taken[i]->done(sequencer->taken[i]);
	}
	if (db_maintain(store_db(store), &error) != OK)
		log_error("checkpoint_failed", "cause", error.cause);
}

static void *sequencer_run(void *argument)
{
	struct sequencer *sequencer = argument;
	pthread_setname_np(pthread_self(), "sequencer");
	while (take_batch(sequencer))
		handle_batch(sequencer);
	return NULL;
}

static bool sequencer_start(struct registrar *registrar, unsigned number)
{
	struct sequencer *sequencer = &registrar->sequencers[number];
	sequencer->registrar = registrar;
	sequencer->number = number;
	sequencer->end = &sequencer->first;
	pthread_mutex_init(&sequencer->mutex, NULL);
	pthread_cond_init(&sequencer->arrived, NULL);
	return pthread_create(&sequencer->thread, NULL, sequencer_run, sequencer) == 0;
}

int registrar_start(struct service *service, struct registrar **ret, struct error *error)
{
	unsigned count = store_sequencer_count(service->store);
	struct registrar *registrar =
	    calloc(1, sizeof *registrar + count * sizeof *registrar->sequencers);
	if (!registrar)
		return ERR_NO_MEMORY;
	registrar->service = service;
	registrar->count = count;
	while (registrar->started < count && sequencer_start(registrar, registrar->started))
		registrar->started++;
	if (registrar->started < count) {
		registrar_stop(registrar);
		return error_cause(error, ERR_NO_MEMORY, "a sequencer's thread cannot start");
	}
	*ret = registrar;
	return OK;
}

static void sequencer_stop(struct sequencer *sequencer)
{
	pthread_mutex_lock(&sequencer->mutex);
	sequencer->stopping = true;
	pthread_mutex_unlock(&sequencer->mutex);
	pthread_cond_signal(&sequencer->arrived);
	pthread_join(sequencer->thread, NULL);
	pthread_mutex_destroy(&sequencer->mutex);
	pthread_cond_destroy(&sequencer->arrived);
}

void registrar_stop(struct registrar *registrar)
{
	if (!registrar)
		return;
	for (unsigned i = 0; i < registrar->started; i++)
		sequencer_stop(&registrar->sequencers[i]);
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
	ret->queue_length = 0;
	for (unsigned i = 0; i < registrar->started; i++) {
		struct sequencer *sequencer = &registrar->sequencers[i];
		pthread_mutex_lock(&sequencer->mutex);
		ret->queue_length += sequencer->length;
		pthread_mutex_unlock(&sequencer->mutex);
	}
}
