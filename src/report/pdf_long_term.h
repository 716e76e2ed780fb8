/* Decomposition of a report of level B-LTA into the signed report (B-T), the update with /DSS, and
 * the update with the document timestamp. Both updates are generated again from their contents and
 * compared byte by byte, so they cannot contain anything else. Internal to src/report. */
#ifndef REPORT_PDF_LONG_TERM_H
#define REPORT_PDF_LONG_TERM_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "seal/validation_set.h"

struct pdf_parts {
	size_t signed_size; /* size of the signed report at the beginning of the file */
	struct validation_set set;
	size_t contents_at; /* position of the digits of the document timestamp */
};

/* Returns whether the file ends like a report with a document timestamp. */
bool pdf_is_long_term(struct slice file);
/* Decomposes a report. Returns 0, ERR_INVALID_EVIDENCE or ERR_NO_MEMORY. The parts must be freed
 * even on failure. */
int pdf_decompose(struct slice file, struct pdf_parts *ret_parts, struct error *error) MUST_CHECK;
void pdf_parts_free(struct pdf_parts *parts);

#endif
