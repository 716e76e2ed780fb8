/* The signed receipts of a sequencer's batches. The statements of a batch are leaves of a tree,
 * and one signature over its root serves all of them (ledger/receipt_statement.h). It is requested
 * before the batch is committed and collected after it, so that signing costs no time of its own.
 *
 * A receipt leaves the service only after the commit of its event. If the signature is missing,
 * events are acknowledged without one. Of one thread. */
#ifndef SERVICE_BATCH_RECEIPTS_H
#define SERVICE_BATCH_RECEIPTS_H

#include "base/buf.h"
#include "service/service.h"
#include "tlog/batch_tree.h"

struct batch_receipts {
	struct service *service;
	unsigned lane; /* number of the sequencer */
	/* Of the present batch: */
	int64_t promise_us;
	int64_t next_us;      /* the next round has begun by then */
	int64_t possible_us;  /* the earliest time that is promised for an event that waits until now */
	struct buf statement; /* scratch */
	struct batch_tree tree;
};

void batch_receipts_init(struct batch_receipts *receipts, struct service *service, unsigned lane);
void batch_receipts_free(struct batch_receipts *receipts);

/* Requests the signature for the events of the batch, new and replayed ones. May be called again
 * for a batch that is retried. Does not block. */
void batch_receipts_begin(struct batch_receipts *receipts, const struct registration_batch *batch);
/* Waits for the signature and gives each event its receipt, in the arena of its registration. To be
 * called once the batch is committed, with the same outcomes. */
void batch_receipts_end(struct batch_receipts *receipts, const struct registration_batch *batch);

#endif
