/* Writes tables as comma-separated values (RFC 4180). Lines end with CR LF, and texts are quoted
 * where necessary. A text that a spreadsheet would interpret as a formula gets a leading
 * apostrophe. Such a text has, after optional spaces, one of =, +, -, @, a tab or a line break, or
 * the full-width form of a sign. */
#ifndef BASE_CSV_H
#define BASE_CSV_H

#include <stdbool.h>

#include "base/buf.h"

struct csv_writer {
	struct buf *out;
	bool begun; /* the current row has a field */
};
void csv_text(struct csv_writer *writer, struct slice text);
/* Adds a trusted field, for example a number, without quoting. */
void csv_plain(struct csv_writer *writer, struct slice text);
void csv_end_row(struct csv_writer *writer);

#endif
