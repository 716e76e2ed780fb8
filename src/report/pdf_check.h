/* Checks a signed report from its bytes alone, for `constancia verify`.
 *
 * Only the two forms that pdf_sign.h writes are accepted. The signature (B-T) or the document
 * timestamp (B-LTA) covers every byte of the file except the hexadecimal digits of its /Contents.
 * Those must be lower case and hold exactly one DER value, padded with the digit 0. In a report of
 * level B-LTA, the bytes that the signature does not cover are exactly the validation data and the
 * timestamp in the form in which pdf_sign.h writes them, so they cannot change the displayed
 * content. The check uses no general PDF parser, which exposes little code to a hostile file. Other
 * PDF files need a PAdES validator.
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
#define PDF_LOG_SIZE 8192
/* The document timestamp may be earlier than the signature timestamp by this, because it comes from
 * another clock. */
#define PDF_CLOCK_TOLERANCE_US (300 * US_PER_SECOND)

/* The properties in the metadata of a report that bind it to an archive. */
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
	/* "ENTRIES SEGMENTS ORIGIN", and for each witness " TIME NAME", with the escapes of XML; empty:
	 * it states nothing about the log of segments. */
	char segment_log[PDF_LOG_SIZE];
};

struct pdf_facts {
	struct pdf_binding binding;
	int64_t signing_time_us;    /* /M, as stated by the signer */
	struct cms_facts signature; /* the signer, the timestamp, and whether they are trusted */
	bool has_document_timestamp;
	struct timestamp_facts document_timestamp; /* has its own `trusted` */
	/* The level of the signature by its embedded data. A cause other than "" says why the level is
	 * not higher although there is validation data. */
	enum level level;
	char level_cause[LEVEL_CAUSE_SIZE];
};

/* Reads the binding of a signed or unsigned report without verifying it. Returns 0 or
 * ERR_INVALID_EVIDENCE. */
int pdf_read_binding(struct slice file, struct pdf_binding *ret_binding, struct error *error)
	MUST_CHECK;

/* Checks a whole file in memory. `roots` as for cms_verify, including tolerant ones. Returns 0,
 * ERR_INVALID_EVIDENCE with the cause, or ERR_NO_MEMORY. */
int pdf_check(struct slice file, const struct trust_roots *roots, struct pdf_facts *ret_facts,
              struct error *error) MUST_CHECK;

/* The verified certification paths. */
struct pdf_paths {
	struct cms_paths signature;
	struct buf timestamp; /* of the document timestamp; empty without one */
};
void pdf_paths_init(struct pdf_paths *paths);
void pdf_paths_free(struct pdf_paths *paths);
#define PDF_PATHS_AUTO __attribute__((cleanup(pdf_paths_free)))

/* Does the same and appends the verified paths. */
int pdf_check_along(struct slice file, const struct trust_roots *roots, struct pdf_paths *paths,
                    struct pdf_facts *ret_facts, struct error *error) MUST_CHECK;

#endif
