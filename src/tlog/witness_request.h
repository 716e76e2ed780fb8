/* The request of C2SP tlog-witness by which a log asks for a cosignature (add-checkpoint): the size
 * that the witness knows, the proof that the new tree begins with that one, and the checkpoint. */
#ifndef TLOG_WITNESS_REQUEST_H
#define TLOG_WITNESS_REQUEST_H

#include "tlog/checkpoint.h"

#define WITNESS_REQUEST_MAX (NOTE_SIZE_MAX + 4096)
#define WITNESS_SIZE_TYPE                                                                          \
	"text/x.tlog.size" /* media type of the answer 409: the size, in decimal */

struct witness_request {
	uint64_t old_size;
	struct merkle_path path;
	struct slice checkpoint; /* the note, or its text */
};

/* Reads a request; the checkpoint itself is not parsed. It points into the body.
 * ERR_INVALID_EVIDENCE with the cause. */
int witness_request_parse(struct slice body, struct witness_request *ret, struct error *error)
	MUST_CHECK;
void witness_request_write(const struct witness_request *request, struct buf *out);

/* What a witness must answer to a request that is well formed and signed. */
enum witness_verdict {
	WITNESS_COSIGNS,
	WITNESS_OTHER_SIZE,   /* the old size is not the known one: 409 */
	WITNESS_INVALID_SIZE, /* the old size is above the new one: 400 */
	WITNESS_INCONSISTENT, /* the new tree does not begin with the known one: 422 */
};
/* Decides about a checkpoint. `known` is the last one of that origin that was cosigned; of size 0
 * and with the empty root if there is none. */
enum witness_verdict witness_decide(const struct witness_request *request,
                                    const struct checkpoint *checkpoint,
                                    const struct checkpoint *known);

#endif
