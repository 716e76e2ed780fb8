/* Certificates: PEM in and out, names, and paths. Inside src/seal only. */
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

/* What OpenSSL said last, or "unknown"; empties its queue. */
const char *openssl_reason(void);
/* For a call of OpenSSL that did not take what it was given: ERR_INVALID_EVIDENCE with `what`, or
 * ERR_NO_MEMORY, which says nothing of the evidence. Its queue must have been empty before the
 * call, and is empty then. */
int openssl_refused(struct error *error, const char *what) MUST_CHECK;

/* All certificates of a PEM text, in order; other blocks are skipped. 0, ERR_NO_MEMORY, or
 * ERR_VALIDATION: none, or one unreadable, or too many. */
int certificates_read(struct slice pem, STACK_OF(X509) * *ret_certificates, struct error *error)
	MUST_CHECK;
/* As PEM, appended. 0 or ERR_NO_MEMORY. */
int certificate_write(const X509 *certificate, struct buf *out) MUST_CHECK;
int certificates_write(const STACK_OF(X509) * certificates, struct buf *out) MUST_CHECK;
/* The same in DER, one behind the other. ERR_INVALID_EVIDENCE: something else stands there. */
int certificates_read_der(struct slice der, STACK_OF(X509) * *ret_certificates, struct error *error)
	MUST_CHECK;
int certificates_write_der(const STACK_OF(X509) * certificates, struct buf *out) MUST_CHECK;

/* RFC 2253, UTF-8, cut at a character's end. false, and "": it could not be written. */
bool certificate_name(const X509_NAME *name, char *text, size_t size);
/* A time of a certificate, or of what is said about one. false: it cannot be read. */
bool certificate_time(const ASN1_TIME *time, int64_t *ret_us) MUST_CHECK;
/* 0, ERR_NO_MEMORY, or ERR_INVALID_EVIDENCE: its times or names cannot be read. */
int certificate_describe(const X509 *certificate, struct certificate_facts *ret_facts,
                         struct error *error) MUST_CHECK;

/* Who issued the certificate, of `among`: names, key identifiers, and the signature; NULL: none of
 * them. 0 or ERR_NO_MEMORY. */
int certificate_find_issuer(X509 *certificate, const STACK_OF(X509) * among, X509 **ret_issuer)
	MUST_CHECK;
/* By name or, with a name altered, still by key identifier. */
bool certificate_claims_self_issue(X509 *certificate);

/* The path inside, which is the same whomever one trusts: the shortest over issuers among `inside`
 * to one that is its own issuer, of several the first as they stand; where none is, as far up as
 * they lead. Unverified beyond that. The stack is the caller's, the certificates are not. 0 or
 * ERR_NO_MEMORY. */
int certificate_path_inside(X509 *certificate, const STACK_OF(X509) * inside,
                            STACK_OF(X509) * *ret_path) MUST_CHECK;

enum path_purpose { PATH_SIGNATURE, PATH_TIMESTAMP };

/* What a certificate must allow to be used for that purpose (certificate_purpose.c). */
int certificate_check_signer(X509 *signer, enum path_purpose purpose, struct error *error)
	MUST_CHECK;
/* The same for those above it on a path, and how those were signed themselves. */
int certificate_check_issuers(const STACK_OF(X509) * path, enum path_purpose purpose,
                              struct error *error) MUST_CHECK;

/* Builds and verifies the path of `signer`: names, times, path lengths and name constraints, keys
 * and digests by OpenSSL's security level 2, and the purpose. roots NULL: up to the topmost of
 * `inside`. `any_anchor`: each of `roots` vouches as it stands, an intermediate or the signer's
 * own too; else only what is self-signed. Whatever of `inside` claims to be self-issued must be
 * signed by itself or, where a key was changed, by another one. For a signature all of `inside`
 * must be on the path, or on the path inside; an authority may have put others into its token.
 * time_us TIME_NONE: now with roots, no time without. The path is the caller's. 0,
 * ERR_INVALID_EVIDENCE, ERR_NOT_FOUND when it leads to none of `roots`, or ERR_NO_MEMORY. */
int certificate_path(X509 *signer, STACK_OF(X509) * inside, const STACK_OF(X509) * roots,
                     bool any_anchor, enum path_purpose purpose, int64_t time_us,
                     STACK_OF(X509) * *ret_path, struct error *error) MUST_CHECK;

#endif
