/* Checkpoints of a log, judged by a trust policy: who signed, and which witnesses cosigned. */
#ifndef MONITOR_LOG_HEAD_H
#define MONITOR_LOG_HEAD_H

#include "monitor/log_source.h"
#include "tlog/checkpoint.h"
#include "tlog/policy.h"

#define LOG_NAMES_SIZE 256
#define LOG_HEAD_NAME_SIZE (NOTE_NAME_MAX + 3)
#define LOG_CLOCK_TOLERANCE_US (300 * US_PER_SECOND)

struct log_head {
	struct slice note; /* in the arena */
	struct checkpoint checkpoint;
	bool is_signed;       /* by a log of the policy, under the checkpoint's origin */
	bool has_quorum;      /* also if the policy wants none */
	int64_t witnessed_us; /* latest cosignature of a witness of the policy; TIME_NONE: none */
	int64_t cosigned_us[POLICY_WITNESSES_MAX]; /* of each witness of the policy; TIME_NONE */
	char missing[LOG_NAMES_SIZE]; /* witnesses that did not cosign, separated by ", " */
};

/* Reads and judges a note. `policy` may be NULL: no key is known. The results point into the arena,
 * which has a copy of the note. A false line of a witness counts as none: anybody could add it to
 * hide what the log signed. So does one with a time that is still to come. ERR_INVALID_EVIDENCE: it
 * is no checkpoint, or the signature of a known log is false; ERR_NO_MEMORY. */
int log_head_judge(struct arena *arena, struct slice note, const struct policy *policy,
                   struct log_head *ret, struct error *error) MUST_CHECK;
/* Writes the name of the log: if no known key signed it, as a quotation of printable ASCII. */
const char *log_head_name(const struct log_head *head, char name[LOG_HEAD_NAME_SIZE]);
/* Returns whether the policy wants a quorum, and witnesses that reach it cosigned after a time. */
bool log_head_is_witnessed_after(const struct log_head *head, const struct policy *policy,
                                 int64_t time_us);
/* Reads the log's checkpoint. Also the errors of log_source_read. */
int log_head_read(struct arena *arena, struct log_source *source, const struct policy *policy,
                  struct log_head *ret, struct error *error) MUST_CHECK;

#endif
