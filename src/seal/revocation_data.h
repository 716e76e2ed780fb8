/* One certificate and one piece of data about it. Inside src/seal only.
 *
 * All data is DER to the last byte, signed with SHA-2 over a key of 112 bits of security at least,
 * by a certificate that was valid when it says it was issued; and it has no critical extension that
 * is not named here.
 * A CRL is the issuer's own and complete: version 2 or 1, with thisUpdate and nextUpdate, no delta,
 * not indirect, not for some reasons alone, and of the scope and the distribution point that the
 * certificate has (IssuingDistributionPoint).
 * An OCSP answer is signed by the issuer, or by a responder whose certificate the issuer itself
 * signed for id-kp-OCSPSigning, and answers once about the certificate. */
#ifndef SEAL_REVOCATION_DATA_H
#define SEAL_REVOCATION_DATA_H

#include <openssl/x509.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/http.h"
#include "seal/revocation.h"

#define REVOCATION_CRL_MAX ((size_t)10 << 20)
#define REVOCATION_OCSP_MAX 65536
#define REVOCATION_URLS_MAX 4

enum revocation_status {
	REVOCATION_STATUS_GOOD,
	REVOCATION_STATUS_REVOKED,
	REVOCATION_STATUS_NONE
};

struct revocation_facts {
	enum revocation_status status; /* NONE: the responder does not know it */
	int64_t issued_us;             /* thisUpdate; of an answer that was made before it, that time */
	int64_t next_us;               /* nextUpdate; TIME_NONE: none, an answer is made when asked */
	int64_t revoked_us;            /* the earlier of revocation and invalidity; TIME_NONE */
	int reason;                    /* CRLReason or REVOCATION_REASON_NONE */
};

/* ---- revocation_sources.c ---- */

struct revocation_urls {
	size_t count;
	char urls[REVOCATION_URLS_MAX][HTTP_URL_MAX + 1];
};
struct revocation_sources {
	struct revocation_urls ocsp; /* authority information access */
	struct revocation_urls crl;  /* CRL distribution points, of all reasons and the issuer's own */
	size_t others; /* places that are not among them: other schemes, other forms, too many */
};
/* Where the certificate says that it can be asked about; http and https alone. 0, ERR_NO_MEMORY, or
 * ERR_INVALID_EVIDENCE: an extension that cannot be read. */
int revocation_sources(const X509 *certificate, struct revocation_sources *ret_sources,
                       struct error *error) MUST_CHECK;

/* ---- revocation_crl.c, revocation_ocsp.c: 0, ERR_NOT_FOUND: it is about others,
 * ERR_INVALID_EVIDENCE, or ERR_NO_MEMORY ---- */

int revocation_check_crl(struct slice der, X509 *certificate, X509 *issuer,
                         struct revocation_facts *ret_facts, struct error *error) MUST_CHECK;
/* ret_responder, which may be NULL, gets whoever signed it (the caller's, X509_free) unless that
 * needs no revocation data itself: the issuer, or a responder with id-pkix-ocsp-nocheck: NULL. */
int revocation_check_ocsp(struct slice der, X509 *certificate, X509 *issuer,
                          struct revocation_facts *ret_facts, X509 **ret_responder,
                          struct error *error) MUST_CHECK;

/* Appends a DER OCSPRequest for one certificate: its CertID by SHA-1, which is the one that every
 * responder has to know (RFC 5019 section 2.1.1) and which only names, while trust comes from the
 * signature; no nonce, as many responders have their answers ready and all say when they were
 * issued. */
int revocation_ocsp_request(const X509 *certificate, const X509 *issuer, struct buf *out,
                            struct error *error) MUST_CHECK;

/* ---- revocation_sign.c: what is common to both ---- */

/* ERR_INVALID_EVIDENCE with both as the cause, or ERR_NO_MEMORY if it was OpenSSL that had none. */
int revocation_refuse(struct error *error, const char *what, const char *reason) MUST_CHECK;
/* Whether key and algorithm of a signature are strong enough. */
bool revocation_well_signed(const X509_ALGOR *algorithm, EVP_PKEY *key);
/* Whether the certificate was valid at the time. */
bool revocation_valid_at(const X509 *certificate, int64_t time_us);

#endif
