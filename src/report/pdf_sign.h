/* PAdES baseline signatures (ETSI EN 319 142-1) of reports that report.h rendered. B-T is an
 * incremental update with an invisible signature field. B-LTA, if validation data is available, has
 * two more updates: the validation data (/DSS), and a document timestamp. Each update leaves all
 * earlier bytes unchanged.
 *
 * The key and the timestamp authority are accessed through the functions in struct cms_signing. The
 * base file must have the form that report.h produces (pdf_base.h). Memory use is constant. Thread
 * safe. */
#ifndef REPORT_PDF_SIGN_H
#define REPORT_PDF_SIGN_H

#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "seal/cms.h"
#include "seal/validation_set.h"

#define PDF_CMS_SIZE_MAX 32768 /* bytes reserved for the CMS; twice as many hexadecimal digits */

struct pdf_signed {
	struct sha256 digest; /* digest of the whole signed file */
	int64_t size_bytes;
};

/* The source of validation data for level B-LTA, for a signature with a timestamp. If it returns
 * none, the level stays B-T. */
struct pdf_long_term {
	cms_collect_function collect;
	void *context;
};

/* Signs base_path into signed_path, which must be another file; it is created or replaced, synced,
 * and removed on failure. time_us becomes /M. lasting NULL: level B-T, or B-B without timestamps.
 * Returns 0; an error of the callbacks; ERR_REFUSED if the base file has another form;
 * ERR_TOO_LARGE if the validation data exceeds CMS_VALIDATION_SIZE_MAX; ERR_IO, ERR_NO_SPACE,
 * ERR_NO_MEMORY. */
int pdf_sign(const char *base_path, const char *signed_path, int64_t time_us,
             const struct cms_signing *signing, const struct pdf_long_term *lasting,
             struct pdf_signed *ret_signed, struct error *error) MUST_CHECK;

#endif
