/* Strict parsers for the few text forms of the updates that pdf_update.h writes. Internal to
 * src/report.
 */
#ifndef REPORT_PDF_READ_H
#define REPORT_PDF_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "report/pdf_base.h"

/* Each function consumes text from the front of `rest`. It returns false if another text is there.
 */
bool pdf_take(struct slice *rest, const char *expected);
/* Consumes a decimal number without sign or leading zeros. */
bool pdf_take_number(struct slice *rest, int64_t *ret_number);
/* Consumes an object number, 1 to PDF_OBJECTS_MAX. */
bool pdf_take_id(struct slice *rest, int *ret_id);
/* Consumes an entry of a cross-reference table and returns its position. */
bool pdf_take_entry(struct slice *rest, int64_t *ret_at);

/* Returns the part of a file from a position on; empty beyond its end. */
struct slice pdf_text_from(struct slice file, int64_t at);
/* Returns the position of the last cross-reference table, as stated at the end of the file. */
bool pdf_last_table(struct slice file, int64_t *ret_at);

/* Returns the position in the last entry of that table: of the object of the signature or the
 * timestamp. */
bool pdf_last_object(struct slice file, int64_t *ret_at);

struct pdf_trailer {
	int size, root_id, info_id; /* info_id 0: none */
	int64_t previous_at;        /* position of the previous table */
	char first_id[PDF_IDENTIFIER_DIGITS + 1];
	int64_t at;  /* position of the trailer, which follows the entries of the table */
	int64_t end; /* end of the file that ends with this trailer */
};
/* Reads the trailer of the table of an update. */
bool pdf_read_trailer(struct slice file, int64_t table_at, struct pdf_trailer *ret_trailer);

#endif
