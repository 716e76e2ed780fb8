/* The proof of an event as a picture: from its content to the timestamp. */
#ifndef CONSOLE_PROOF_PICTURE_H
#define CONSOLE_PROOF_PICTURE_H

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"

#define PROOF_STEPS_MAX 40

/* A step in the hash tree: the sibling hash and the combined hash. */
struct proof_step {
	struct sha256 other, joined;
};
/* Reads the steps from the answer of `event show`; returns their number, 0 if the event is not
 * sealed. */
size_t proof_steps(const struct json *one, struct proof_step steps[PROOF_STEPS_MAX]);

/* Draws the picture; `one` is the answer of `event show`. The page determines light and dark
 * colours, and no information is conveyed by colour alone. */
int proof_picture(const struct json *one, enum language language, struct buf *out) MUST_CHECK;

#endif
