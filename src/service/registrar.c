#include "service/registrar.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "service/apart.h"

#define QUEUE_MAX 16384 /* of each sequencer */
#define BATCH_MAX 1024
#define CLOCK_REFUSES_US (60 * US_PER_SECOND)

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
	struct apart apart; /* chains that get batches of their own; changed by the thread alone */
	/* Of the thread alone: its batch. */
	size_t count;
	struct pending_registration *taken[BATCH_MAX];
	struct registration *items[BATCH_MAX];
	struct registration *sorted[BATCH_MAX]; /* by chain, when they are tried apart */
};

struct registrar {
	struct service *service;
	/* Written by the threads, read by anybody. */
	atomic_uint_fast64_t registered, replayed, conflicts, refused, batches, batch_failures;
	atomic_uint_fast64_t clock_refusals;
	atomic_int_fast64_t clock_refused_at_us; /* monotonic, the last; 0: none */
	unsigned count, started;
	struct sequencer sequencers[];
};

int register_submit(struct service *service, struct pending_registration *pending,
                    struct error *error)
{
	struct registrar *registrar = service->registrar;
	bool live = pending->registration.chain % 2 == MODE_LIVE;
	int result = live ? service_clock_synchronized(service, error) : OK;
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

/* With store.sharded a batch is of one account, so that its transaction stays on one shard: those
 * of others wait for their turn. Whoever waits longest says whose turn it is. */
static bool belongs(const struct sequencer *sequencer, const struct pending_registration *pending)
{
	if (sequencer->count == 0)
		return true;
	const struct registration *first = sequencer->items[0];
	const struct registration *item = &pending->registration;
	if (item->account == first->account && item->chain == first->chain)
		return true;
	return (!sequencer->registrar->service->settings->store_sharded ||
	        item->account == first->account) &&
	       !apart_has(&sequencer->apart, first->account, first->chain) &&
	       !apart_has(&sequencer->apart, item->account, item->chain);
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
		if ((accounts && !is_listed(accounts, account_count, pending->registration.account)) ||
		    !belongs(sequencer, pending)) {
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
	batch->clock = service_clock(sequencer->registrar->service);
}

static void count_outcome(struct registrar *registrar, const struct registration *item)
{
	if (item->result == ERR_CLOCK) {
		atomic_fetch_add_explicit(&registrar->clock_refusals, 1, memory_order_relaxed);
		if (service_tell_clock_refusal(registrar->service, item))
			atomic_store(&registrar->clock_refused_at_us, clock_monotonic_us());
	}
	if (item->result == ERR_CONFLICT)
		atomic_fetch_add_explicit(&registrar->conflicts, 1, memory_order_relaxed);
	else if (item->result != OK)
		atomic_fetch_add_explicit(&registrar->refused, 1, memory_order_relaxed);
	else if (item->replayed)
		atomic_fetch_add_explicit(&registrar->replayed, 1, memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&registrar->registered, 1, memory_order_relaxed);
}

/* ---- a batch ---- */

static void give_failure(struct registration **items, size_t count, int result,
                         const struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		items[i]->result = error_http_status(result) == 503 ? result : ERR_UNAVAILABLE;
		items[i]->error = *error;
		items[i]->error.code = items[i]->result;
	}
}

/* Whether a failed batch may be the fault of one chain in it, while others could be written. */
static bool may_be_one_chain(struct sequencer *sequencer, int result)
{
	switch (result) {
	case ERR_UNAVAILABLE:
	case ERR_UNKNOWN_OUTCOME:
	case ERR_NO_SPACE:
	case ERR_NO_MEMORY:
	case ERR_NETWORK: return false;
	case ERR_IO: /* one page may be unreadable */
		return !store_is_poisoned(sequencer->registrar->service->store);
	default: return true;
	}
}

static void set_apart(struct sequencer *sequencer, const struct registration *item,
                      const struct error *error)
{
	pthread_mutex_lock(&sequencer->mutex);
	unsigned failures =
		apart_add(&sequencer->apart, item->account, item->chain, clock_monotonic_us());
	pthread_mutex_unlock(&sequencer->mutex);
	char account[24], chain[24], times[16];
	snprintf(account, sizeof account, "%lld", (long long)item->account);
	snprintf(chain, sizeof chain, "%lld", (long long)item->chain);
	snprintf(times, sizeof times, "%u", failures);
	if (apart_tells(failures))
		log_error("registration_set_apart", "account", account, "chain", chain, "failures", times,
		          "cause", error->cause);
}

static void set_free(struct sequencer *sequencer, const struct registration *item)
{
	if (!apart_has(&sequencer->apart, item->account, item->chain))
		return;
	pthread_mutex_lock(&sequencer->mutex);
	apart_remove(&sequencer->apart, item->account, item->chain);
	pthread_mutex_unlock(&sequencer->mutex);
	log_info("registration_goes_on", "channel_id", item->event ? item->event->channel_id : "");
}

static void note_failure(struct sequencer *sequencer, const struct error *error)
{
	const struct registration *first = sequencer->items[0];
	atomic_fetch_add_explicit(&sequencer->registrar->batch_failures, 1, memory_order_relaxed);
	if (apart_has(&sequencer->apart, first->account, first->chain))
		return; /* told apart */
	char number[24];
	snprintf(number, sizeof number, "%zu", sequencer->count);
	log_error("batch_failed", "cause", error->cause, "registrations", number);
}

static int compare_chains(const void *a, const void *b)
{
	const struct registration *left = *(struct registration *const *)a;
	const struct registration *right = *(struct registration *const *)b;
	int by_account = (left->account > right->account) - (left->account < right->account);
	return by_account ? by_account : (left->chain > right->chain) - (left->chain < right->chain);
}

/* Sorts by chain; those of a chain stay in the order in which they came. */
static void sort_by_chain(struct registration **items, struct registration **sorted, size_t count)
{
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		size_t at = used++;
		for (; at > 0 && compare_chains(&sorted[at - 1], &items[i]) > 0; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = items[i];
	}
}

/* Where the sorted items are best cut between two chains; 0: all are of one. */
static size_t find_cut(struct registration **items, size_t count)
{
	for (size_t distance = 0; distance <= count / 2; distance++) {
		size_t below = count / 2 - distance;
		size_t above = count / 2 + distance;
		if (below > 0 && compare_chains(&items[below - 1], &items[below]) != 0)
			return below;
		if (above > 0 && above < count && compare_chains(&items[above - 1], &items[above]) != 0)
			return above;
	}
	return 0;
}

/* What failed together is tried in halves, until what is broken stands alone. */
static void register_apart(struct sequencer *sequencer, struct registration **items, size_t count,
                           int result, const struct error *error)
{
	size_t cut = may_be_one_chain(sequencer, result) ? find_cut(items, count) : 0;
	if (cut == 0) {
		if (may_be_one_chain(sequencer, result))
			set_apart(sequencer, items[0], error);
		give_failure(items, count, result, error);
		return;
	}
	const struct service *service = sequencer->registrar->service;
	for (int half = 0; half < 2; half++) {
		struct registration_batch batch = {
			.items = half ? items + cut : items,
			.count = half ? count - cut : cut,
			.clock = service_clock(service),
		};
		struct error cause = {0};
		int tried = store_register_batch(service->store, sequencer->number, &batch, &cause);
		if (tried != OK)
			register_apart(sequencer, batch.items, batch.count, tried, &cause);
	}
}

static void handle_batch(struct sequencer *sequencer)
{
	struct registrar *registrar = sequencer->registrar;
	struct store *store = registrar->service->store;
	struct error error;
	error_clear(&error);
	struct registration_batch batch = {
		.items = sequencer->items,
		.count = sequencer->count,
		.clock = service_clock(registrar->service),
		.grow = grow_batch,
		.context = sequencer,
	};
	int result = store_register_batch(store, sequencer->number, &batch, &error);
	atomic_fetch_add_explicit(&registrar->batches, 1, memory_order_relaxed);
	if (result == OK) {
		set_free(sequencer, sequencer->items[0]);
	} else {
		note_failure(sequencer, &error);
		sort_by_chain(sequencer->items, sequencer->sorted, sequencer->count);
		register_apart(sequencer, sequencer->sorted, sequencer->count, result, &error);
	}
	for (size_t i = 0; i < sequencer->count; i++) {
		count_outcome(registrar, sequencer->items[i]);
		sequencer->taken[i]->done(sequencer->taken[i]);
	}
	if (store_maintain(store, &error) != OK)
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
	ret->clock_refusals = atomic_load(&registrar->clock_refusals);
	int64_t refused_at_us = atomic_load(&registrar->clock_refused_at_us);
	ret->clock_refuses = refused_at_us && clock_monotonic_us() - refused_at_us < CLOCK_REFUSES_US;
	ret->queue_length = 0;
	ret->registration_chains_apart = 0;
	for (unsigned i = 0; i < registrar->started; i++) {
		struct sequencer *sequencer = &registrar->sequencers[i];
		pthread_mutex_lock(&sequencer->mutex);
		ret->queue_length += sequencer->length;
		ret->registration_chains_apart += apart_count(&sequencer->apart, clock_monotonic_us());
		pthread_mutex_unlock(&sequencer->mutex);
	}
}
