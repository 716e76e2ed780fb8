/* A report of level B-LTA, taken apart: the report as it was signed (B-T), the update with /DSS,
 * and the one with the document timestamp. Both updates are made anew from what was found in them
 * and compared byte by byte, so nothing else can be in them. Internal to proof. */
#ifndef REPORT_PDF_LASTING_H
#define REPORT_PDF_LASTING_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "seal/validation.h"

struct pdf_parts {
	size_t signed_size; /* the report as it was signed is that much of the file */
	struct validation_set set;
	size_t contents_at; /* where the document timestamp's digits begin */
};

/* Whether the file ends as one with a document timestamp does. */
bool pdf_is_lasting(struct slice file);
/* 0, ERR_INVALID_EVIDENCE, ERR_NO_MEMORY; to be freed whatever the result. */
int pdf_take_apart(struct slice file, struct pdf_parts *ret_parts, struct error *error) MUST_CHECK;
void pdf_parts_free(struct pdf_parts *parts);

#endif
