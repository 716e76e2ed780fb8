/* Checks one CRL or OCSP response about one certificate. For src/seal only.
 *
 * All data is strict DER without trailing bytes, signed with SHA-2 by a key of at least 112 bits of
 * security whose certificate was valid when the data was issued. It has no critical extension that
 * is not named here.
 *
 * A CRL is complete and issued by the certificate's issuer itself: version 1 or 2, with thisUpdate
 * and nextUpdate, not a delta CRL, not indirect, not limited to some reasons, and with the scope
 * and distribution point of the certificate (IssuingDistributionPoint).
 *
 * An OCSP response is signed by the issuer, or by a responder whose certificate the issuer itself
 * signed for id-kp-OCSPSigning, and contains exactly one answer about the certificate. */
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
	enum revocation_status status; /* NONE: the responder does not know the certificate */
	int64_t issued_us;             /* thisUpdate, or producedAt if that is earlier */
	int64_t next_us;    /* nextUpdate; TIME_NONE: absent, responses are made on request */
	int64_t revoked_us; /* the earlier of revocation and invalidity; TIME_NONE */
	int reason;         /* CRLReason or REVOCATION_REASON_NONE */
};

/* ---- revocation_sources.c ---- */

struct revocation_urls {
	size_t count;
	char urls[REVOCATION_URLS_MAX][HTTP_URL_MAX + 1];
};
struct revocation_sources {
	struct revocation_urls ocsp; /* authority information access */
	struct revocation_urls crl;  /* CRL distribution points for all reasons, of the issuer itself */
	size_t others;               /* number of other sources: other schemes or forms, or too many */
};
/* Reads the sources of revocation data from the certificate; http and https only. Returns 0,
 * ERR_NO_MEMORY, or ERR_INVALID_EVIDENCE: an extension is unreadable. */
int revocation_sources(const X509 *certificate, struct revocation_sources *ret_sources,
                       struct error *error) MUST_CHECK;

/* ---- revocation_crl.c, revocation_ocsp.c. Return 0; ERR_NOT_FOUND: about other certificates;
 * ERR_INVALID_EVIDENCE; ERR_NO_MEMORY ---- */

int revocation_check_crl(struct slice der, X509 *certificate, X509 *issuer,
                         struct revocation_facts *ret_facts, struct error *error) MUST_CHECK;
/* *ret_responder (ret_responder may be NULL) receives the responder's certificate if it needs
 * revocation data itself; the caller frees it with X509_free. It is NULL for the issuer and for a
 * responder with id-pkix-ocsp-nocheck. */
int revocation_check_ocsp(struct slice der, X509 *certificate, X509 *issuer,
                          struct revocation_facts *ret_facts, X509 **ret_responder,
                          struct error *error) MUST_CHECK;

/* Appends a DER OCSPRequest about one certificate. Its CertID uses SHA-1, which every responder
 * must support (RFC 5019 section 2.1.1); it only identifies, while trust comes from the signature.
 * It has no nonce, since many responders sign responses in advance. */
int revocation_ocsp_request(const X509 *certificate, const X509 *issuer, struct buf *out,
                            struct error *error) MUST_CHECK;

/* ---- revocation_sign.c: common to both ---- */

/* Returns ERR_INVALID_EVIDENCE with both texts as the cause, or ERR_NO_MEMORY if OpenSSL ran out of
 * memory. */
int revocation_refuse(struct error *error, const char *what, const char *reason) MUST_CHECK;
/* Returns whether key and algorithm of a signature are strong enough. */
bool revocation_is_strongly_signed(const X509_ALGOR *algorithm, EVP_PKEY *key);
/* Returns whether the certificate was valid at the time. */
bool revocation_is_valid_at(const X509 *certificate, int64_t time_us);

#endif
