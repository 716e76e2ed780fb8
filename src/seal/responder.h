/* OCSP responder (RFC 6960) of the development authorities, part of the signing process. The
 * private keys of the roots are discarded; each root certified a responder key, which answers for
 * the other certificate that the root issued: good, as of now. For src/seal only. */
#ifndef SEAL_RESPONDER_H
#define SEAL_RESPONDER_H

#include <openssl/x509.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "seal/development.h"

/* URL in development certificates. It resolves nowhere (RFC 6761 section 6.4); revocation_client
 * sends such requests to the signing process. */
#define RESPONDER_URL "http://ocsp.constancia.invalid/"
#define RESPONDER_REQUEST_MAX 4096
#define RESPONDER_CURRENT_S 86400L /* from thisUpdate to nextUpdate */

/* Zeroed: answers no request. */
struct responder {
	struct responder_pair {
		X509 *issuer;
		X509 *subject;
		X509 *certificate; /* the responder's own */
		EVP_PKEY *key;
	} pairs[DEVELOPMENT_KINDS];
};

/* Loads the files that development_create made in the directory. Uses each key once, so that no
 * file has to be opened later. Returns 0, ERR_IO, ERR_REFUSED or ERR_NO_MEMORY. */
int responder_load(const char *directory, struct responder *ret_responder, struct error *error)
	MUST_CHECK;

/* Appends the DER OCSPResponse to a DER OCSPRequest about one certificate; `ret_signed` receives
 * the digest of the signed ResponseData. ERR_REFUSED: not such a request, or about another issuer;
 * ERR_NO_MEMORY. */
int responder_answer(const struct responder *responder, struct slice request, struct buf *out,
                     struct sha256 *ret_signed, struct error *error) MUST_CHECK;

#endif
