/* The renderer process, started through renderer.h. */
#ifndef REPORT_RENDERER_PROCESS_H
#define REPORT_RENDERER_PROCESS_H

#include "base/error.h"

/* Reads the facts and draws the report. Without facts it draws nothing. `version` is that of the
 * calling program and must equal the version of this one. Ends the process. */
_Noreturn void renderer_run(const char *version);

/* Drops all rights that drawing does not need. Called by renderer_run and by tests. *ret_fenced:
 * the file system is inaccessible except for fonts and colour profile. */
int renderer_confine(bool *ret_fenced, struct error *error) MUST_CHECK;

#endif
