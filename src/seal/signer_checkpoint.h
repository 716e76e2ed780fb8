/* What of the signing process signs the checkpoints of a log (src/tlog): it acts as a witness of
 * its own log, and refuses a tree that does not begin with the last one that it signed. For
 * src/seal only. */
#ifndef SEAL_SIGNER_CHECKPOINT_H
#define SEAL_SIGNER_CHECKPOINT_H

#include "seal/ed25519.h"
#include "seal/signer_log.h"
#include "seal/signer_marks.h"
#include "tlog/checkpoint.h"

#define SIGNER_LOG_KEY_NAME "log.key"
#define SIGNER_CHECKPOINT_PURPOSE "checkpoint"

/* The last signed tree of each origin; `round` of a mark is the size. */
struct checkpoint_marks {
	struct signer_marks marks;
};

/* Returns the last signed checkpoint of that origin; size 0 and the empty root if there is none. */
struct checkpoint checkpoint_marks_find(const struct checkpoint_marks *marks, const char *origin);
void checkpoint_marks_set(struct checkpoint_marks *marks, const struct checkpoint *checkpoint);
/* As signer_marks_read_entry, for a struct checkpoint_marks. */
int checkpoint_marks_read_entry(struct checkpoint_marks *marks,
                                const struct signer_log_entry *entry);
/* The entry of the log of signatures; `store` gets the text that the entry points to. */
struct signer_log_entry checkpoint_entry(const struct checkpoint *checkpoint,
                                         char store[SIGNER_STORE_ID_SIZE + 1]);

/* Reads a request (tlog/witness_request.h) and decides about it. Returns NULL and the text to sign
 * with its checkpoint, or why it must not be signed. */
const char *checkpoint_check(const struct checkpoint_marks *marks, struct slice request,
                             struct slice *ret_text, struct checkpoint *ret_checkpoint);

#endif
