/* The signed attribute signing-certificate (RFC 5035): ESSCertID or ESSCertIDv2 of the signer's
 * certificate first, optionally followed by its issuers. For src/seal only. */
#ifndef SEAL_SIGNING_CERTIFICATE_H
#define SEAL_SIGNING_CERTIFICATE_H

#include <stdbool.h>

#include "seal/signed_data.h"

/* Checks that the attribute names the first certificate of the path, and that all named
 * certificates are on the path. A path built without roots, or ending at an anchor that is not a
 * root (`is_rooted` false), may lack named certificates above its end if all of its own are named.
 * Returns 0, ERR_INVALID_EVIDENCE or ERR_NO_MEMORY. */
int signing_certificate_check(const SignerInfo *signer, const STACK_OF(X509) * path,
                              enum path_purpose purpose, bool is_rooted, struct error *error)
	MUST_CHECK;

#endif
