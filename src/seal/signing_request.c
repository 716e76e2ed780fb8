#include "seal/signing_request.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/file.h"
#include "base/utf8.h"
#include "seal/certificate.h"
#include "seal/key_driver.h"

#define NAME_MAX_BYTES 64 /* the bound of O and CN (RFC 5280 appendix A) */

/* ---- the subject ---- */

static bool is_capital(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_plain(const char *text)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return false;
	return utf8_valid(slice_of(text));
}

const char *signing_subject_check_country(const char *text)
{
	return strlen(text) == 2 && is_capital(text[0]) && is_capital(text[1])
	           ? NULL
	           : "must be an ISO 3166-1 country code in capitals, such as ES";
}

const char *signing_subject_check_identifier(const char *text)
{
	size_t size = strlen(text);
	bool national = size > 3 && is_capital(text[0]) && is_capital(text[1]) && text[2] == ':';
	bool known = size > 3 && (strncmp(text, "VAT", 3) == 0 || strncmp(text, "NTR", 3) == 0 ||
	                          strncmp(text, "PSD", 3) == 0 || strncmp(text, "LEI", 3) == 0);
	bool good = (national || known) && size >= 7 && size <= NAME_MAX_BYTES && is_capital(text[3]) &&
	            is_capital(text[4]) && text[5] == '-' && is_plain(text) && !strchr(text, ' ');
	return good ? NULL
	            : "must be an identifier of ETSI EN 319 412-1: VAT, NTR, PSD, LEI or two letters "
	              "and a colon, then country, hyphen and number, such as VATES-B00000000";
}

const char *signing_subject_check_name(const char *text)
{
	return *text && strlen(text) <= NAME_MAX_BYTES && is_plain(text)
	           ? NULL
	           : "must have 1 to 64 bytes of UTF-8 without control characters";
}

int signing_request_check(const struct signing_subject *subject, struct error *error)
{
	const struct {
		const char *name, *what;
	} checks[] = {
		{"country", signing_subject_check_country(subject->country)},
		{"organization", signing_subject_check_name(subject->organization)},
		{"organization-id",
	     subject->identifier ? signing_subject_check_identifier(subject->identifier) : NULL},
		{"common-name",
	     subject->common_name ? signing_subject_check_name(subject->common_name) : NULL},
	};
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
		if (checks[i].what)
			return error_cause(error, ERR_VALIDATION, "--%s %s", checks[i].name, checks[i].what);
	return OK;
}

static bool add_name(X509_NAME *name, int nid, const char *text)
{
	return !text || X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8,
	                                           (const unsigned char *)text, -1, -1, 0) == 1;
}

static bool set_subject(X509_REQ *made, const struct signing_subject *subject)
{
	X509_NAME *name = X509_NAME_new();
	const char *common = subject->common_name ? subject->common_name : subject->organization;
	bool set = name && add_name(name, NID_countryName, subject->country) &&
	           add_name(name, NID_organizationName, subject->organization) &&
	           add_name(name, NID_organizationIdentifier, subject->identifier) &&
	           add_name(name, NID_commonName, common) && X509_REQ_set_subject_name(made, name) == 1;
	X509_NAME_free(name);
	return set;
}

/* ---- the key ---- */

bool signing_request_is_on_token(const char *key)
{
	return key_pkcs11_driver.takes(key);
}

bool signing_key_kind_parse(const char *text, enum signing_key_kind *ret)
{
	static const char *const names[SIGNING_KEY_KINDS] = {"p256", "rsa3072"};
	for (int i = 0; i < SIGNING_KEY_KINDS; i++)
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum signing_key_kind)i;
			return true;
		}
	return false;
}

/* Reads the passphrase of the request; "": none. The caller wipes it. */
static int read_passphrase(const struct signing_request *request,
                           char passphrase[KEY_PASSPHRASE_MAX + 1], struct error *error)
{
	*passphrase = '\0';
	return request->passphrase && *request->passphrase
	           ? key_read_passphrase(request->passphrase, passphrase, error)
	           : OK;
}

/* Creates the file exclusively, so that no key is overwritten. */
static int write_key(const char *path, struct slice pem, struct error *error)
{
	DESCRIPTOR_AUTO int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	if (file < 0)
		return file_fail(error, "creating", path);
	if (!file_write_all(file, pem) || !durable_sync_open(file)) {
		int result = file_fail(error, "writing", path);
		(void)unlink(path);
		return result;
	}
	return durable_sync_above(path, error);
}

int signing_request_make_key(const struct signing_request *request, bool *ret_made,
                             struct error *error)
{
	char passphrase[KEY_PASSPHRASE_MAX + 1];
	char *data;
	*ret_made = false;
	if (signing_request_is_on_token(request->key) || access(request->key, F_OK) == 0)
		return OK;
	int result = read_passphrase(request, passphrase, error);
	if (result)
		return result;
	EVP_PKEY *key = request->kind == SIGNING_KEY_RSA3072 ? EVP_RSA_gen(3072) : EVP_EC_gen("P-256");
	BIO *bio = BIO_new(BIO_s_secmem());
	int size = (int)strlen(passphrase);
	if (!key || !bio ||
	    PEM_write_bio_PKCS8PrivateKey(bio, key, size ? EVP_aes_256_cbc() : NULL,
	                                  size ? passphrase : NULL, size, NULL, NULL) != 1) {
		result = error_cause(error, ERR_INTERNAL, "making a key: %s", openssl_reason());
	} else {
		long written = BIO_get_mem_data(bio, &data);
		result = write_key(request->key, slice_make(data, (size_t)written), error);
	}
	OPENSSL_cleanse(passphrase, sizeof passphrase);
	BIO_free(bio);
	EVP_PKEY_free(key);
	*ret_made = !result;
	return result;
}

/* ---- the request ---- */

static bool add_usage(X509_REQ *made)
{
	STACK_OF(X509_EXTENSION) *list = sk_X509_EXTENSION_new_null();
	X509_EXTENSION *usage =
		X509V3_EXT_conf_nid(NULL, NULL, NID_key_usage, "critical,nonRepudiation");
	bool added = list && usage && sk_X509_EXTENSION_push(list, usage) > 0;
	if (!added)
		X509_EXTENSION_free(usage);
	added = added && X509_REQ_add_extensions(made, list) == 1;
	sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
	return added;
}

static void add_memory(BIO *bio, struct buf *out)
{
	char *data;
	long size = BIO_get_mem_data(bio, &data);
	buf_add(out, data, (size_t)size);
}

static int sign(const struct signing_request *request, EVP_PKEY *key, struct buf *out,
                struct error *error)
{
	X509_REQ *made = X509_REQ_new();
	BIO *bio = BIO_new(BIO_s_mem());
	int result = OK;
	bool good = made && bio && X509_REQ_set_version(made, X509_REQ_VERSION_1) == 1 &&
	            set_subject(made, &request->subject) && X509_REQ_set_pubkey(made, key) == 1 &&
	            add_usage(made) && X509_REQ_sign(made, key, EVP_sha256()) > 0 &&
	            X509_REQ_verify(made, X509_REQ_get0_pubkey(made)) == 1 &&
	            PEM_write_bio_X509_REQ(bio, made) == 1;
	if (good)
		add_memory(bio, out);
	else
		result = error_cause(error, ERR_REFUSED, "signing the request: %s", openssl_reason());
	X509_REQ_free(made);
	BIO_free(bio);
	return result ? result : buf_check(out);
}

/* Returns whether the service accepts signatures by such a key (key.h). */
static bool is_strong(const EVP_PKEY *key)
{
	char curve[64];
	int kind = EVP_PKEY_get_base_id(key);
	return kind == EVP_PKEY_RSA ? EVP_PKEY_get_bits(key) >= 3072
	                            : kind == EVP_PKEY_EC && EVP_PKEY_get_security_bits(key) >= 128 &&
	                                  EVP_PKEY_get_group_name(key, curve, sizeof curve, NULL) == 1;
}

int signing_request_write(const struct signing_request *request, struct buf *out,
                          struct error *error)
{
	const struct key_driver *driver =
		signing_request_is_on_token(request->key) ? &key_pkcs11_driver : &key_file_driver;
	const struct key_source source = {.key = request->key};
	char passphrase[KEY_PASSPHRASE_MAX + 1];
	CERTIFICATES_AUTO STACK_OF(X509) *own = NULL;
	void *handle = NULL;
	int result = signing_request_check(&request->subject, error);
	if (!result)
		result = read_passphrase(request, passphrase, error);
	if (result)
		return result;
	result = driver->open(&source, *passphrase ? passphrase : NULL, &handle, &own, error);
	OPENSSL_cleanse(passphrase, sizeof passphrase);
	if (result)
		return result;
	EVP_PKEY *key = driver->evp(handle);
	if (!is_strong(key))
		result = error_cause(error, ERR_REFUSED,
		                     "the key must be RSA of at least 3072 bits, or on a named curve such "
		                     "as P-256 or stronger");
	if (!result)
		result = sign(request, key, out, error);
	driver->close(handle);
	ERR_clear_error();
	return result;
}
