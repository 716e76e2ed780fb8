/* What proves an event, as a picture: from its content up to the authority's time. */
#ifndef CONSOLE_PROOF_PICTURE_H
#define CONSOLE_PROOF_PICTURE_H

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"

#define PROOF_STEPS_MAX 40

/* A step up the tree: what is joined with the hash so far, and what comes of it. */
struct proof_step {
	struct sha256 other, joined;
};
/* Of the answer of `event show`; returns how many, 0 where it is not sealed. */
size_t proof_steps(const struct json *one, struct proof_step steps[PROOF_STEPS_MAX]);

/* `one`: that answer. Light and dark are the page's, and nothing is told by colour alone. */
int proof_picture(const struct json *one, enum language language, struct buf *out) MUST_CHECK;

#endif
