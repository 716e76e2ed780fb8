#include "base/epoch.h"
#include "base/tuned.h"
#include "service/registration_clock.h"
#include "service/sequencer.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

/* ---- the queue ---- */

/* Registrations that arrive in one iteration of a poll loop are gathered, because a small batch
 * also costs a commit and a wake-up. A batch is ready when it has this many, or at the end of the
 * iteration, even if the next iteration has started. */
#define GATHERED 128

/* Returns whether the waiting registrations are ready as a batch, after `added` more. */
static bool is_ready(const struct sequencer *sequencer, size_t added)
{
	return added > 1 || sequencer->waiting.length >= sequencer->gathered_max ||
	       atomic_load(&sequencer->registrar->open_brackets) == 0;
}

size_t sequencer_add(struct sequencer *sequencer, struct pending_registration **pending,
                     size_t count)
{
	uint64_t account = (uint64_t)pending[0]->registration.account;
	size_t added = 0;
	pthread_mutex_lock(&sequencer->mutex);
	bool was_due = sequencer->due;
	for (; added < count && !sequencer->stopping &&
	       fair_queue_has_room(&sequencer->waiting, account, sequencer->queue_max);
	     added++) {
		assert(!pending[added]->is_waiting &&
		       (uint64_t)pending[added]->registration.account == account);
		pending[added]->is_waiting = true;
		fair_queue_add(&sequencer->waiting, &pending[added]->turn, account);
	}
	if (added > 0 && is_ready(sequencer, added))
		sequencer->due = true;
	bool becomes_due = !was_due && sequencer->due;
	pthread_mutex_unlock(&sequencer->mutex);
	if (becomes_due)
		pthread_cond_signal(&sequencer->arrived);
	return added;
}

void sequencer_close_batch(struct sequencer *sequencer)
{
	pthread_mutex_lock(&sequencer->mutex);
	bool becomes_due = !sequencer->due && sequencer->waiting.length > 0;
	sequencer->due = sequencer->due || becomes_due;
	pthread_mutex_unlock(&sequencer->mutex);
	if (becomes_due)
		pthread_cond_signal(&sequencer->arrived);
}

/* Returns whether a registration may join the batch. With store.sharded, a batch has one account
 * only, so that its transaction stays on one shard; other accounts wait. The account that was
 * served longest ago determines the next batch. */
static bool belongs(const struct sequencer *sequencer, const struct pending_registration *pending)
{
	if (sequencer->count == 0)
		return true;
	const struct registration *first = sequencer->items[0];
	const struct registration *item = &pending->registration;
	if (item->account == first->account && item->chain == first->chain)
		return true;
	return (!sequencer->sharded || item->account == first->account) &&
	       !quarantine_has(&sequencer->quarantine, first->account, first->chain) &&
	       !quarantine_has(&sequencer->quarantine, item->account, item->chain);
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

struct taking {
	struct sequencer *sequencer;
	const int64_t *accounts; /* ascending; NULL: all accounts */
	size_t account_count;
};

static enum fair_queue_choice join_batch(void *context, struct fair_queue_item *turn)
{
	struct taking *taking = context;
	struct sequencer *sequencer = taking->sequencer;
	struct pending_registration *pending =
		(struct pending_registration *)((char *)turn - offsetof(struct pending_registration, turn));
	int64_t account = pending->registration.account;
	if (taking->accounts && !is_listed(taking->accounts, taking->account_count, account))
		return FAIR_QUEUE_OWNER_SKIPPED;
	if (!belongs(sequencer, pending))
		return FAIR_QUEUE_SKIPPED;
	assert(sequencer->count < sequencer->batch_max && sequencer->batch_max <= BATCH_MAX);
	assert(pending->is_waiting);
	pending->is_waiting = false;
	pending->registration.result = REGISTRATION_UNDECIDED;
	pending->registration.event = NULL;
	pending->registration.receipt = NULL;
	sequencer->taken[sequencer->count] = pending;
	sequencer->items[sequencer->count++] = &pending->registration;
	return FAIR_QUEUE_TAKEN;
}

/* Moves registrations that may join the batch out of the queue. The mutex must be held. `accounts`
 * NULL: all accounts. */
static void take_waiting(struct sequencer *sequencer, const int64_t *accounts, size_t account_count)
{
	struct taking taking = {sequencer, accounts, account_count};
	(void)fair_queue_take(&sequencer->waiting, sequencer->batch_max - sequencer->count, join_batch,
	                      &taking);
}

/* Waits for work; returns false only when stopping with an empty queue. */
static bool take_batch(struct sequencer *sequencer)
{
	sequencer->count = 0;
	pthread_mutex_lock(&sequencer->mutex);
	while (!sequencer->due && !sequencer->stopping)
		pthread_cond_wait(&sequencer->arrived, &sequencer->mutex);
	take_waiting(sequencer, NULL, 0);
	sequencer->due = sequencer->waiting.length > 0;
	pthread_mutex_unlock(&sequencer->mutex);
	return sequencer->count > 0;
}

/* The store holds the accounts now: registrations that have arrived for them since join the
 * batch. */
void sequencer_grow_batch(struct registration_batch *batch, const int64_t *accounts,
                          size_t account_count)
{
	struct sequencer *sequencer = batch->context;
	assert(batch->items == sequencer->items && batch->count == sequencer->count);
	pthread_mutex_lock(&sequencer->mutex);
	take_waiting(sequencer, accounts, account_count);
	sequencer->due = sequencer->due && sequencer->waiting.length > 0;
	pthread_mutex_unlock(&sequencer->mutex);
	batch->count = sequencer->count;
	batch->clock = service_clock(sequencer->registrar->service);
}

/* ---- the thread ---- */

static void *sequencer_run(void *argument)
{
	struct sequencer *sequencer = argument;
	pthread_setname_np(pthread_self(), "sequencer");
	while (take_batch(sequencer)) {
		epoch_enter();
		sequencer_handle_batch(sequencer);
		epoch_leave();
	}
	return NULL;
}

bool sequencer_start(struct registrar *registrar, unsigned number)
{
	struct sequencer *sequencer = &registrar->sequencers[number];
	sequencer->registrar = registrar;
	sequencer->number = number;
	sequencer->batch_max = (size_t)tuned_up_to("batch", BATCH_MAX);
	sequencer->queue_max = (size_t)tuned_up_to("queue", QUEUE_MAX);
	sequencer->gathered_max = (size_t)tuned_up_to("gathered", GATHERED);
	sequencer->sharded = registrar->service->settings->store_sharded;
	fair_queue_init(&sequencer->waiting);
	batch_receipts_init(&sequencer->receipts, registrar->service, number);
	pthread_mutex_init(&sequencer->mutex, NULL);
	pthread_cond_init(&sequencer->arrived, NULL);
	return pthread_create(&sequencer->thread, NULL, sequencer_run, sequencer) == 0;
}

void sequencer_stop(struct sequencer *sequencer)
{
	pthread_mutex_lock(&sequencer->mutex);
	sequencer->stopping = true;
	pthread_mutex_unlock(&sequencer->mutex);
	pthread_cond_signal(&sequencer->arrived);
	pthread_join(sequencer->thread, NULL);
	assert(sequencer->waiting.length == 0); /* each was answered */
	fair_queue_free(&sequencer->waiting);
	batch_receipts_free(&sequencer->receipts);
	pthread_mutex_destroy(&sequencer->mutex);
	pthread_cond_destroy(&sequencer->arrived);
}
