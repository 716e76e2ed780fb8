/* Trust policies (C2SP tlog-policy): which logs and witnesses a verifier knows, and which of the
 * witnesses must have cosigned a checkpoint. */
#ifndef TLOG_POLICY_H
#define TLOG_POLICY_H

#include "tlog/note.h"

#define POLICY_SIZE_MAX 65536
#define POLICY_LOGS_MAX 32
#define POLICY_WITNESSES_MAX 64
#define POLICY_GROUPS_MAX 64
#define POLICY_NAME_MAX 255

struct policy_log {
	struct note_key key; /* its name is the log's origin */
	const char *url;     /* NULL: none */
};

struct policy_witness {
	const char *name; /* within the policy */
	struct note_key key;
	const char *url; /* submission prefix; NULL: none */
};

/* A member is a witness, or a group of a lower index. */
struct policy_member {
	bool is_group;
	size_t index;
};

struct policy_group {
	const char *name;
	size_t threshold; /* members that must have cosigned */
	const struct policy_member *members;
	size_t count;
};

struct policy {
	struct policy_log *logs;
	size_t log_count;
	struct policy_witness *witnesses;
	size_t witness_count;
	struct policy_group *groups;
	size_t group_count;
	bool has_quorum; /* false: "quorum none" */
	struct policy_member quorum;
};

/* Reads a policy. The results point into the arena. ERR_INVALID_EVIDENCE with the number of the
 * line in the cause; ERR_NO_MEMORY. */
int policy_parse(struct arena *arena, struct slice text, struct policy *ret, struct error *error)
	MUST_CHECK;
/* Makes a policy that wants `threshold` of these witnesses; 0: none. The names are those of the
 * keys. ERR_INVALID_EVIDENCE with the cause. */
int policy_make(struct arena *arena, const struct note_key *logs, size_t log_count,
                const struct note_key *witnesses, size_t witness_count, size_t threshold,
                struct policy *ret, struct error *error) MUST_CHECK;

/* Returns whether the quorum is reached. `cosigned` has one value for each witness. */
bool policy_is_satisfied(const struct policy *policy, const bool *cosigned) MUST_CHECK;

/* Returns the time at which the quorum was reached, if each witness cosigned at its time, or did
 * not (TIME_NONE): so a witness that states a false time moves it no further than to that of
 * another one. Without a quorum: the earliest. TIME_NONE: it was not reached. */
int64_t policy_time(const struct policy *policy, const int64_t *cosigned_us);

#endif
