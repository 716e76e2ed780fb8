/* What the page has on which one sends a test event. */
#ifndef CONSOLE_TRY_H
#define CONSOLE_TRY_H

#include "console/visit.h"

/* "shown": what was typed, or an example with a reference of its own. Behind an answer "pretty",
 * its body, and "programs", the same call as "curl", "python" and "typescript"; none while what was
 * typed is no JSON. */
int try_page(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
