/* The incremental updates of a signed report, byte by byte: what pdf_sign writes and pdf_check
 * expects. No I/O. Internal to proof.
 *
 * A first one holds the signature. A report of level B-LTA has two more: /DSS, with what validates
 * the signature (EN 319 142-1 clause 5.4.2, without /VRI, which says nothing that the objects do
 * not say), and a document timestamp over everything (clause 5.4.3). */
#ifndef REPORT_PDF_UPDATE_H
#define REPORT_PDF_UPDATE_H

#include "report/pdf_base.h"
#include "seal/validation.h"

/* In one piece, or in two with the place of a signature between them: '<', twice PDF_CMS_SIZE_MAX
 * digits, '>'. */
struct pdf_update {
	struct buf before;
	struct buf after;   /* empty: it is in one piece */
	int64_t size_bytes; /* of the whole, the place of the signature included */
	int64_t table_at;
	/* Where each of its objects begins in the file; 0: the page stays. */
	int64_t catalog_at, page_at;
	int64_t added_at[VALIDATION_OBJECTS_MAX + 2];
	size_t added_count;
};

/* To be freed whatever the result. 0 or ERR_NO_MEMORY; ERR_TOO_LARGE. */
int pdf_update_signature(const struct pdf_base *base, int64_t time_us,
                         struct pdf_update *ret_update) MUST_CHECK;
int pdf_update_validation(const struct pdf_base *base, const struct validation_set *set,
                          struct pdf_update *ret_update) MUST_CHECK;
int pdf_update_timestamp(const struct pdf_base *base, struct pdf_update *ret_update) MUST_CHECK;
void pdf_update_free(struct pdf_update *update);

/* What the next update has to know, once one of them stands in the file. 0 or ERR_NO_MEMORY. */
int pdf_base_add_signature(struct pdf_base *base, const struct pdf_update *update) MUST_CHECK;
void pdf_base_add_validation(struct pdf_base *base, const struct pdf_update *update);

#endif
