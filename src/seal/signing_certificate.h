/* The signed attribute signing-certificate (RFC 5035): ESSCertID, or ESSCertIDv2, of the signer's
 * certificate first, and of those above it as far as the signer names them. Inside src/seal only.
 */
#ifndef SEAL_SIGNING_CERTIFICATE_H
#define SEAL_SIGNING_CERTIFICATE_H

#include <stdbool.h>

#include "seal/signed_data.h"

/* Checks that the attribute names the first certificate of the path, and that all it names are on
 * the path. A path that was built without roots, or that ends at an anchor below one (`is_rooted`
 * false), may lack those above it that are named, as long as all of the path are named. 0,
 * ERR_INVALID_EVIDENCE, or ERR_NO_MEMORY. */
int signing_certificate_check(const SignerInfo *signer, const STACK_OF(X509) * path,
                              enum path_purpose purpose, bool is_rooted, struct error *error)
	MUST_CHECK;

#endif
