#include "seal/ed25519.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/file.h"
#include "base/pem.h"
#include "seal/certificate.h"
#include "seal/key_driver.h"

static int make_file(const char *path, struct error *error)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	BIO *bio = BIO_new(BIO_s_secmem());
	char *data;
	int result = OK;
	if (!key || !bio || PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1) {
		result = error_cause(error, ERR_INTERNAL, "making a key: %s", openssl_reason());
	} else {
		long size = BIO_get_mem_data(bio, &data);
		result = durable_replace(path, 0600, slice_make(data, (size_t)size), error);
	}
	BIO_free(bio);
	EVP_PKEY_free(key);
	return result;
}

static int read_file(const char *path, EVP_PKEY **ret_key, struct error *error)
{
	BUF_AUTO struct buf pem;
	buf_init(&pem, PEM_FILE_MAX);
	int result = key_read_secret(path, &pem, error);
	BIO *bio = !result ? BIO_new_mem_buf(pem.data, (int)pem.size) : NULL;
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, "") : NULL;
	BIO_free(bio);
	if (pem.data)
		OPENSSL_cleanse(pem.data, pem.size);
	ERR_clear_error();
	if (!result && (!key || EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519))
		result = error_cause(error, ERR_REFUSED, "%s has no Ed25519 key in PEM", path);
	if (result)
		EVP_PKEY_free(key);
	else
		*ret_key = key;
	return result;
}

int ed25519_open(const char *path, bool make, EVP_PKEY **ret_key, struct error *error)
{
	bool exists = access(path, F_OK) == 0;
	if (!exists && !make)
		return error_cause(error, ERR_NOT_FOUND, "%s does not exist", path);
	int result = exists ? OK : make_file(path, error);
	return result ? result : read_file(path, ret_key, error);
}

void ed25519_public(const EVP_PKEY *key, uint8_t ret_public[ED25519_KEY_SIZE])
{
	size_t size = ED25519_KEY_SIZE;
	int got = EVP_PKEY_get_raw_public_key(key, ret_public, &size);
	assert(got == 1 && size == ED25519_KEY_SIZE);
}

bool ed25519_sign(EVP_PKEY *key, struct slice message,
                  uint8_t ret_signature[ED25519_SIGNATURE_SIZE])
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t size = ED25519_SIGNATURE_SIZE;
	bool signed_ = context && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
	               EVP_DigestSign(context, ret_signature, &size,
	                              (const unsigned char *)message.data, message.size) == 1;
	EVP_MD_CTX_free(context);
	ERR_clear_error();
	return signed_ && size == ED25519_SIGNATURE_SIZE;
}
