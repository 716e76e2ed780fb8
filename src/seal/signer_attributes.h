/* What the report key signs, and nothing else. Inside src/seal only. */
#ifndef SEAL_SIGNER_ATTRIBUTES_H
#define SEAL_SIGNER_ATTRIBUTES_H

#include "base/buf.h"
#include "seal/certificate.h"

/* NULL when the bytes are, in DER, the signed attributes of a signature as cms_create makes them
 * by `certificate`; else what is wrong. */
const char *signer_attributes_problem(struct slice bytes, const X509 *certificate);

#endif
