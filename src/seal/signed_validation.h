/* Revocation data inside a SignedData: CRLs, and OCSP responses as RFC 5940 puts them there. The
 * certificates are inside already, the signer's beside its own, an authority's in its token. Inside
 * src/seal only. */
#ifndef SEAL_SIGNED_VALIDATION_H
#define SEAL_SIGNED_VALIDATION_H

#include "seal/signed_data.h"
#include "seal/validation.h"

/* Adds the set's revocation data, and raises the version where RFC 5652 section 5.1 wants that. 0,
 * ERR_CORRUPT for what is not DER, or ERR_NO_MEMORY. */
int signed_validation_add(SignedContent *content, const struct validation_set *set,
                          struct error *error) MUST_CHECK;
/* Adds what is inside to the set. 0, ERR_INVALID_EVIDENCE for revocation data of another form, an
 * object that is there twice or a place for them without any, or what validation_add answers. */
int signed_validation_read(const SignedContent *content, struct validation_set *set,
                           struct error *error) MUST_CHECK;
/* Whether some of it is of a form of its own, as OCSP responses are. */
bool signed_validation_has_other(const SignedContent *content);

#endif
