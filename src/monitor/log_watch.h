/* The watch of an owner over a log of segments: that the log only grows, that the entries of the
 * owner's chains follow each other, and that they agree with the owner's receipts.
 *
 * Each run reads the log's checkpoint and the entries since the last one. It proves what it finds
 * (monitor/log_proof.h), and remembers the checkpoint only when it finds nothing: so a later run
 * finds the same again. */
#ifndef MONITOR_LOG_WATCH_H
#define MONITOR_LOG_WATCH_H

#include "monitor/log_head.h"
#include "monitor/log_proof.h"
#include "monitor/log_scan.h"
#include "monitor/owned_chains.h"

#define WATCH_FINDINGS_MAX 100 /* listed and proved */
#define WATCH_PROOFS_MAX ((size_t)16 << 20)
/* The time from a sealed segment to a checkpoint that covers it, and differences of clocks. */
#define WATCH_GRACE_US (60 * US_PER_SECOND)

/* Takes a receipt's text. */
typedef int receipt_take(void *context, struct slice text, struct error *error);

struct watch_options {
	const struct policy *policy; /* required */
	const char *state;           /* path of the file */
	/* Passes all receipts to `take`; called again in order to find the text of one. A result other
	 * than 0 of `take` stops and is returned. */
	int (*read_receipts)(void *context, receipt_take *take, void *take_context,
	                     struct error *error);
	void *receipts_context;
	log_progress *progress; /* NULL: none */
	void *progress_context;
	/* Tells what is wrong before the search for its proof, which the log could make long. */
	void (*notice)(void *context, const char *what);
	void *notice_context;
};

struct watch_finding {
	/* log_proof_kind_text, or "gap": the entries of a chain leave out events, which the whole log
	 * shows (log_audit.h) */
	const char *kind;
	bool is_proved; /* false: a gap, or the log did not serve what would prove it */
	char what[512];
};

struct watch_result {
	struct log_head head; /* points into the caller's arena */
	bool is_first;        /* nothing was remembered: the whole log was read */
	bool is_complete;     /* entries and receipts were compared */
	uint64_t new_entries; /* since the checkpoint that was remembered */
	uint64_t own_entries; /* of the owner's chains, in the whole log */
	uint64_t receipts, covered;
	uint64_t test_receipts, unusable_receipts, false_receipts; /* owned_chains.h */
	uint64_t waiting; /* not covered, and nothing that was promised is overdue */
	/* Broken promises, of which no quorum of witnesses shows that the checkpoint is later; and
	 * events that are overdue in another log. */
	uint64_t overdue, other_log;
	/* Not covered, and nothing is promised, or only for a time that is too far (PROMISE_MAX_US). */
	uint64_t without_promise;
	/* Of events before the first entry of their chain, which may be older than the log. Those that
	 * promise nothing are counted once, with begun_later. */
	uint64_t before_log;
	/* Chains that this run found without their first events, and what of the first one. */
	uint64_t begun_later;
	char begun_channel[TLOG_CHAIN_NAME_MAX + 1];
	int64_t begun_sequence;
	uint64_t finding_count;
	struct watch_finding findings[WATCH_FINDINGS_MAX];
	struct buf proofs; /* documents, one in each line; the caller frees it */
};

/* Watches once. Returns 0 with the result; a head that is not signed leaves the rest undone.
 * ERR_INVALID_EVIDENCE with the cause: the log contradicts itself, without a statement that is
 * signed, or a receipt or signature is not valid. ERR_CORRUPT: the state is not usable. Also the
 * errors of log_source_read. */
int log_watch(struct log_source *source, struct owned_chains *owned,
              const struct watch_options *options, struct arena *arena, struct watch_result *ret,
              struct error *error) MUST_CHECK;

#endif
