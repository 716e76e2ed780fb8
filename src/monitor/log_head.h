/* Checkpoints of a log, judged by a trust policy: who signed, and which witnesses cosigned. */
#ifndef MONITOR_LOG_HEAD_H
#define MONITOR_LOG_HEAD_H

#include "monitor/log_source.h"
#include "tlog/checkpoint.h"
#include "tlog/policy.h"

#define LOG_NAMES_SIZE 256

struct log_head {
	struct slice note; /* in the arena */
	struct checkpoint checkpoint;
	bool is_signed;       /* by a log of the policy, under the checkpoint's origin */
	bool has_quorum;      /* also if the policy wants none */
	int64_t witnessed_us; /* latest cosignature of a witness of the policy; TIME_NONE: none */
	char missing[LOG_NAMES_SIZE]; /* witnesses that did not cosign, separated by ", " */
};

/* Reads and judges a note. `policy` may be NULL: no key is known. The results point into the arena,
 * which has a copy of the note. ERR_INVALID_EVIDENCE: it is no checkpoint, or it has a signature of
 * a known key that is false; ERR_NO_MEMORY. */
int log_head_judge(struct arena *arena, struct slice note, const struct policy *policy,
                   struct log_head *ret, struct error *error) MUST_CHECK;
/* Reads the log's checkpoint. Also the errors of log_source_read. */
int log_head_read(struct arena *arena, struct log_source *source, const struct policy *policy,
                  struct log_head *ret, struct error *error) MUST_CHECK;

#endif
