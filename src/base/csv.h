/* Tables as comma-separated values (RFC 4180): lines end with CR LF, texts that need it are quoted.
 * A text that a spreadsheet would take for a formula (its first character behind spaces is =, +, -,
 * @, a tab or a line break, or one of these signs in full width) gets an apostrophe in front. */
#ifndef BASE_CSV_H
#define BASE_CSV_H

#include <stdbool.h>

#include "base/buf.h"

struct csv_writer {
	struct buf *out;
	bool begun; /* the row has a field */
};
void csv_text(struct csv_writer *writer, struct slice text);
/* A number or another text of our own making, as it is. */
void csv_plain(struct csv_writer *writer, struct slice text);
void csv_end_row(struct csv_writer *writer);

#endif
