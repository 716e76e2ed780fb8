/* The OCSP responder of the development authorities (RFC 6960), built into the signing process. The
 * keys of the roots are forgotten; what remains is a key that each of them certified for this, and
 * it answers for the one certificate that the root issued besides: good, as of now. Inside src/seal
 * only. */
#ifndef SEAL_RESPONDER_H
#define SEAL_RESPONDER_H

#include <openssl/x509.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "seal/development.h"

/* The place that development certificates name. Nobody else finds anything there (RFC 6761 section
 * 6.4): who asks through revocation_client asks the signing process. */
#define RESPONDER_URL "http://ocsp.constancia.invalid/"
#define RESPONDER_REQUEST_MAX 4096
#define RESPONDER_CURRENT_S 86400L /* from thisUpdate to nextUpdate */

/* Zeroed: it answers for nobody. */
struct responder {
	struct responder_pair {
		X509 *issuer;
		X509 *subject;
		X509 *certificate; /* the responder's own */
		EVP_PKEY *key;
	} pairs[DEVELOPMENT_KINDS];
};

/* From what development_create made in the directory. Tries its keys, so that nothing has to be
 * opened later. 0, ERR_IO, ERR_REFUSED, ERR_NO_MEMORY. */
int responder_load(const char *directory, struct responder *ret_responder, struct error *error)
	MUST_CHECK;

/* Appends the DER OCSPResponse to a DER OCSPRequest about one certificate; `ret_signed` gets the
 * digest of what was signed. ERR_REFUSED: it is no such request, or about another issuer;
 * ERR_NO_MEMORY. */
int responder_answer(const struct responder *responder, struct slice request, struct buf *out,
                     struct sha256 *ret_signed, struct error *error) MUST_CHECK;

#endif
