/* Signed checkpoints that a witness refused, kept as evidence: a file for each in the folder
 * `refused` of its directory. Two checkpoints of one size with different roots, both signed by the
 * log, prove that the log has two histories. */
#ifndef WITNESS_WITNESS_REFUSALS_H
#define WITNESS_WITNESS_REFUSALS_H

#include "tlog/checkpoint.h"

#define WITNESS_REFUSALS_MAX 32 /* kept for each log and kind */
#define WITNESS_REFUSAL_NAME_SIZE 96

enum witness_refusal_kind {
	/* Another root than that of the cosigned tree of this size, which proves a fork. */
	WITNESS_FORK,
	/* The proof of consistency is wrong. The log may have two histories, or only the proof is
	 * wrong, which anybody can send with a checkpoint of the log. */
	WITNESS_UNPROVEN,
};

struct witness_refusal {
	enum witness_refusal_kind kind;
	const struct checkpoint *checkpoint; /* the refused one */
	struct slice request;                /* as received */
	struct slice known;                  /* note that the witness cosigned last; empty: none */
	int64_t at_us;
};

const char *witness_refusal_text(enum witness_refusal_kind kind); /* "fork", "unproven" */
/* Makes the folder. */
int witness_refusals_prepare(const char *directory, struct error *error) MUST_CHECK;
/* Writes the file, durably, unless there is one for this checkpoint, and its name below the
 * directory. *ret_new: it was written now. ERR_FULL: there are WITNESS_REFUSALS_MAX; ERR_IO,
 * ERR_NO_SPACE, ERR_NO_MEMORY. */
int witness_refusals_keep(const char *directory, const struct witness_refusal *refusal,
                          char name[WITNESS_REFUSAL_NAME_SIZE], bool *ret_new, struct error *error)
	MUST_CHECK;

#endif
