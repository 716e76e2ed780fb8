/* Proofs that an entry is in a log, which are verified offline (C2SP tlog-proof): the entry's
 * index, its path, and a checkpoint with its signatures. Pure. */
#ifndef TLOG_ENTRY_PROOF_H
#define TLOG_ENTRY_PROOF_H

#include "tlog/merkle.h"
#include "tlog/note.h"

/* The path and its lines, and the note; without extra data. */
#define ENTRY_PROOF_MAX (NOTE_SIZE_MAX + 8192)

struct entry_proof {
	struct slice extra; /* base64 of data that the log did not sign; size 0: none */
	uint64_t index;
	struct merkle_path path;
	struct slice checkpoint; /* the whole note */
};

/* Appends the text. */
void entry_proof_write(const struct entry_proof *proof, struct buf *out);
/* Reads a text. The extra data is not decoded and the checkpoint not parsed; both point into the
 * text. ERR_INVALID_EVIDENCE with the cause. */
int entry_proof_parse(struct slice text, struct entry_proof *ret, struct error *error) MUST_CHECK;

#endif
