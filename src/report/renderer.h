/* The client of the renderer, the program that draws reports. They are drawn from
 * untrusted text by large libraries, so each one is drawn by a separate process. That process has
 * no network, no access to the store or to secrets, and no file that it could change. The renderer
 * is a separate program, so that no other program loads those libraries.
 *
 * renderer_draw executes the program with the version and build of this program as its only
 * argument. The environment is empty. The process has three open files: the facts, the report to
 * write, and a pipe for the error; it closes a fourth one, its own executable. It keeps the system
 * calls that drawing needs. If the kernel has Landlock (5.13), it can only read the fonts and the
 * colour profile; without Landlock it can read all files that its user can. It is killed after a
 * timeout. */
#ifndef REPORT_RENDERER_H
#define REPORT_RENDERER_H

#include "report/report.h"

#define RENDERER_NAME "constancia-renderer"
#define RENDERER_TIMEOUT_S 120

struct renderer {
	int program; /* the open executable, so that an upgrade does not change it under a running
	                service */
	int timeout_ms;
};

/* Finds the renderer of this program: the one in the same directory, as in a build tree, else the
 * installed one. No environment variable can select another one. It is started once, without
 * drawing, to check the fonts and the colour profile. Returns ERR_UNAVAILABLE with its path and the
 * cause if it is missing, has another version or does not start, or with the missing files and the
 * packages that contain them. */
int renderer_find(struct renderer *ret_renderer, struct error *error) MUST_CHECK;

/* Opens the renderer at `path` without starting it. Returns 0 or ERR_UNAVAILABLE. */
int renderer_open(const char *path, struct renderer *ret_renderer, struct error *error) MUST_CHECK;
/* Starts it without drawing, and gets whether it was executed. Returns ERR_UNAVAILABLE or
 * ERR_INTERNAL as renderer_draw does, or ERR_IO if files that a report needs are not installed. */
int renderer_check(const struct renderer *renderer, bool *ret_started, struct error *error)
	MUST_CHECK;
void renderer_close(struct renderer *renderer);

/* Writes the unsigned report to `path`, which is created or replaced, and removed on failure.
 * Returns the errors of report_render, and ERR_UNAVAILABLE if the process crashed or timed out. Any
 * thread may call. */
int renderer_draw(const struct renderer *renderer, const struct report_facts *facts,
                  enum language language, const char *path, struct error *error) MUST_CHECK;

/* Returns whether the kernel can restrict the file system access of a renderer. */
bool renderer_can_restrict_files(void);

#endif
