/* Reports and receipts are drawn from text that others wrote, by libraries that are large: in a
 * process of its own for each report, which has no network, no store, no secrets, and no file that
 * it could change. It is a program of its own, so that no other start loads those libraries.
 *
 * renderer_draw executes that program with this one's version and make as its only argument (behind
 * it "receipt", where that is drawn), an empty environment, and three open files: the facts, the
 * report to be, and a pipe for what went wrong (a fourth, its own executable, it closes). It keeps
 * the system calls that drawing needs, and of the file system, where the kernel has Landlock
 * (5.13), the fonts and the colour profile, for reading; without it what this user may read stays
 * readable. It is ended when it takes too long, and memory ends with it. */
#ifndef REPORT_RENDERER_H
#define REPORT_RENDERER_H

#include "report/report.h"
#include "report/sale.h"

#define RENDERER_NAME "constancia-renderer"
#define RENDERER_TIMEOUT_S 120
/* A receipt has some pages at most. */
#define RENDERER_RECEIPT "receipt"
#define RENDERER_RECEIPT_TIMEOUT_S 20
#define RENDERER_RECEIPT_MEMORY ((size_t)2 << 30) /* of address space: libraries, fonts, heaps */

struct renderer {
	int program; /* the executable, open: an upgrade does not change it under a running service */
	int timeout_ms;
};

/* The renderer that belongs to this program: the one in its directory, as in a build, else the
 * installed one; no variable names another. It is started once, to draw nothing and to look for
 * fonts and colour profile. ERR_UNAVAILABLE with its path and the cause when it is missing, of
 * another version, or does not start; or with what it misses, and the packages that have it. */
int renderer_find(struct renderer *ret_renderer, struct error *error) MUST_CHECK;

/* A given one, which is not started. ERR_UNAVAILABLE. */
int renderer_open(const char *path, struct renderer *ret_renderer, struct error *error) MUST_CHECK;
/* Starts it, to draw nothing. ERR_UNAVAILABLE, ERR_INTERNAL, as renderer_draw; ERR_IO: what a
 * report needs is not installed. */
int renderer_check(const struct renderer *renderer, struct error *error) MUST_CHECK;
void renderer_close(struct renderer *renderer);

/* Writes the unsigned report to `path` (created or replaced; removed again on failure). As
 * report_render; ERR_UNAVAILABLE when the process crashed, or did not end in time. Any thread may
 * call. */
int renderer_draw(const struct renderer *renderer, const struct report_facts *facts,
                  enum language language, const char *path, struct error *error) MUST_CHECK;

/* Writes the unsigned receipt to an open, empty file. As sale_render, else as renderer_draw. */
int renderer_draw_sale(const struct renderer *renderer, const struct sale_facts *facts,
                       enum language language, int file, struct error *error) MUST_CHECK;

/* Whether the kernel can keep a renderer from the file system. */
bool renderer_can_be_fenced(void);

#endif
