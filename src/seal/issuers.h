/* The certificates above an authority's, where it does not send them along: they are fetched from
 * where each certificate itself says that its issuer's can be had (RFC 5280 section 4.2.2.1,
 * caIssuers), over HTTP, as DER, PEM or certs-only PKCS#7, and kept. What is fetched is only used
 * when it issued the certificate below, and trusted for nothing. Thread safe. Inside src/seal only.
 */
#ifndef SEAL_ISSUERS_H
#define SEAL_ISSUERS_H

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"

#define ISSUERS_KEPT_MAX 32

struct issuers;

/* `guard` is copied. timeout_ms: for each request. NULL without memory. */
struct issuers *issuers_create(const struct address_guard *guard, int timeout_ms) MUST_CHECK;
void issuers_free(struct issuers *issuers); /* NULL-safe */

/* Appends to `known` (DER, one behind the other) what the path of the token's signer to a
 * self-issued certificate lacks in the token and in `roots_pem`. The token's signature is checked
 * before anything is asked. 0, or ERR_INVALID_EVIDENCE: the cause says whose certificate is missing
 * and where it was looked for; or ERR_VALIDATION for unusable roots, ERR_NO_MEMORY. */
int issuers_complete(struct issuers *issuers, struct slice token, struct slice roots_pem,
                     struct buf *known, struct error *error) MUST_CHECK;

/* Appends the certificates of an answer as PEM: DER, PEM or certs-only PKCS#7. 0, ERR_VALIDATION
 * when it is none of these, ERR_NO_MEMORY. */
int issuers_read(struct slice answer, struct buf *out, struct error *error) MUST_CHECK;

#endif
