/* Check of the only content that the signing key signs. For src/seal only. */
#ifndef SEAL_SIGNER_ATTRIBUTES_H
#define SEAL_SIGNER_ATTRIBUTES_H

#include "base/buf.h"
#include "seal/certificate.h"

/* Returns NULL if the bytes are the DER signed attributes that cms_create writes for `certificate`,
 * otherwise an error message. */
const char *signer_attributes_problem(struct slice bytes, const X509 *certificate);

#endif
