/* Keys in files: PEM, plain or encrypted, and PKCS#12. */
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>

#include "seal/certificate.h"
#include "seal/key_driver.h"

static bool takes(const char *source)
{
	(void)source;
	return true;
}

/* Passphrase callback that never prompts on a terminal. */
static int give_passphrase(char *text, int size, int writing, void *context)
{
	const char *passphrase = context;
	size_t length = passphrase ? strlen(passphrase) : 0;

	(void)writing;
	if (length == 0 || size < 0 || length > (size_t)size)
		return -1;
	memcpy(text, passphrase, length);
	return (int)length;
}

static int refuse(const char *path, const char *passphrase, struct error *error)
{
	unsigned long last = ERR_peek_last_error();
	bool unlocking = ERR_GET_REASON(last) == PEM_R_BAD_PASSWORD_READ ||
	                 ERR_GET_REASON(last) == PKCS12_R_MAC_VERIFY_FAILURE;

	if (unlocking && !passphrase)
		return error_cause(error, ERR_REFUSED, "%s is encrypted: set signer.passphrase_file", path);
	return error_cause(error, ERR_REFUSED, "%s: no usable private key%s: %s", path,
	                   passphrase ? " (or wrong passphrase)" : "", openssl_reason());
}

static int read_pem(const struct key_source *source, struct slice text, const char *passphrase,
                    EVP_PKEY **ret_key, STACK_OF(X509) * *ret_certificates, struct error *error)
{
	BIO *bio = BIO_new_mem_buf(text.data, (int)text.size);
	bool chain_elsewhere = source->chain && *source->chain;

	if (!bio)
		return ERR_NO_MEMORY;
	ERR_clear_error();
	*ret_key = PEM_read_bio_PrivateKey(bio, NULL, give_passphrase, (void *)passphrase);
	BIO_free(bio);
	if (!*ret_key)
		return refuse(source->key, passphrase, error);
	int result = chain_elsewhere ? OK : certificates_read(text, ret_certificates, NULL);
	return result == ERR_VALIDATION
	           ? OK
	           : result; /* no certificate in the file; the caller reports it if needed */
}

/* Puts the key's certificate before its issuers. */
static int read_pkcs12(const struct key_source *source, PKCS12 *bag, const char *passphrase,
                       EVP_PKEY **ret_key, STACK_OF(X509) * *ret_certificates, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *others = NULL;
	X509 *own = NULL;

	ERR_clear_error();
	if (PKCS12_parse(bag, passphrase, ret_key, &own, &others) != 1 || !*ret_key) {
		X509_free(own);
		return refuse(source->key, passphrase, error);
	}
	if (!own || (source->chain && *source->chain)) {
		X509_free(own);
		return OK;
	}
	if (!others)
		others = sk_X509_new_null();
	if (!others || !sk_X509_unshift(others, own)) {
		X509_free(own);
		return ERR_NO_MEMORY;
	}
	*ret_certificates = others;
	others = NULL;
	return OK;
}

static int read_key(const struct key_source *source, struct slice content, const char *passphrase,
                    EVP_PKEY **ret_key, STACK_OF(X509) * *ret_certificates, struct error *error)
{
	const unsigned char *at = (const unsigned char *)content.data;
	PKCS12 *bag = memmem(content.data, content.size, "-----BEGIN", 10)
	                  ? NULL
	                  : d2i_PKCS12(NULL, &at, (long)content.size);
	int result = bag ? read_pkcs12(source, bag, passphrase, ret_key, ret_certificates, error)
	                 : read_pem(source, content, passphrase, ret_key, ret_certificates, error);

	PKCS12_free(bag);
	return result;
}

static void close_key(void *handle)
{
	EVP_PKEY_free(handle);
}

static int open_key(const struct key_source *source, const char *passphrase, void **ret_handle,
                    STACK_OF(X509) * *ret_certificates, struct error *error)
{
	struct buf content;
	EVP_PKEY *key = NULL;

	buf_init(&content, PEM_FILE_MAX);
	int result = key_read_secret(source->key, &content, error);
	if (!result)
		result = read_key(source, buf_slice(&content), passphrase, &key, ret_certificates, error);
	if (content.data)
		OPENSSL_cleanse(content.data, content.size);
	buf_free(&content);
	if (result)
		EVP_PKEY_free(key);
	else
		*ret_handle = key;
	return result;
}

static int sign(void *handle, struct slice bytes, struct buf *out, struct error *error)
{
	if (key_sign_evp(handle, bytes, out))
		return OK;
	return error_cause(error, ERR_UNAVAILABLE, "the key failed to sign: %s", openssl_reason());
}

static EVP_PKEY *evp(void *handle)
{
	return handle;
}

const struct key_driver key_file_driver = {
	.takes = takes,
	.open = open_key,
	.sign = sign,
	.evp = evp,
	.close = close_key,
};
