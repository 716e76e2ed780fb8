/* Publication of the log of segments: signs its head as a checkpoint after each round, and collects
 * cosignatures from witnesses (C2SP tlog-witness), all at once. A witness that does not answer
 * delays nothing: after log.witness_timeout, a checkpoint is published with the cosignatures that
 * there are. The caller holds the lease (jobs). */
#ifndef EVIDENCE_LOG_PUBLISHER_H
#define EVIDENCE_LOG_PUBLISHER_H

#include "service/service.h"
#include "store/tlog/log_checkpoints.h"
#include "tlog/note.h"

#define LOG_WITNESSES_MAX 16

/* A witness of log.witnesses: "VKEY URL". */
struct log_witness {
	struct note_key key;
	char url[1024]; /* submission prefix */
};
/* Reads log.witnesses. ERR_VALIDATION with the cause. */
int log_witnesses_parse(const char *list, struct log_witness witnesses[LOG_WITNESSES_MAX],
                        size_t *ret_count, struct error *error) MUST_CHECK;

/* Appends the policy of this service: the keys of its log, also of other nodes and former ones, and
 * of its witnesses, and no quorum. */
int log_policy_write(const struct service *service, struct buf *out, struct error *error)
	MUST_CHECK;

struct log_publisher; /* one thread at a time */

int log_publisher_make(struct service *service, struct log_publisher **ret, struct error *error)
	MUST_CHECK;
void log_publisher_free(struct log_publisher *publisher); /* NULL-safe; ends its exchanges */
/* Signs the head of the log if it is new, and goes on with the exchanges while answers are awaited,
 * for `wait_us` at most. ERR_CORRUPT: the store was set back, and no node may go on with
 * this log. */
int log_publisher_run(struct log_publisher *publisher, int64_t wait_us, struct error *error)
	MUST_CHECK;
/* For a node without the lease: lets its signing process know what another node has signed.
 * ERR_CORRUPT: it has signed something else. */
int log_publisher_follow(struct log_publisher *publisher, struct error *error) MUST_CHECK;
/* To be called when the lease was not held, or an operation failed: another node may have changed
 * the checkpoint. It is read again by the next run. */
void log_publisher_forget(struct log_publisher *publisher);
/* Returns whether no cosignature is awaited. */
bool log_publisher_is_done(const struct log_publisher *publisher);

#endif
