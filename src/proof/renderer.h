/* Reports are drawn from text that others wrote, by libraries that are large: in a process of its
 * own for each report, which has no network, no store, no secrets, and no file that it could
 * change.
 *
 * renderer_draw executes the program anew with RENDERER_COMMAND as its only argument, an empty
 * environment, and three open files: the facts, the report to be, and a pipe for what went wrong.
 * That process (renderer_run) keeps the system calls that drawing needs, and of the file system,
 * where the kernel has Landlock (5.13), the fonts and the colour profile, for reading; without
 * it what this user may read stays readable. It is ended when it takes too long, and memory ends
 * with it. */
#ifndef PROOF_RENDERER_H
#define PROOF_RENDERER_H

#include "proof/report.h"

#define RENDERER_COMMAND "draw-report"
#define RENDERER_THIS_PROGRAM "/proc/self/exe"
#define RENDERER_TIMEOUT_S 120

struct renderer {
	const char *program;
	int timeout_ms;
};

/* Writes the unsigned report to `path` (created or replaced; removed again on failure). As
 * report_render; ERR_UNAVAILABLE when the process crashed, or did not end in time. Any thread may
 * call. */
int renderer_draw(const struct renderer *renderer, const struct report_facts *facts,
                  enum language language, const char *path, struct error *error) MUST_CHECK;

/* What the process does; gives its exit status. */
int renderer_run(void);

/* Whether the kernel can keep a renderer from the file system. */
bool renderer_can_be_fenced(void);

/* Gives up all that drawing does not need: for renderer_run, and for tests. *ret_fenced: the file
 * system is out of reach but for fonts and profile. */
int renderer_confine(bool *ret_fenced, struct error *error) MUST_CHECK;

#endif
