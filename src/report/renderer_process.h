/* The other end of renderer.h: what the program that draws does. */
#ifndef REPORT_RENDERER_PROCESS_H
#define REPORT_RENDERER_PROCESS_H

#include "base/error.h"

/* Reads the facts and draws the report, or of `what` RENDERER_RECEIPT the receipt; no facts, no
 * report. `version` is that of the program which asks, and must be this one's. Ends the process. */
_Noreturn void renderer_run(const char *version, const char *what);

/* Gives up all that drawing does not need: for renderer_run, and for tests. *ret_fenced: the file
 * system is out of reach but for fonts and profile. */
int renderer_confine(bool *ret_fenced, struct error *error) MUST_CHECK;

#endif
