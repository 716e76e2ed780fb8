/* Fetches the issuers of an authority's certificate that its tokens lack, from the URLs in each
 * certificate (RFC 5280 section 4.2.2.1, caIssuers), over HTTP, as DER, PEM or certs-only PKCS#7,
 * and caches them. A fetched certificate is used only if it issued the one below it, and is never
 * trusted for that reason alone. Thread safe. For src/seal only. */
#ifndef SEAL_ISSUERS_H
#define SEAL_ISSUERS_H

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"

#define ISSUERS_CACHED_MAX 32

struct issuers;

/* Copies `guard`. timeout_ms applies per request. Returns NULL without memory. */
struct issuers *issuers_create(const struct address_guard *guard, int timeout_ms) MUST_CHECK;
void issuers_free(struct issuers *issuers); /* NULL-safe */

/* Appends to `known` (concatenated DER) the certificates between the token's signer and a
 * self-issued certificate that are neither in the token nor in `roots_pem`. Checks the token's
 * signature before any request. Returns 0; ERR_INVALID_EVIDENCE: the cause names the missing
 * certificate and the URLs tried; ERR_VALIDATION for unusable roots; ERR_NO_MEMORY. */
int issuers_complete(struct issuers *issuers, struct slice token, struct slice roots_pem,
                     struct buf *known, struct error *error) MUST_CHECK;

#endif
