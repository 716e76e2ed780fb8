/* The few forms of text that our updates of a report consist of, read strictly. Internal to proof.
 */
#ifndef REPORT_PDF_READ_H
#define REPORT_PDF_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "report/pdf_base.h"

/* Each takes from the front of what is still to be read; false: something else stands there. */
bool pdf_take(struct slice *rest, const char *expected);
/* A decimal number without sign or superfluous zeros. */
bool pdf_take_number(struct slice *rest, int64_t *ret_number);
/* An object's number, 1 to PDF_OBJECTS_MAX. */
bool pdf_take_id(struct slice *rest, int *ret_id);
/* The position in an entry of a cross-reference table. */
bool pdf_take_entry(struct slice *rest, int64_t *ret_at);

/* What of a file follows a position; empty beyond its end. */
struct slice pdf_from(struct slice file, int64_t at);
/* The position of the last cross-reference table, as the file's end says. */
bool pdf_last_table(struct slice file, int64_t *ret_at);

/* The position that its last entry gives: of the signature's object, or the timestamp's. */
bool pdf_last_object(struct slice file, int64_t *ret_at);

struct pdf_trailer {
	int size, root_id, info_id; /* info_id 0: none */
	int64_t previous_at;        /* the table before */
	char first_id[PDF_IDENTIFIER_DIGITS + 1];
	int64_t at;  /* of the trailer itself, where the table's entries end */
	int64_t end; /* of the file that ends with it */
};
/* The trailer of the table of an update. */
bool pdf_read_trailer(struct slice file, int64_t table_at, struct pdf_trailer *ret_trailer);

#endif
