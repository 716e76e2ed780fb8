/* Drivers for key holders, listed in key.c. For the drivers and key.c only.
 *
 * A driver for a remote service, for example the API of the Cloud Signature Consortium, would
 * request the signature in `sign`, recognize its URL in `takes`, and list in `calls` the socket
 * calls it needs after the process is confined. */
#ifndef SEAL_KEY_DRIVER_H
#define SEAL_KEY_DRIVER_H

#include <openssl/evp.h>

#include "seal/key.h"

#define KEY_PASSPHRASE_MAX 1024 /* bytes */

struct key_driver {
	/* Returns whether the driver handles the source. */
	bool (*takes)(const char *source);
	/* Opens the key. `passphrase` is NULL if none was given. *ret_certificates receives the
	 * holder's own certificates, the key's first; it stays NULL if the holder has none or the
	 * source gives a `chain`. Returns ERR_REFUSED, ERR_PIN, ERR_IO or ERR_NO_MEMORY with nothing
	 * allocated. */
	int (*open)(const struct key_source *source, const char *passphrase, void **ret_handle,
	            STACK_OF(X509) * *ret_certificates, struct error *error);
	/* As key_sign; the caller verifies the signature. */
	int (*sign)(void *handle, struct slice bytes, struct buf *out, struct error *error);
	/* Returns the key for OpenSSL; it belongs to the handle. */
	EVP_PKEY *(*evp)(void *handle);
	void (*close)(void *handle);
	struct key_calls calls;
};

extern const struct key_driver key_file_driver;
extern const struct key_driver key_pkcs11_driver;

/* Reads a secret file. Refuses a file that group or others may access, except that a credential's
 * group bits are ignored: they are the mask of its access control list. Appends to `out`, which the
 * caller wipes. */
int key_read_secret(const char *path, struct buf *out, struct error *error) MUST_CHECK;
/* Reads the first line of a secret file; the caller wipes it. */
int key_read_passphrase(const char *path, char passphrase[KEY_PASSPHRASE_MAX + 1],
                        struct error *error) MUST_CHECK;
/* Signs with an OpenSSL key. Returns false and leaves OpenSSL's error queue filled. */
bool key_sign_evp(EVP_PKEY *key, struct slice bytes, struct buf *out);

#endif
