/* Audit log entries and their proof as files. */
#ifndef CONSOLE_AUDIT_PAGES_H
#define CONSOLE_AUDIT_PAGES_H

#include "console/visit.h"

/* Answers with the file {file} of the proof of the entry {act}: "act.json", its document, and
 * "act.ers", its evidence record; "seal.json" and "seal.ers", those of the seal document that
 * contains the end of the chain. ERR_NOT_FOUND: also while the entry is not sealed. */
int audit_file(struct visit *visit) MUST_CHECK;

/* Adds "operations": the actions that have a readable name (act_name.…). */
int audit_operations(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
