/* The audit of a whole log of segments, which anybody can do: every entry, every tile, the root of
 * the checkpoint, its signatures, and of each chain that its entries follow each other.
 *
 * Memory grows with the number of chains only. */
#ifndef MONITOR_LOG_AUDIT_H
#define MONITOR_LOG_AUDIT_H

#include "monitor/log_head.h"
#include "monitor/log_scan.h"

#define AUDIT_FINDINGS_MAX 100

struct audit_finding {
	bool is_overlap; /* else a gap */
	uint64_t index;  /* of the later entry */
	struct sha256 tag;
	int64_t first_sequence, last_sequence; /* of that entry */
	int64_t covered_from, covered_to;      /* by the entries before it */
};

struct audit_result {
	struct log_head head; /* points into the caller's arena */
	uint64_t tiles;       /* of hashes, compared */
	uint64_t chains;
	uint64_t begun_later;   /* chains whose first entry is not that of their first event */
	uint64_t finding_count; /* overlaps and gaps, of which the first are listed */
	struct audit_finding findings[AUDIT_FINDINGS_MAX];
};

struct audit_options {
	const struct policy *policy; /* NULL: no key is known, and no signature is checked */
	log_progress *progress;      /* NULL: none */
	void *progress_context;
};

/* Audits a log. Returns 0 if all of it was read and its tree is right; the caller judges findings
 * and signatures. ERR_INVALID_EVIDENCE with the cause: the tree or a signature is false. Also the
 * errors of log_source_read; ERR_TOO_LARGE: too many chains. */
int log_audit(struct log_source *source, const struct audit_options *options, struct arena *arena,
              struct audit_result *ret, struct error *error) MUST_CHECK;

#endif
