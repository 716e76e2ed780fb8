/* PAdES baseline B-T (ETSI EN 319 142-1) on a report that report.h rendered: an incremental update
 * with an invisible signature field. Where what validates it can be had, B-LTA: a second update
 * with that (/DSS), and a third one with a document timestamp. Everything before each stays byte
 * for byte.
 *
 * The key and the authority stay behind the functions in struct cms_signing. The base file must
 * have the form that report.h gives it (pdf_base.h). Memory is constant. Thread safe. */
#ifndef REPORT_PDF_SIGN_H
#define REPORT_PDF_SIGN_H

#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "seal/cms.h"
#include "seal/validation.h"

#define PDF_CMS_SIZE_MAX 32768 /* bytes reserved for the CMS; twice as many hexadecimal digits */

struct pdf_signed {
	struct sha256 digest; /* of the whole signed file */
	int64_t size_bytes;
};

/* What makes a signature last. It must have a timestamp. Where nothing is collected the level stays
 * B-T. */
struct pdf_lasting {
	cms_collect_function collect;
	void *context;
};

/* Signs base_path into signed_path (another file; created or replaced, synced; removed again on
 * failure). time_us becomes /M; lasting NULL: B-T, or B without timestamps. 0, what the callbacks
 * answered, ERR_REFUSED when the base file is of another form, ERR_TOO_LARGE when the set is larger
 * than CMS_INSIDE_SIZE_MAX, ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY. */
int pdf_sign(const char *base_path, const char *signed_path, int64_t time_us,
             const struct cms_signing *signing, const struct pdf_lasting *lasting,
             struct pdf_signed *ret_signed, struct error *error) MUST_CHECK;
/* The same between open files: the whole base, and an empty one, useless after a failure.
 * Without a timestamp nothing is waited for but the key. */
int pdf_sign_open(int base, int file, int64_t time_us, const struct cms_signing *signing,
                  struct error *error) MUST_CHECK;

#endif
