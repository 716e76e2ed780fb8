/* Certificates: reading and writing, names and paths. For src/seal only. */
#ifndef SEAL_CERTIFICATE_H
#define SEAL_CERTIFICATE_H

#include <openssl/x509.h>

#include "base/buf.h"
#include "base/error.h"
#include "seal/timestamp.h"

#define CERTIFICATES_MAX 64 /* in one PEM text */
#define PEM_FILE_MAX 262144 /* bytes */

static inline void certificates_cleanup(STACK_OF(X509) * *certificates)
{
	sk_X509_pop_free(*certificates, X509_free);
}
#define CERTIFICATES_AUTO __attribute__((cleanup(certificates_cleanup)))

/* Returns the reason of OpenSSL's last error, or "unknown", and clears its error queue. */
const char *openssl_reason(void);
/* Returns the error of a failed OpenSSL call on untrusted input: ERR_NO_MEMORY when memory was
 * exhausted, which says nothing about the evidence, otherwise ERR_INVALID_EVIDENCE with `what`. The
 * error queue must have been empty before the call; it is cleared. */
int openssl_failure(struct error *error, const char *what) MUST_CHECK;

/* Reads all certificates of a PEM text in order and skips other blocks. Returns 0, ERR_NO_MEMORY,
 * or ERR_VALIDATION: none, one unreadable, or too many. */
int certificates_read(struct slice pem, STACK_OF(X509) * *ret_certificates, struct error *error)
	MUST_CHECK;
/* Append certificates as PEM. Return 0 or ERR_NO_MEMORY. */
int certificate_write(const X509 *certificate, struct buf *out) MUST_CHECK;
int certificates_write(const STACK_OF(X509) * certificates, struct buf *out) MUST_CHECK;
/* The same for concatenated DER. ERR_INVALID_EVIDENCE: the bytes contain something else. */
int certificates_read_der(struct slice der, STACK_OF(X509) * *ret_certificates, struct error *error)
	MUST_CHECK;
int certificates_write_der(const STACK_OF(X509) * certificates, struct buf *out) MUST_CHECK;

/* Writes the name in RFC 2253 form, UTF-8, truncated at a character boundary. Returns false, with
 * an empty text, if it cannot be written. */
bool certificate_name(const X509_NAME *name, char *text, size_t size);
/* Converts a time of a certificate, CRL or OCSP response. Returns false if it cannot be read. */
bool certificate_time(const ASN1_TIME *time, int64_t *ret_us) MUST_CHECK;
/* Fills *ret_facts. Returns 0, ERR_NO_MEMORY, or ERR_INVALID_EVIDENCE: times or names cannot be
 * read. */
int certificate_describe(const X509 *certificate, struct certificate_facts *ret_facts,
                         struct error *error) MUST_CHECK;

/* Finds the issuer among `among` by name, key identifier and signature; NULL: not found. Returns 0
 * or ERR_NO_MEMORY. */
int certificate_find_issuer(X509 *certificate, const STACK_OF(X509) * among, X509 **ret_issuer)
	MUST_CHECK;
/* Returns whether issuer and subject are equal by name or by key identifier; the latter also
 * detects a certificate whose name was altered. */
bool certificate_is_self_issued(X509 *certificate);

/* Builds the path within a set of certificates, independently of trusted roots: the shortest path
 * over issuers among `inside` to a self-signed certificate (among equally short ones, the first in
 * order), or, if there is none, as far up as issuers are found. Nothing beyond the signatures is
 * verified. The caller owns the stack but not the certificates. Returns 0 or ERR_NO_MEMORY. */
int certificate_embedded_path(X509 *certificate, const STACK_OF(X509) * inside,
                              STACK_OF(X509) * *ret_path) MUST_CHECK;

enum path_purpose { PATH_SIGNATURE, PATH_TIMESTAMP };

/* Checks that a certificate may be used for the purpose (certificate_purpose.c). */
int certificate_check_signer(X509 *signer, enum path_purpose purpose, struct error *error)
	MUST_CHECK;
/* The same for the issuers on a path; also checks the strength of every signature on the path. */
int certificate_check_issuers(const STACK_OF(X509) * path, enum path_purpose purpose,
                              struct error *error) MUST_CHECK;

/* Builds and verifies the path of `signer`: names, validity, path lengths, name constraints,
 * purpose, and keys and digests by OpenSSL's security level 2.
 *
 * `roots` NULL: the path ends at the topmost certificate of `inside`. `any_anchor`: every
 * certificate of `roots` is a trust anchor, also an intermediate or the signer's own; otherwise
 * only self-signed ones are. Each certificate of `inside` that claims to be self-issued must be
 * signed with its own key or, after a key change, by another one of `inside` or `roots`. For
 * PATH_SIGNATURE all of `inside` must be on the path, or on the path that certificate_embedded_path
 * builds; for PATH_TIMESTAMP the token may contain others. time_us TIME_NONE: now with roots, no
 * time check without.
 *
 * The caller owns the path. Returns 0, ERR_INVALID_EVIDENCE, ERR_NOT_FOUND when it leads to none of
 * `roots`, or ERR_NO_MEMORY. */
int certificate_path(X509 *signer, STACK_OF(X509) * inside, const STACK_OF(X509) * roots,
                     bool any_anchor, enum path_purpose purpose, int64_t time_us,
                     STACK_OF(X509) * *ret_path, struct error *error) MUST_CHECK;

#endif
