/* Ed25519 keys (RFC 8032) in PEM files (PKCS#8, RFC 8410), for what is not signed with
 * certificates: receipts, checkpoints of the log, and cosignatures of a witness. */
#ifndef SEAL_ED25519_H
#define SEAL_ED25519_H

#include <openssl/evp.h>

#include "base/error.h"
#include "base/buf.h"

#define ED25519_KEY_SIZE 32
#define ED25519_SIGNATURE_SIZE 64

/* Reads the key of a file that only its owner may read. If there is no file and `make` is set,
 * makes a key and the file (0600), durably. ERR_NOT_FOUND: no file; ERR_REFUSED: another kind of
 * key, or readable by others; ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY. */
int ed25519_open(const char *path, bool make, EVP_PKEY **ret_key, struct error *error) MUST_CHECK;
void ed25519_public(const EVP_PKEY *key, uint8_t ret_public[ED25519_KEY_SIZE]);
/* Returns false if there is no memory. */
bool ed25519_sign(EVP_PKEY *key, struct slice message,
                  uint8_t ret_signature[ED25519_SIGNATURE_SIZE]) MUST_CHECK;

#endif
