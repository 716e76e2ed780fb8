/* The data of an unsigned report that signing needs. Internal to src/report.
 *
 * Only the form that report_finish.h produces is read: a single classic cross-reference table from
 * object 0 on, its trailer, and the end of the file after it. Every dictionary that is read is on
 * one line, "N 0 obj LF << … >> LF endobj LF", with sorted members. So no PDF library has to parse
 * the output of a renderer, which the drawn text may have compromised. */
#ifndef REPORT_PDF_BASE_H
#define REPORT_PDF_BASE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define PDF_IDENTIFIER_DIGITS 32
#define PDF_OBJECTS_MAX 8388607 /* the limit that PDF readers must support */

struct pdf_base {
	int catalog_id;
	int page_id; /* object of the first page */
	int next_id; /* the first free object number */
	int info_id; /* 0: none */
	/* The widget of the signature and the dictionary of validation data; 0: not yet present. */
	int signature_id;
	int validation_id;
	int64_t cross_reference_at;
	int64_t size_bytes;
	struct buf catalog; /* "<< … " without the closing brackets */
	struct buf page;    /* likewise, with open annotations last: "<< … /Annots [ … " */
	char first_id[PDF_IDENTIFIER_DIGITS + 1]; /* the permanent file identifier, hexadecimal */
};

/* Reads an open file, independent of its offset. The result must be freed even on failure. Returns
 * ERR_REFUSED if the file has another form, ERR_IO, ERR_NO_MEMORY. */
int pdf_base_read(int file, struct pdf_base *ret_base, struct error *error) MUST_CHECK;
void pdf_base_free(struct pdf_base *base);

#endif
