/* The incremental updates of a signed report as bytes: written by pdf_sign, and expected by
 * pdf_check. No I/O. Internal to src/report.
 *
 * The first update contains the signature. A report of level B-LTA has two more: /DSS with the
 * validation data of the signature (EN 319 142-1 clause 5.4.2, without /VRI, which adds no
 * information), and a document timestamp over the whole file (clause 5.4.3). */
#ifndef REPORT_PDF_UPDATE_H
#define REPORT_PDF_UPDATE_H

#include "report/pdf_base.h"
#include "seal/validation_set.h"

/* An update in one part, or in two parts around the place of a signature: '<', twice
 * PDF_CMS_SIZE_MAX digits, '>'. */
struct pdf_update {
	struct buf before;
	struct buf after;   /* empty: the update is in one part */
	int64_t size_bytes; /* of the whole update, including the place of the signature */
	int64_t table_at;
	/* Positions of its objects in the file. page_at 0: the page is unchanged. */
	int64_t catalog_at, page_at;
	int64_t added_at[VALIDATION_SET_OBJECTS_MAX + 2];
	size_t added_count;
};

/* These functions make an update, which must be freed even on failure. They return 0, ERR_NO_MEMORY
 * or ERR_TOO_LARGE. */
int pdf_update_signature(const struct pdf_base *base, int64_t time_us,
                         struct pdf_update *ret_update) MUST_CHECK;
int pdf_update_validation(const struct pdf_base *base, const struct validation_set *set,
                          struct pdf_update *ret_update) MUST_CHECK;
int pdf_update_timestamp(const struct pdf_base *base, struct pdf_update *ret_update) MUST_CHECK;
void pdf_update_free(struct pdf_update *update);

/* These functions change `base` to the state after the update, for the next update. Return 0 or
 * ERR_NO_MEMORY. */
int pdf_base_add_signature(struct pdf_base *base, const struct pdf_update *update) MUST_CHECK;
void pdf_base_add_validation(struct pdf_base *base, const struct pdf_update *update);

#endif
