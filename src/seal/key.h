/* Signing keys, whatever holds them: one contract, and a driver for each kind of holder
 * (key_driver.h). Inside src/seal only; called in the signing process, by one thread.
 *
 * A key that is open is fit: it and the first of its certificates belong together, which a trial
 * signature has shown; it is RSA of 3,072 bits or more, or of a named curve of 128 bits of security
 * or more; its certificate allows to sign documents; and its certificates are one path up to a
 * root. Whether their time has come, and is not over, is asked for apart: it changes by itself. */
#ifndef SEAL_KEY_H
#define SEAL_KEY_H

#include <openssl/x509.h>

#include "base/buf.h"
#include "base/confine.h"
#include "base/error.h"
#include "seal/key_source.h"

struct key;

/* Everything that needs a file, a module or a PIN happens here. ERR_REFUSED with the cause: it
 * cannot be used, or is not fit; ERR_PIN: what holds it refuses the PIN; ERR_IO, ERR_NO_MEMORY.
 * Files of keys and passphrases must be readable by their owner alone. */
int key_open(const struct key_source *source, struct key **ret_key, struct error *error) MUST_CHECK;
/* NULL-safe. */
void key_close(struct key *key);

/* Its own, then its issuers, each behind the one that it issued; the key's. */
const STACK_OF(X509) * key_certificates(const struct key *key);
/* The topmost certificate; NULL: it is no root, and the key is not open yet. */
X509 *key_root(const struct key *key);
/* ERR_UNAVAILABLE with the cause: one of its certificates is not valid yet, or not any more. */
int key_check_time(const struct key *key, int64_t now_us, struct error *error) MUST_CHECK;

/* Signs with SHA-256: appends an ECDSA-Sig-Value, or an RSA signature by PKCS#1 v1.5. What is
 * appended does verify by the key's certificate. ERR_UNAVAILABLE: the holder does not sign now, and
 * may later; ERR_NO_MEMORY. */
int key_sign(struct key *key, struct slice bytes, struct buf *out, struct error *error) MUST_CHECK;

/* The system calls that signing takes beyond base/confine.h's own. */
struct key_calls {
	const struct confine_call *calls;
	size_t count;
};
struct key_calls key_calls(const struct key *key);

#endif
