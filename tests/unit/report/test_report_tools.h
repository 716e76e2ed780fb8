/* What the tests of reports share: files, other programs. */
#ifndef TEST_REPORT_TOOLS_H
#define TEST_REPORT_TOOLS_H

#include "report/report.h"

/* The whole file; the caller's buf must be empty. */
void tools_read(const char *path, struct buf *out);
void tools_write(const char *path, struct slice data);
/* Runs a shell command, collects both outputs, answers its exit code. */
int tools_run(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* report_render into a file. */
int tools_render(const struct report_facts *facts, enum language language, const char *path,
                 struct error *error);
/* pdftotext's words, one space between any two; pages begin with a form feed. */
void tools_words(const char *pdf, struct buf *out);
void tools_expect(const struct buf *words, const char *sentence);

#endif
