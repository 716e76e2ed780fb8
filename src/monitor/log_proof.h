/* Proofs that a log, or the service that keeps it, did what it must not. Each one is a document
 * that a third party verifies offline, with the key of the log:
 *   {"entries":[{"entry","proof"}],"kind","notes":[],"observed_at","path":[hex],
 *    "receipt"|null,"v":"constancia-log-proof/1"}
 * in canonical JSON. Entries, proofs (C2SP tlog-proof), notes and the receipt are texts, unchanged.
 *
 *   two_trees        two checkpoints of one size with different roots
 *   inconsistent     two checkpoints, and `path`, the hashes of a consistency proof that lead to
 *                    the root of the larger tree and to another root of the smaller one
 *   shrunken         a checkpoint, and a smaller one that was read after it
 *   overlap          two entries of one chain with events in common
 *   receipt_differs  the entry whose last event is that of a receipt, with another chain hash
 *   promise_broken   a receipt, and a checkpoint after the time until which the receipt promised an
 *                    entry; the entries of the log show that it has none */
#ifndef MONITOR_LOG_PROOF_H
#define MONITOR_LOG_PROOF_H

#include "archive/receipt.h"
#include "monitor/log_head.h"

#define LOG_PROOF_VERSION "constancia-log-proof/1"
#define LOG_PROOF_MAX ((size_t)1 << 20) /* bytes of a document */
#define LOG_PROOF_HASHES_MAX (MERKLE_PATH_MAX + 1)

enum log_proof_kind {
	PROOF_TWO_TREES,
	PROOF_INCONSISTENT,
	PROOF_SHRUNKEN,
	PROOF_OVERLAP,
	PROOF_RECEIPT_DIFFERS,
	PROOF_PROMISE_BROKEN,
	PROOF_KINDS
};
const char *log_proof_kind_text(enum log_proof_kind kind);

struct log_proof_entry {
	struct slice entry; /* canonical JSON (tlog/entry.h) */
	struct slice proof; /* tlog-proof */
};

struct log_proof {
	enum log_proof_kind kind;
	int64_t observed_us;
	struct slice notes[2];
	size_t note_count;
	struct sha256 path[LOG_PROOF_HASHES_MAX];
	size_t path_count;
	struct log_proof_entry entries[2];
	size_t entry_count;
	struct slice receipt; /* data NULL: none */
};

void log_proof_write(const struct log_proof *proof, struct buf *out);
/* Reads a document. The results point into the arena. ERR_INVALID_EVIDENCE with the cause;
 * ERR_NO_MEMORY. */
int log_proof_read(struct arena *arena, struct slice text, struct log_proof *ret,
                   struct error *error) MUST_CHECK;

struct log_proof_verdict {
	bool is_shown; /* the document shows by itself what its kind says */
	char origin[NOTE_NAME_MAX + 1];
	char what[512];    /* what it shows */
	char missing[768]; /* what it does not show alone; empty: nothing */
};

/* What the verifier of a proof trusts. */
struct log_trust {
	const struct policy *policy; /* the keys of logs and witnesses; required */
	const uint8_t (*receipt_keys)[RECEIPT_PUBLIC_KEY_SIZE];
	size_t receipt_key_count;
};

/* Verifies a document by the keys of `trust`. `source` may be NULL; with it a broken promise is
 * checked against the entries. Returns 0 with the verdict; ERR_INVALID_EVIDENCE with the
 * cause: the document does not show what its kind says. ERR_NO_MEMORY, and with a source the errors
 * of log_source_read. */
int log_proof_check(struct arena *arena, const struct log_proof *proof,
                    const struct log_trust *trust, struct log_source *source,
                    struct log_proof_verdict *ret, struct error *error) MUST_CHECK;

#endif
