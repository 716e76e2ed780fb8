/* What holds signing keys has a driver, named in key.c. Inside the drivers and key.c only.
 *
 * A driver for a service elsewhere (the API of the Cloud Signature Consortium, say) asks it for the
 * signature in `sign`, takes its address in `takes`, and needs sockets after the process has been
 * confined: `calls`. */
#ifndef SEAL_KEY_DRIVER_H
#define SEAL_KEY_DRIVER_H

#include <openssl/evp.h>

#include "seal/key.h"

#define KEY_PASSPHRASE_MAX 1024 /* bytes */

struct key_driver {
	/* Whether a source is of its kind. */
	bool (*takes)(const char *source);
	/* `passphrase` is NULL when none was given. *ret_certificates is what the holder has of its own
	 * accord, the key's first; it stays NULL where it has none, or `chain` of the source is given.
	 * ERR_REFUSED, ERR_PIN, ERR_IO or ERR_NO_MEMORY, with nothing held. */
	int (*open)(const struct key_source *source, const char *passphrase, void **ret_handle,
	            STACK_OF(X509) * *ret_certificates, struct error *error);
	/* As key_sign; nobody has looked at the signature yet. */
	int (*sign)(void *handle, struct slice bytes, struct buf *out, struct error *error);
	void (*close)(void *handle);
	struct key_calls calls;
};

extern const struct key_driver key_file_driver;
extern const struct key_driver key_pkcs11_driver;

/* Reads what only its owner may read: a file that its group or others may use in any way is
 * refused, unless the group's rights are the mask of a credential's access control list. Replaces
 * nothing in `out`, which the caller wipes. */
int key_read_secret(const char *path, struct buf *out, struct error *error) MUST_CHECK;
/* The first line of a secret file; the caller wipes it. */
int key_read_passphrase(const char *path, char passphrase[KEY_PASSPHRASE_MAX + 1],
                        struct error *error) MUST_CHECK;
/* Signs with a key of OpenSSL's. False with its queue of errors. */
bool key_sign_evp(EVP_PKEY *key, struct slice bytes, struct buf *out);

#endif
