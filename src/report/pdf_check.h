/* Checks a signed report with nothing but the file: for `constancia verify`.
 *
 * Strict on purpose: only the two forms that pdf_sign.h writes are taken. The signature (B-T), or
 * the document timestamp (B-LTA), covers every byte of the file but the hexadecimal digits of its
 * /Contents; those must be lower case, hold exactly one DER value and be filled up with the digit
 * 0. In a report of level B-LTA whatever the signature does not cover is validation data and the
 * timestamp, as they would be written, so that nothing that is read or shown can be changed by it.
 * No general PDF parser is involved, so a hostile file
 * meets little code. Other PDF files belong to a PAdES validator.
 *
 * Thread safe. */
#ifndef REPORT_PDF_CHECK_H
#define REPORT_PDF_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "ledger/record.h"
#include "seal/cms.h"
#include "seal/level.h"

#define PDF_SIZE_MAX (INT64_C(64) << 20)
#define PDF_TEXT_SIZE 128
/* How much earlier the document timestamp may be than the signature's, which is of another clock.
 */
#define PDF_CLOCK_TOLERANCE_US (300 * US_PER_SECOND)

/* What the report says of itself in its metadata, so that it can be bound to an archive. */
struct pdf_binding {
	char certification_id[PDF_TEXT_SIZE];
	char verification_code[PDF_TEXT_SIZE];
	char channel_id[PDF_TEXT_SIZE];
	enum mode chain;
	int64_t first_sequence;
	int64_t last_sequence;
	int64_t event_count;
	struct sha256 first_chain_hash;
	struct sha256 last_chain_hash;
	struct sha256 archive_digest;
	int64_t archive_size_bytes;
};

struct pdf_facts {
	struct pdf_binding binding;
	int64_t signing_time_us;    /* /M: the signer's own statement */
	struct cms_facts signature; /* who signed, its timestamp, trusted or not */
	bool has_document_timestamp;
	struct timestamp_facts document_timestamp; /* has its own `trusted` */
	/* What the signature has reached by what is inside; the cause, unless "", says why it is not
	 * more though there is validation data. */
	enum level level;
	char level_cause[LEVEL_CAUSE_SIZE];
};

/* Reads what a report, signed or not, says of itself; nothing is checked but its form. 0 or
 * ERR_INVALID_EVIDENCE. */
int pdf_read_binding(struct slice file, struct pdf_binding *ret_binding, struct error *error)
	MUST_CHECK;

/* Checks a whole file in memory. Roots as for cms_verify, tolerant ones too. 0 or
 * ERR_INVALID_EVIDENCE with the cause, ERR_NO_MEMORY. */
int pdf_check(struct slice file, const struct trust_roots *roots, struct pdf_facts *ret_facts,
              struct error *error) MUST_CHECK;

/* Where the paths went that were verified. */
struct pdf_paths {
	struct cms_paths signature;
	struct buf timestamp; /* of the document timestamp; stays empty without one */
};
void pdf_paths_init(struct pdf_paths *paths);
void pdf_paths_free(struct pdf_paths *paths);
#define PDF_PATHS_AUTO __attribute__((cleanup(pdf_paths_free)))

/* The same, and appends to the paths. */
int pdf_check_along(struct slice file, const struct trust_roots *roots, struct pdf_paths *paths,
                    struct pdf_facts *ret_facts, struct error *error) MUST_CHECK;

#endif
