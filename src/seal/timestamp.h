/* Timestamps (RFC 3161): requests, and verification of responses and tokens. No I/O. Thread safe.
 *
 * Options that the standards leave to an authority are accepted: BER or DER without trailing bytes;
 * unsigned attributes, certificates outside the path, and revocation data, all ignored; missing
 * accuracy; SHA-256, SHA-384 or SHA-512 in the signature; ECDSA, RSA PKCS#1 v1.5, or RSA-PSS with a
 * single digest algorithm.
 *
 * Ambiguity is not accepted. A token has one signer, identified by issuer and serial number; the
 * signed attributes content-type, message-digest and signing-certificate (ESSCertID or ESSCertIDv2,
 * RFC 5816), each once; a signer whose extended key usage is critical and timeStamping only; as
 * `tsa`, if present, the subject or an alternative name of the signer's certificate; no critical
 * extension.
 *
 * The imprint is a SHA-2 digest. Certificates are checked as of genTime, their keys and digests by
 * OpenSSL's security level 2 (112 bits). */
#ifndef SEAL_TIMESTAMP_H
#define SEAL_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "seal/trust.h"

#define TIMESTAMP_REQUEST_MAX 1024
#define TIMESTAMP_RESPONSE_MAX 65536

#define TIMESTAMP_ACCURACY_UNKNOWN (-1)

struct timestamp_facts {
	int64_t gen_time_us;
	int64_t accuracy_us; /* or TIMESTAMP_ACCURACY_UNKNOWN: not stated */
	struct digest imprint;
	char serial[65];  /* lower-case hex of whole bytes */
	char policy[128]; /* dotted OID */
	struct certificate_facts authority;
	bool trusted; /* leads to a root that the caller gave; false: integrity only */
};

/* Appends a DER TimeStampReq with SHA-256, certReq, a random 128-bit nonce, and `policy` (dotted
 * OID; NULL: none). Returns 0, ERR_VALIDATION for a malformed policy, or ERR_NO_MEMORY. */
int timestamp_request(const struct sha256 *imprint, const char *policy, struct buf *out,
                      struct error *error) MUST_CHECK;
/* The same for a digest of any algorithm. */
int timestamp_request_over(const struct digest *imprint, const char *policy, struct buf *out,
                           struct error *error) MUST_CHECK;

/* The certificates between an authority's certificate and a root that are not in its token, as
 * concatenated DER, and further inputs and outputs of a verification. */
#define TIMESTAMP_PATH_MAX 262144 /* bytes */
struct timestamp_path {
	struct slice known;   /* untrusted certificates for the path; size 0: none */
	struct slice request; /* the stored request of the token; size 0: unknown */
	struct buf *complete; /* NULL, or receives the verified path, from the authority to the root */
	bool tolerant;        /* as in struct trust_roots */
};
/* Removes the first certificate from *rest; false: none is left. */
bool timestamp_next_certificate(struct slice *rest, struct slice *ret_der);

/* Verifies a response against its request: status granted, imprint, nonce, requested policy, all of
 * the above, and a path to `roots_pem` (must not be empty). The caller checks the time. `path` may
 * be NULL. Appends the token's unchanged bytes to `token` unless NULL. Returns 0,
 * ERR_INVALID_EVIDENCE, or ERR_VALIDATION for unusable roots, with the cause. */
int timestamp_verify_response(struct slice request, struct slice response, struct slice roots_pem,
                              const struct timestamp_path *path, struct buf *token,
                              struct timestamp_facts *ret_facts, struct error *error) MUST_CHECK;

/* Finds the token inside a response, unchanged and unverified. The slice points into `response`.
 * Returns 0 or ERR_INVALID_EVIDENCE. */
int timestamp_response_token(struct slice response, struct slice *ret_token, struct error *error)
	MUST_CHECK;
/* Makes the response end with the token. In BER of indefinite length bytes follow the token; the
 * outer SEQUENCE is then rewritten in DER, while status and token keep their bytes. Returns 0,
 * ERR_INVALID_EVIDENCE or ERR_NO_MEMORY. */
int timestamp_response_end_with_token(struct buf *response, struct error *error) MUST_CHECK;

/* Verifies a token over an imprint, offline. roots_pem with NULL data: with the certificates
 * inside, integrity only, ret_facts->trusted is false. Returns 0, ERR_INVALID_EVIDENCE, or
 * ERR_VALIDATION for unusable roots. */
int timestamp_verify_token(struct slice token, const struct sha256 *imprint, struct slice roots_pem,
                           struct timestamp_facts *ret_facts, struct error *error) MUST_CHECK;
/* The same for a digest of any algorithm. A request in `path` must be a DER TimeStampReq without
 * trailing bytes and extensions, with the token's imprint, the same nonce or absence of one, and no
 * other policy. The certificates are also checked as of judged_us if that is later than genTime
 * (TIME_NONE never is): whether they still vouch for the token then. */
int timestamp_verify_token_at(struct slice token, const struct digest *imprint,
                              struct slice roots_pem, const struct timestamp_path *path,
                              int64_t judged_us, struct timestamp_facts *ret_facts,
                              struct error *error) MUST_CHECK;
/* Reads the imprint of a token, unverified. Returns 0, ERR_NO_MEMORY or ERR_INVALID_EVIDENCE. */
int timestamp_token_imprint(struct slice token, struct digest *ret_imprint, struct error *error)
	MUST_CHECK;
/* The same as timestamp_verify_token with a path. */
int timestamp_verify_token_path(struct slice token, const struct sha256 *imprint,
                                struct slice roots_pem, const struct timestamp_path *path,
                                struct timestamp_facts *ret_facts, struct error *error) MUST_CHECK;

/* Returns the earliest end of validity of the certificates from the authority upwards, as far as
 * they are inside the token or in `external` (concatenated DER). Until then the token needs no
 * renewal. Nothing else is verified. Returns 0, ERR_NO_MEMORY or ERR_INVALID_EVIDENCE. */
int timestamp_valid_until(struct slice token, struct slice external, int64_t *ret_gen_time_us,
                          int64_t *ret_until_us, struct error *error) MUST_CHECK;

/* Appends the certificates from the authority upwards, each followed by its issuer, as far as they
 * are inside the token or in `external`; unverified and independent of trusted roots. Returns 0,
 * ERR_NO_MEMORY or ERR_INVALID_EVIDENCE. */
int timestamp_known_path(struct slice token, struct slice external, struct buf *out,
                         struct error *error) MUST_CHECK;

/* Appends the path within a token (certificate_embedded_path), independently of trusted roots.
 * Returns 0, ERR_NO_MEMORY or ERR_INVALID_EVIDENCE. */
int timestamp_embedded_path(struct slice token, struct buf *out, struct error *error) MUST_CHECK;

/* Appends the certificates of a path that are not inside the token. Returns 0 or
 * ERR_INVALID_EVIDENCE. */
int timestamp_missing_certificates(struct slice token, struct slice path, struct buf *out,
                                   struct error *error) MUST_CHECK;
/* Appends the token as DER with all of `certificates` (a path) inside, for formats that store only
 * the token and do not digest its bytes. The signed part is unchanged. Returns 0 or
 * ERR_INVALID_EVIDENCE. */
int timestamp_token_add_certificates(struct slice token, struct slice certificates, struct buf *out,
                                     struct error *error) MUST_CHECK;
/* The same with the CRLs and OCSP responses of the set in the unsigned attribute revocation-values,
 * in addition to those that the token has. ERR_TOO_LARGE: the token would exceed the size that is
 * readable. */
struct validation_set;
int timestamp_token_add_revocations(struct slice token, const struct validation_set *set,
                                    struct buf *out, struct error *error) MUST_CHECK;

#endif
