/* Certificates: PEM in and out, names, and paths. Inside src/seal only. */
#ifndef SEAL_CERTIFICATE_H
#define SEAL_CERTIFICATE_H

#include <openssl/x509.h>

#include "base/buf.h"
#include "base/error.h"
#include "seal/timestamp.h"

#define CERTIFICATES_MAX 64 /* in one PEM text */

static inline void certificates_cleanup(STACK_OF(X509) **certificates)
{
	sk_X509_pop_free(*certificates, X509_free);
}
#define CERTIFICATES_AUTO __attribute__((cleanup(certificates_cleanup)))

/* What OpenSSL said last, or "unknown"; empties its queue. */
const char *openssl_reason(void);

/* All certificates of a PEM text, in order; other blocks are skipped. 0, or ERR_VALIDATION: none,
 * or one unreadable, or too many. */
int certificates_read(struct slice pem, STACK_OF(X509) **ret_certificates, struct error *error);
int certificates_write(const STACK_OF(X509) *certificates, struct buf *out);

/* RFC 2253, UTF-8, cut at a character's end. */
void certificate_subject(const X509 *certificate, char text[SUBJECT_SIZE]);

enum path_purpose { PATH_SIGNATURE, PATH_TIMESTAMP };

/* Builds and verifies the path of `signer`. roots NULL: up to the topmost of `inside`, which must
 * carry its own signature if it claims to be self-issued. Every certificate of `inside` must be on
 * the path. time_us TIME_NONE: now with roots, no time without. The path is the caller's. */
int certificate_path(X509 *signer, STACK_OF(X509) *inside, const STACK_OF(X509) *roots,
                     enum path_purpose purpose, int64_t time_us, STACK_OF(X509) **ret_path,
                     struct error *error);

#endif
