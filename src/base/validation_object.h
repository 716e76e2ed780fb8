/* Object that helps to validate a signature or a timestamp: a certificate, a CRL (RFC 5280) or an
 * OCSP response (RFC 6960). */
#ifndef BASE_VALIDATION_OBJECT_H
#define BASE_VALIDATION_OBJECT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/must_check.h"

enum validation_kind { VALIDATION_CERTIFICATE, VALIDATION_CRL, VALIDATION_OCSP };

/* Convert to and from "certificate", "crl" and "ocsp". */
const char *validation_kind_text(enum validation_kind kind);
bool validation_kind_parse(struct slice text, enum validation_kind *ret_kind) MUST_CHECK;

struct validation_object {
	enum validation_kind kind;
	struct sha256 sha256; /* of its DER */
	struct slice der;     /* for OCSP, a complete OCSPResponse */
};

#endif
