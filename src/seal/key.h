/* Signing keys: one interface, and a driver for each kind of key holder (key_driver.h). For
 * src/seal only; called in the signing process by one thread.
 *
 * An open key is fit for use. A trial signature has shown that it belongs to its first certificate.
 * It is RSA of at least 3,072 bits, or on a named curve of at least 128 bits of security. Its
 * certificate allows signing documents, and its certificates form one path to a root. Validity
 * periods are checked separately (key_check_time), since they depend on the time. */
#ifndef SEAL_KEY_H
#define SEAL_KEY_H

#include <openssl/x509.h>

#include "base/buf.h"
#include "base/confine.h"
#include "base/error.h"
#include "seal/key_source.h"

struct key;

/* Opens a key; all access to files, modules and PINs happens here. Key and passphrase files must be
 * readable by their owner only. ERR_REFUSED with the cause: unusable or not fit; ERR_PIN: the
 * holder rejected the PIN; ERR_IO, ERR_NO_MEMORY. */
int key_open(const struct key_source *source, struct key **ret_key, struct error *error) MUST_CHECK;
/* NULL-safe. */
void key_close(struct key *key);

/* Returns its certificate followed by its issuers, each after the certificate that it issued. Owned
 * by the key. */
const STACK_OF(X509) * key_certificates(const struct key *key);
/* Returns the topmost certificate; NULL: it is not a root, which only happens before key_open has
 * returned. */
X509 *key_root(const struct key *key);
/* Returns ERR_UNAVAILABLE with the cause when one of its certificates is not yet valid or has
 * expired. */
int key_check_time(const struct key *key, int64_t now_us, struct error *error) MUST_CHECK;

/* Signs with SHA-256: appends an ECDSA-Sig-Value or a PKCS#1 v1.5 RSA signature, after verifying it
 * with the key's certificate. ERR_UNAVAILABLE: the holder cannot sign now but may later;
 * ERR_NO_MEMORY. */
int key_sign(struct key *key, struct slice bytes, struct buf *out, struct error *error) MUST_CHECK;

/* The system calls that signing needs in addition to those of base/confine.h. */
struct key_calls {
	const struct confine_call *calls;
	size_t count;
};
struct key_calls key_calls(const struct key *key);

#endif
