/* Shared by registrar.c and the sequencers alone: the queues, and the batch that each works on. */
#ifndef SERVICE_SEQUENCER_H
#define SERVICE_SEQUENCER_H

#include <pthread.h>
#include <stdatomic.h>

#include "service/apart.h"
#include "service/registrar.h"

#define QUEUE_MAX 16384 /* of each sequencer */
#define BATCH_MAX 1024

/* One thread and its queue. */
struct sequencer {
	struct registrar *registrar;
	unsigned number;
	bool sharded; /* store.sharded: it takes batches together where settings may be replaced */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t arrived;
	struct turns waiting; /* pending registrations, by account */
	bool stopping;
	size_t batch_max;
	bool due;           /* what waits is a batch, whatever else comes; then something does */
	struct apart apart; /* chains that get batches of their own; changed by the thread alone */
	/* Of the thread alone: its batch. */
	size_t count;
	struct pending_registration *taken[BATCH_MAX];
	struct registration *items[BATCH_MAX];
	struct registration *sorted[BATCH_MAX]; /* by chain, when they are tried apart */
};

struct registrar {
	struct service *service;
	atomic_int_fast64_t clock_refused_at_us; /* monotonic, the last; 0: none. Any thread */
	atomic_int coming; /* who is between registrations_come and registrations_came */
	unsigned count, started;
	struct sequencer sequencers[];
};

/* ---- sequencer.c: the queue and its thread ---- */
/* False when no thread could be started. */
bool sequencer_start(struct registrar *registrar, unsigned number) MUST_CHECK;
/* Has what waits written, takes nothing new, ends the thread. */
void sequencer_stop(struct sequencer *sequencer);
/* Any thread. False when the queue is closed, or has no room for the account. */
bool sequencer_add(struct sequencer *sequencer, struct pending_registration *pending) MUST_CHECK;
/* No more comes for now: what was gathered is a batch. Any thread. */
void sequencer_go_on(struct sequencer *sequencer);
/* What the store calls when the accounts of the batch, whose context is the sequencer, are its
 * own (struct registration_batch). */
void sequencer_grow_batch(struct registration_batch *batch, const int64_t *accounts,
                          size_t account_count);

/* ---- sequencer_batch.c ---- */
/* Has the batch that was taken decided and written, and answers each of it. */
void sequencer_handle_batch(struct sequencer *sequencer);

#endif
