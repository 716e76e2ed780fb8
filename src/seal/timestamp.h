/* RFC 3161: requests, and verification of responses and tokens. No I/O. Thread safe.
 *
 * What the standards leave to an authority is accepted: BER or DER, to the last byte; unsigned
 * attributes, certificates that are not on the path, and revocation data inside, which nobody looks
 * at; no accuracy; SHA-256, SHA-384 or SHA-512 under its signature; ECDSA, RSA PKCS#1 v1.5 or
 * RSA-PSS with one digest throughout. What would let one token be read in two ways is not: one
 * signer, named by issuer and serial number; the signed attributes content-type, message-digest and
 * signing certificate (ESSCertID or ESSCertIDv2, RFC 5816), each once; a signer whose extended key
 * usage is critical and timeStamping alone; as `tsa`, if it is there, a name of that signer's
 * certificate, the subject or an alternative one; no critical extension. The imprint is a SHA-2
 * digest. Certificates are judged as of genTime, and their keys and digests by OpenSSL's security
 * level 2 (112 bits). */
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
	int64_t accuracy_us; /* or TIMESTAMP_ACCURACY_UNKNOWN: the authority states none */
	struct digest imprint;
	char serial[65];  /* hex, lower case, no leading zeros beyond a whole byte */
	char policy[128]; /* dotted OID */
	struct certificate_facts authority;
	bool trusted; /* leads to a root the caller gave; false: integrity alone */
};

/* Appends a DER TimeStampReq: SHA-256, certReq, a random 128-bit nonce, `policy` (dotted OID)
 * unless NULL. 0, ERR_VALIDATION for a malformed policy, ERR_NO_MEMORY. */
int timestamp_request(const struct sha256 *imprint, const char *policy, struct buf *out,
                      struct error *error) MUST_CHECK;
/* The same over a digest by any algorithm. */
int timestamp_request_over(const struct digest *imprint, const char *policy, struct buf *out,
                           struct error *error) MUST_CHECK;

/* The certificates between an authority's and a root, where they are not in its token: in DER, one
 * behind the other. */
#define TIMESTAMP_PATH_MAX 262144 /* bytes */
struct timestamp_path {
	struct slice known;   /* what the path may lead over, trusted for nothing; size 0: none */
	struct slice request; /* what the token answers, as it was kept; size 0: not known */
	struct buf *complete; /* NULL, or gets the verified path, from the authority's to the root */
	bool tolerant;        /* of the roots, as struct trust_roots has it */
};
/* Takes the first of them; false at the end, or where none is. */
bool timestamp_next_certificate(struct slice *rest, struct slice *ret_der);

/* Verifies a response against its request: status granted, imprint, nonce, policy (when asked for),
 * all of the above, and trust in `roots_pem` (must not be empty); what the time has to agree with
 * the caller knows. `path` may be NULL. Appends the token's own bytes to `token` unless NULL. 0,
 * ERR_INVALID_EVIDENCE, or ERR_VALIDATION for unusable roots, with the cause. */
int timestamp_verify_response(struct slice request, struct slice response, struct slice roots_pem,
                              const struct timestamp_path *path, struct buf *token,
                              struct timestamp_facts *ret_facts, struct error *error) MUST_CHECK;

/* The token inside a response, as it stands, unverified: for keeping and handing on. The slice
 * points into `response`. 0 or ERR_INVALID_EVIDENCE. */
int timestamp_response_token(struct slice response, struct slice *ret_token, struct error *error)
	MUST_CHECK;
/* BER may go on behind the token. Then the response is put together anew around it, in DER: what is
 * signed stays as it came. 0, ERR_INVALID_EVIDENCE or ERR_NO_MEMORY. */
int timestamp_response_end_with_token(struct buf *response, struct error *error) MUST_CHECK;

/* Verifies a bare token over an imprint, offline. roots_pem with NULL data: against the
 * certificates inside, integrity alone, and ret_facts->trusted is false. 0, or
 * ERR_INVALID_EVIDENCE, or ERR_VALIDATION for unusable roots. */
int timestamp_verify_token(struct slice token, const struct sha256 *imprint, struct slice roots_pem,
                           struct timestamp_facts *ret_facts, struct error *error) MUST_CHECK;
/* The same over a digest by any algorithm. A request that is known is a TimeStampReq in DER, to the
 * last byte and without extensions, with the token's imprint, its nonce, or none if it has none,
 * and no other policy. The certificates are judged as of judged_us too
 * when that is later than genTime (TIME_NONE never is): whether they still vouch for it then. */
int timestamp_verify_token_at(struct slice token, const struct digest *imprint,
                              struct slice roots_pem, const struct timestamp_path *path,
                              int64_t judged_us, struct timestamp_facts *ret_facts,
                              struct error *error) MUST_CHECK;
/* What a token says it is over, unverified. 0, ERR_NO_MEMORY or ERR_INVALID_EVIDENCE. */
int timestamp_token_imprint(struct slice token, struct digest *ret_imprint, struct error *error)
	MUST_CHECK;
/* The same where a path is known. */
int timestamp_verify_token_along(struct slice token, const struct sha256 *imprint,
                                 struct slice roots_pem, const struct timestamp_path *path,
                                 struct timestamp_facts *ret_facts, struct error *error) MUST_CHECK;

/* When the first certificate ends of those from its authority's up, as far as they are inside a
 * token or in `beside` (DER, one behind the other): until then it is good by itself. The rest is
 * unverified. 0, ERR_NO_MEMORY or ERR_INVALID_EVIDENCE. */
int timestamp_valid_until(struct slice token, struct slice beside, int64_t *ret_gen_time_us,
                          int64_t *ret_until_us, struct error *error) MUST_CHECK;

/* Appends the certificates from its authority's up, each one's issuer next, as far as they are
 * inside a token or in `beside`: unverified, and the same whomever one trusts. 0, ERR_NO_MEMORY or
 * ERR_INVALID_EVIDENCE. */
int timestamp_path_known(struct slice token, struct slice beside, struct buf *out,
                         struct error *error) MUST_CHECK;

/* Appends the path inside a token (certificate_path_inside): the same whomever one trusts. 0,
 * ERR_NO_MEMORY or ERR_INVALID_EVIDENCE. */
int timestamp_path_inside(struct slice token, struct buf *out, struct error *error) MUST_CHECK;

/* Appends those certificates of a path that are not inside the token. 0 or ERR_INVALID_EVIDENCE. */
int timestamp_path_beside(struct slice token, struct slice path, struct buf *out,
                          struct error *error) MUST_CHECK;
/* Appends the token as DER with all of `certificates` (a path's) inside: for a place where nothing
 * stands beside it, and its bytes are not digested. What its authority signed is the same. 0 or
 * ERR_INVALID_EVIDENCE. */
int timestamp_token_complete(struct slice token, struct slice certificates, struct buf *out,
                             struct error *error) MUST_CHECK;
/* The same with the CRLs and OCSP answers of the set, as the unsigned attribute revocation-values,
 * beside those that the token has there already.
 * ERR_TOO_LARGE: nobody would read a token of that size. */
struct validation_set;
int timestamp_token_add_revocations(struct slice token, const struct validation_set *set,
                                    struct buf *out, struct error *error) MUST_CHECK;

#endif
