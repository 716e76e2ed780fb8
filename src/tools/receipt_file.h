/* File of receipts: one answer to a registration per line, as `constancia verify --receipt` and the
 * client libraries read and write them.
 *
 * Processes and client libraries may share a file: each line is one write under a lock (flock), and
 * is on disk when the function returns. Before a file would exceed RECEIPT_FILE_MAX it is renamed
 * to PATH.1, PATH.2 and so on; the highest number is the newest, and no file is overwritten. A last
 * line that a crash left incomplete is moved to PATH.torn. Any thread may call. */
#ifndef TOOLS_RECEIPT_FILE_H
#define TOOLS_RECEIPT_FILE_H

#include "base/buf.h"
#include "base/error.h"

#define RECEIPT_FILE_MAX ((size_t)4 << 20)
#define RECEIPT_LINE_MAX ((size_t)1 << 20)

/* Appends a receipt, a JSON text without line feeds. ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY. */
int receipt_file_append(const char *path, struct slice receipt, struct error *error) MUST_CHECK;
/* Passes each line of the renamed files, the oldest first, and then of the file itself. Lines are
 * without their ends; empty lines are skipped, and also a last line without its end that is no
 * receipt, which a process may be writing, unless `with_torn`. A result other than 0 of `take`
 * stops and is returned. ERR_IO: also if there is no such file. */
int receipt_file_read(const char *path, bool with_torn,
                      int (*take)(void *context, struct slice line, struct error *error),
                      void *context, struct error *error) MUST_CHECK;

#endif
