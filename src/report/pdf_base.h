/* A report that is to be signed, as far as its signing must know it. Internal to proof.
 *
 * Only the form is read in which report_finish.h leaves one: a single classic cross-reference table
 * from object 0 on, its trailer and the end of the file behind it, and every dictionary that is
 * read on one line, "N 0 obj LF << … >> LF endobj LF", its members sorted. So no PDF library has to
 * look at what a renderer wrote, which may have been taken over by what it drew. */
#ifndef REPORT_PDF_BASE_H
#define REPORT_PDF_BASE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define PDF_IDENTIFIER_DIGITS 32
#define PDF_OBJECTS_MAX 8388607 /* as many as PDF readers have to take */

struct pdf_base {
	int catalog_id;
	int page_id; /* of the first page */
	int next_id; /* the first free object number */
	int info_id; /* 0: none */
	/* The signature's widget and the dictionary of validation data, once there; 0: not yet. */
	int signature_id;
	int validation_id;
	int64_t cross_reference_at;
	int64_t size_bytes;
	struct buf catalog; /* "<< … " without the closing brackets */
	struct buf page;    /* likewise, its annotations last and open: "<< … /Annots [ … " */
	char first_id[PDF_IDENTIFIER_DIGITS + 1]; /* the file identifier that stays, hexadecimal */
};

/* Reads an open file, wherever its offset is. To be freed whatever the result. ERR_REFUSED when it
 * is of another form, ERR_IO, ERR_NO_MEMORY. */
int pdf_base_read(int file, struct pdf_base *ret_base, struct error *error) MUST_CHECK;
void pdf_base_free(struct pdf_base *base);

#endif
