/* What proves an act, as files. */
#ifndef CONSOLE_ACTS_H
#define CONSOLE_ACTS_H

#include "console/visit.h"

/* The file {file} of what proves the act {act}: "act.json", its document, and "act.ers", its
 * evidence record; "seal.json" and "seal.ers", those of the seal document that names the chain's
 * end. ERR_NOT_FOUND: also while it is not sealed. */
int acts_file(struct visit *visit) MUST_CHECK;

/* Adds "operations": what an act may be, of those that have a name for people (act_name.…). */
int acts_operations(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
