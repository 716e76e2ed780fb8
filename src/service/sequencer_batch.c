/* Execution of a sequencer's batch, and the isolation of a chain that makes batches fail. */
#include "service/sequencer.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "service/registration_clock.h"

static void request_receipts(struct registration_batch *batch)
{
	struct sequencer *sequencer = batch->context;
	batch_receipts_begin(&sequencer->receipts, batch);
}

static int write_batch(struct sequencer *sequencer, struct registration_batch *batch,
                       struct error *error)
{
	batch->decided = request_receipts;
	batch->context = sequencer;
	atomic_store(&sequencer->writing_since_us, clock_monotonic_us());
	int result =
		store_register_batch(sequencer->registrar->service->store, sequencer->number, batch, error);
	atomic_store(&sequencer->writing_since_us, 0);
	if (!result)
		batch_receipts_end(&sequencer->receipts, batch);
	return result;
}

/* ---- a batch that failed ---- */

static void give_failure(struct registration **items, size_t count, int result,
                         const struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		/* nothing of it is acknowledged */
		registration_refuse(items[i], error_http_status(result) == 503 ? result : ERR_UNAVAILABLE,
		                    error);
	}
}

/* Returns whether one chain may have caused the failure of the batch, so that others could be
 * written. */
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

static void quarantine_chain(struct sequencer *sequencer, const struct registration *item,
                             const struct error *error)
{
	pthread_mutex_lock(&sequencer->mutex);
	unsigned failures =
		quarantine_add(&sequencer->quarantine, item->account, item->chain, clock_monotonic_us());
	pthread_mutex_unlock(&sequencer->mutex);
	char account[24], chain[24], times[16];
	snprintf(account, sizeof account, "%lld", (long long)item->account);
	snprintf(chain, sizeof chain, "%lld", (long long)item->chain);
	snprintf(times, sizeof times, "%u", failures);
	if (quarantine_is_logged(failures))
		log_error("registration_quarantined", "account", account, "chain", chain, "failures", times,
		          "cause", error->cause);
}

static void release_chain(struct sequencer *sequencer, const struct registration *item)
{
	if (!quarantine_has(&sequencer->quarantine, item->account, item->chain))
		return;
	pthread_mutex_lock(&sequencer->mutex);
	quarantine_remove(&sequencer->quarantine, item->account, item->chain);
	pthread_mutex_unlock(&sequencer->mutex);
	log_info("registration_resumed", "channel_id", item->event ? item->event->channel_id : "");
}

static void note_failure(struct sequencer *sequencer, const struct error *error)
{
	const struct registration *first = sequencer->items[0];
	atomic_fetch_add_explicit(&sequencer->registrar->service->counters.batch_failures, 1,
	                          memory_order_relaxed);
	if (quarantine_has(&sequencer->quarantine, first->account, first->chain))
		return; /* logged by quarantine */
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

/* Sorts by chain; the sort is stable. */
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

/* Returns the boundary between two chains closest to the middle; 0: all items belong to one
 * chain. */
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

/* Retries a failed batch in halves until the broken chain is isolated. */
static void retry_in_halves(struct sequencer *sequencer, struct registration **items, size_t count,
                            int result, const struct error *error)
{
	size_t cut = may_be_one_chain(sequencer, result) ? find_cut(items, count) : 0;
	if (cut == 0) {
		if (may_be_one_chain(sequencer, result))
			quarantine_chain(sequencer, items[0], error);
		give_failure(items, count, result, error);
		return;
	}
	struct service *service = sequencer->registrar->service;
	assert(cut < count); /* both halves are smaller */
	for (int half = 0; half < 2; half++) {
		struct registration_batch batch = {
			.items = half ? items + cut : items,
			.count = half ? count - cut : cut,
			.clock = service_clock(service),
			.stored_max = service->settings->account_stored_bytes,
		};
		struct error cause = {0};
		int tried = write_batch(sequencer, &batch, &cause);
		if (tried)
			retry_in_halves(sequencer, batch.items, batch.count, tried, &cause);
	}
}

/* ---- the outcome ---- */

static void count_outcome(struct registrar *registrar, const struct registration *item)
{
	struct counters *counters = &registrar->service->counters;
	if (item->result == ERR_CLOCK) {
		atomic_fetch_add_explicit(&counters->clock_refusals, 1, memory_order_relaxed);
		if (service_log_clock_refusal(registrar->service, item))
			atomic_store(&registrar->clock_refused_at_us, clock_monotonic_us());
	}
	if (item->result == ERR_CONFLICT)
		atomic_fetch_add_explicit(&counters->conflicts, 1, memory_order_relaxed);
	else if (!item->result && item->replayed)
		atomic_fetch_add_explicit(&counters->replayed, 1, memory_order_relaxed);
	else if (!item->result)
		atomic_fetch_add_explicit(&counters->registered, 1, memory_order_relaxed);
}

static void note_space(struct service *service, int result)
{
	if (result == ERR_NO_SPACE)
		atomic_store(&service->lacks_space, true);
	else if (!result && atomic_load_explicit(&service->lacks_space, memory_order_relaxed))
		atomic_store(&service->lacks_space, false);
}

/* Checks the outcomes of the whole batch before the first request gets its own. */
static void check_outcomes(const struct sequencer *sequencer)
{
	for (size_t i = 0; i < sequencer->count; i++) {
		const struct registration *item = sequencer->items[i];
		assert(item == &sequencer->taken[i]->registration);
		assert(item->result <= 0);           /* it was decided, or it failed */
		assert(item->result || item->event); /* no receipt without its event */
		count_outcome(sequencer->registrar, item);
	}
}

/* Gives each item of the batch back to its request, once. */
static void answer(struct sequencer *sequencer)
{
	check_outcomes(sequencer);
	for (size_t i = 0; i < sequencer->count; i++) {
		struct pending_registration *pending = sequencer->taken[i];
		assert(pending);
		sequencer->taken[i] = NULL;
		pending->done(pending);
	}
}

void sequencer_handle_batch(struct sequencer *sequencer)
{
	struct registrar *registrar = sequencer->registrar;
	struct store *store = registrar->service->store;
	struct error error;
	error_clear(&error);
	struct registration_batch batch = {
		.items = sequencer->items,
		.count = sequencer->count,
		.clock = service_clock(registrar->service),
		.stored_max = registrar->service->settings->account_stored_bytes,
		.grow = sequencer_grow_batch,
	};
	int result = write_batch(sequencer, &batch, &error);
	atomic_fetch_add_explicit(&registrar->service->counters.batches, 1, memory_order_relaxed);
	note_space(registrar->service, result);
	if (!result) {
		release_chain(sequencer, sequencer->items[0]);
	} else {
		note_failure(sequencer, &error);
		sort_by_chain(sequencer->items, sequencer->sorted, sequencer->count);
		retry_in_halves(sequencer, sequencer->sorted, sequencer->count, result, &error);
	}
	answer(sequencer);
	if (store_maintain(store, &error))
		log_error("checkpoint_failed", "cause", error.cause);
}
