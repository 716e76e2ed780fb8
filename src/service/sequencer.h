/* Shared by registrar.c and the sequencers: the queues, and the batch of each sequencer. */
#ifndef SERVICE_SEQUENCER_H
#define SERVICE_SEQUENCER_H

#include <pthread.h>
#include <stdatomic.h>

#include "service/batch_receipts.h"
#include "service/quarantine.h"
#include "service/registrar.h"

#define QUEUE_MAX 16384 /* registrations per sequencer */
#define BATCH_MAX 1024
/* The result of a registration that the store has not decided: no code of an error. */
#define REGISTRATION_UNDECIDED 1

/* One thread and its queue. */
struct sequencer {
	struct registrar *registrar;
	unsigned number;
	bool sharded; /* store.sharded: a batch has registrations of one account only */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t arrived;
	struct fair_queue waiting; /* fair queue of pending registrations, by account */
	bool stopping;
	size_t batch_max;    /* BATCH_MAX, less in tests, like the others */
	size_t queue_max;    /* QUEUE_MAX */
	size_t gathered_max; /* registrations that make a batch ready */
	bool due; /* the waiting registrations are ready as a batch; implies that there are some */
	struct quarantine quarantine; /* quarantined chains, which get separate batches; modified by the
	                                 thread only */
	atomic_int_fast64_t writing_since_us; /* start of the current attempt to write a batch,
	                                         monotonic; 0: none. Any thread */
	/* The current batch, used by the thread only. */
	size_t count;
	struct pending_registration *taken[BATCH_MAX];
	struct registration *items[BATCH_MAX];
	struct registration *sorted[BATCH_MAX]; /* sorted by chain, for individual retries */
	struct batch_receipts receipts;
};

struct registrar {
	struct service *service;
	atomic_int_fast64_t clock_refused_at_us; /* last refusal, monotonic; 0: none. Any thread */
	atomic_int open_brackets; /* threads between registrations_begin and registrations_end */
	unsigned count, started;
	struct sequencer sequencers[];
};

/* ---- sequencer.c: the queue and its thread ---- */
/* Starts the thread. Returns false if that fails. */
bool sequencer_start(struct registrar *registrar, unsigned number) MUST_CHECK;
/* Processes the waiting registrations, rejects new ones and ends the thread. */
void sequencer_stop(struct sequencer *sequencer);
/* Adds registrations of one account to the queue, in order. Any thread. Returns the number of added
 * ones: fewer than `count` if the queue is closed or has no capacity left for the account. Several
 * are ready as a batch. */
size_t sequencer_add(struct sequencer *sequencer, struct pending_registration **pending,
                     size_t count) MUST_CHECK;
/* Marks the gathered registrations as a batch, because no more are expected for now. Any thread. */
void sequencer_close_batch(struct sequencer *sequencer);
/* Called by the store once it holds the accounts of the batch, whose context is the sequencer
 * (struct registration_batch). Adds registrations that have arrived for these accounts since. */
void sequencer_grow_batch(struct registration_batch *batch, const int64_t *accounts,
                          size_t account_count);

/* ---- sequencer_batch.c ---- */
/* Processes and commits the current batch and returns each result. */
void sequencer_handle_batch(struct sequencer *sequencer);

#endif
