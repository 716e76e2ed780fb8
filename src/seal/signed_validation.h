/* Revocation data inside a SignedData: CRLs, and OCSP responses as specified by RFC 5940. The
 * certificates are inside already: the issuers of the signer next to its own, those of the
 * authority in its token. For src/seal only. */
#ifndef SEAL_SIGNED_VALIDATION_H
#define SEAL_SIGNED_VALIDATION_H

#include "seal/signed_data.h"
#include "seal/validation_set.h"

/* Adds the set's revocation data and raises the version if RFC 5652 section 5.1 requires it.
 * Returns 0, ERR_CORRUPT for data that is not DER, or ERR_NO_MEMORY. */
int signed_validation_add(SignedContent *content, const struct validation_set *set,
                          struct error *error) MUST_CHECK;
/* Adds the revocation data inside to the set. Returns 0, ERR_INVALID_EVIDENCE for data of another
 * format, a duplicate or an empty list, or the error of validation_set_add. */
int signed_validation_read(const SignedContent *content, struct validation_set *set,
                           struct error *error) MUST_CHECK;
/* Returns whether some of it has the alternative `other`, as OCSP responses have. */
bool signed_validation_has_other(const SignedContent *content);

#endif
