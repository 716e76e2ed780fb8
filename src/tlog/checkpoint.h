/* Checkpoints (C2SP tlog-checkpoint): the text of the note by which a log commits to its tree. */
#ifndef TLOG_CHECKPOINT_H
#define TLOG_CHECKPOINT_H

#include "tlog/merkle.h"
#include "tlog/note.h"

struct checkpoint {
	char origin[NOTE_NAME_MAX + 1]; /* identifies the log */
	uint64_t size;
	struct sha256 root;
};

/* Reads the text of a note. Extension lines are accepted and ignored. ERR_INVALID_EVIDENCE with the
 * cause. */
int checkpoint_parse(struct slice text, struct checkpoint *ret, struct error *error) MUST_CHECK;
/* Reads a size as checkpoints write it: decimal, without leading zeros, up to MERKLE_SIZE_MAX. */
bool checkpoint_parse_size(struct slice text, uint64_t *ret) MUST_CHECK;
/* Appends the text. */
void checkpoint_write(const struct checkpoint *checkpoint, struct buf *out);

#endif
