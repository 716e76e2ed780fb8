#include "seal/key.h"

#include <fcntl.h>
#include <limits.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/pem.h"
#include "seal/certificate.h"
#include "seal/key_driver.h"

#define RSA_BITS_MIN 3072
#define SECURITY_BITS_MIN 128
#define SIGNATURE_MAX 4096 /* bytes; RSA of 16,384 bits needs 2,048 */

/* The last driver accepts every source: any path. */
static const struct key_driver *const drivers[] = {&key_pkcs11_driver, &key_file_driver};

struct key {
	const struct key_driver *driver;
	void *handle;
	STACK_OF(X509) * certificates;
};

/* ---- secrets in files ---- */

static bool is_credential(const char *path)
{
	const char *directory = getenv("CREDENTIALS_DIRECTORY");
	size_t size = directory ? strlen(directory) : 0;

	return size > 0 && strncmp(path, directory, size) == 0 && path[size] == '/';
}

int key_read_secret(const char *path, struct buf *out, struct error *error)
{
	/* If the supervisor grants access by an access control list, the group bits are its mask. */
	mode_t forbidden = is_credential(path) ? S_IRWXO : S_IRWXG | S_IRWXO;
	DESCRIPTOR_AUTO int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat found;

	if (file < 0 || fstat(file, &found) != 0)
		return file_fail(error, "opening", path);
	if (!S_ISREG(found.st_mode))
		return error_cause(error, ERR_REFUSED, "%s is not a regular file", path);
	if (found.st_mode & forbidden)
		return error_cause(error, ERR_REFUSED,
		                   "%s is accessible to users other than its owner (mode %04o): run chmod "
		                   "0400 %s",
		                   path, (unsigned)found.st_mode & 07777, path);
	if (found.st_size < 0 || (uint64_t)found.st_size > out->limit)
		return error_cause(error, ERR_REFUSED, "%s is too large", path);
	char *room = buf_extend(out, (size_t)found.st_size);
	if (!room)
		return ERR_NO_MEMORY;
	for (size_t done = 0; done < (size_t)found.st_size;) {
		ssize_t size = read(file, room + done, (size_t)found.st_size - done);
		if (size <= 0)
			return file_fail(error, "reading", path);
		done += (size_t)size;
	}
	return OK;
}

static int secret_path(const char *name, char path[PATH_MAX], struct error *error)
{
	const char *directory = getenv("CREDENTIALS_DIRECTORY");
	bool credential = !strchr(name, '/');

	if (credential && !directory)
		return error_cause(error, ERR_REFUSED,
		                   "%s names a credential, but the supervisor provides none; give a path "
		                   "instead",
		                   name);
	int size = credential ? snprintf(path, PATH_MAX, "%s/%s", directory, name)
	                      : snprintf(path, PATH_MAX, "%s", name);
	return size < PATH_MAX ? OK : error_cause(error, ERR_REFUSED, "%s: path too long", name);
}

int key_read_passphrase(const char *path, char passphrase[KEY_PASSPHRASE_MAX + 1],
                        struct error *error)
{
	char found[PATH_MAX];
	struct buf text;

	buf_init(&text, KEY_PASSPHRASE_MAX + 2);
	int result = secret_path(path, found, error);
	if (!result)
		result = key_read_secret(found, &text, error);
	size_t size = !result && text.data ? strcspn(text.data, "\r\n") : 0;
	if (!result && (size == 0 || size > KEY_PASSPHRASE_MAX))
		result = error_cause(error, ERR_REFUSED,
		                     "%s: the first line is empty or too long for a passphrase", found);
	if (!result)
		snprintf(passphrase, KEY_PASSPHRASE_MAX + 1, "%.*s", (int)size, text.data);
	if (text.data)
		OPENSSL_cleanse(text.data, text.size);
	buf_free(&text);
	return result;
}

/* ---- certificates ---- */

static int read_certificates(const char *path, STACK_OF(X509) * *ret, struct error *error)
{
	BUF_AUTO struct buf pem;

	buf_init(&pem, PEM_FILE_MAX);
	int result = file_read_whole(path, &pem, error);
	if (!result)
		result = certificates_read(buf_slice(&pem), ret, error);
	const char *fault = result == ERR_VALIDATION ? pem_certificates_fault(buf_slice(&pem)) : NULL;
	if (result == ERR_VALIDATION)
		return error_cause(error, ERR_REFUSED, "%s: no certificates: the file %s", path,
		                   fault ? fault : "has an unreadable one, or more than 64");
	return result;
}

static int add_root(const char *path, STACK_OF(X509) * certificates, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *more = NULL;

	int result = path ? read_certificates(path, &more, error) : OK;
	while (!result && more && sk_X509_num(more) > 0) {
		X509 *certificate = sk_X509_value(more, 0);
		if (!sk_X509_push(certificates, certificate))
			return ERR_NO_MEMORY;
		(void)sk_X509_shift(more);
	}
	return result;
}

/* Takes ownership of `own`. */
static int collect_certificates(const struct key_source *source, STACK_OF(X509) * own,
                                struct key *key, struct error *error)
{
	int result = OK;

	key->certificates = own;
	if (source->chain && *source->chain) {
		certificates_cleanup(&key->certificates);
		key->certificates = NULL;
		result = read_certificates(source->chain, &key->certificates, error);
	} else if (!own) {
		return error_cause(error, ERR_REFUSED, "%s contains no certificate: set signer.chain",
		                   source->key);
	}
	return result ? result : add_root(source->root, key->certificates, error);
}

/* Sorts the certificates in path order. Verifiers reject signatures by other kinds of certificates.
 * Validity periods are checked separately. */
static int order(struct key *key, struct error *error)
{
	STACK_OF(X509) *path = NULL;

	int result = certificate_path(sk_X509_value(key->certificates, 0), key->certificates, NULL,
	                              false, PATH_SIGNATURE, TIME_NONE, &path, error);
	if (!result) {
		certificates_cleanup(&key->certificates);
		key->certificates = path;
	}
	return result == ERR_INVALID_EVIDENCE ? ERR_REFUSED : result;
}

/* A verifier that trusts only the root needs the complete path in the signed document. */
static int check_leads_to_root(const struct key_source *source, const struct key *key,
                               struct error *error)
{
	const STACK_OF(X509) *path = key->certificates;
	char name[SUBJECT_SIZE];

	if (key_root(key))
		return OK;
	if (!certificate_name(X509_get_issuer_name(sk_X509_value(path, sk_X509_num(path) - 1)), name,
	                      sizeof name))
		return ERR_NO_MEMORY;
	bool own = !source->chain || !*source->chain;
	return error_cause(error, ERR_REFUSED,
	                   "%s does not lead to a root: the certificate of %s is missing, %s",
	                   own ? source->key : source->chain, name,
	                   own ? "set signer.chain to it and its issuers" : "add it and its issuers");
}

static bool is_strong_curve(const EVP_PKEY *key)
{
	char name[64];

	return EVP_PKEY_get_group_name(key, name, sizeof name, NULL) == 1 &&
	       EVP_PKEY_get_security_bits(key) >= SECURITY_BITS_MIN;
}

static int check_strength(const struct key_source *source, X509 *certificate, struct error *error)
{
	const EVP_PKEY *key = X509_get0_pubkey(certificate);

	switch (key ? EVP_PKEY_get_base_id(key) : NID_undef) {
	case EVP_PKEY_RSA:
		if (EVP_PKEY_get_bits(key) >= RSA_BITS_MIN)
			return OK;
		return error_cause(error, ERR_REFUSED,
		                   "%s is an RSA key of %d bits; it must have at least %d", source->key,
		                   EVP_PKEY_get_bits(key), RSA_BITS_MIN);
	case EVP_PKEY_EC:
		if (is_strong_curve(key))
			return OK;
		return error_cause(error, ERR_REFUSED,
		                   "%s is on a curve weaker than P-256, or on an unnamed curve",
		                   source->key);
	default:
		return error_cause(error, ERR_REFUSED, "%s: neither an EC nor an RSA key", source->key);
	}
}

X509 *key_root(const struct key *key)
{
	X509 *top = sk_X509_value(key->certificates, sk_X509_num(key->certificates) - 1);

	return X509_get_extension_flags(top) & EXFLAG_SS ? top : NULL;
}

const STACK_OF(X509) * key_certificates(const struct key *key)
{
	return key->certificates;
}

int key_check_time(const struct key *key, int64_t now_us, struct error *error)
{
	for (int i = 0; i < sk_X509_num(key->certificates); i++) {
		struct certificate_facts facts;
		char text[TIME_TEXT_SIZE];
		int result = certificate_describe(sk_X509_value(key->certificates, i), &facts, error);
		if (result)
			return result;
		bool early = now_us < facts.not_before_us;
		if (!early && now_us <= facts.not_after_us)
			continue;
		time_format(early ? facts.not_before_us : facts.not_after_us, text);
		return error_cause(error, ERR_UNAVAILABLE, "the certificate of %.200s %s %s", facts.subject,
		                   early ? "is not valid before" : "has expired on", text);
	}
	return OK;
}

/* ---- signing ---- */

bool key_sign_evp(EVP_PKEY *key, struct slice bytes, struct buf *out)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	const unsigned char *data = (const unsigned char *)bytes.data;
	size_t size = 0;
	bool ready = context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
	             EVP_DigestSign(context, NULL, &size, data, bytes.size) == 1;
	unsigned char *signature = ready ? (unsigned char *)buf_extend(out, size) : NULL;
	size_t room = size;
	bool signed_well =
		signature && EVP_DigestSign(context, signature, &size, data, bytes.size) == 1;

	EVP_MD_CTX_free(context);
	if (signature)
		out->size -= signed_well ? room - size
		                         : room; /* ECDSA signatures are often shorter than their bound */
	return signed_well;
}

static bool verifies(const struct key *key, struct slice bytes, struct slice signature)
{
	EVP_PKEY *public_key = X509_get0_pubkey(sk_X509_value(key->certificates, 0));
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool good = context &&
	            EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, public_key) == 1 &&
	            EVP_DigestVerify(context, (const unsigned char *)signature.data, signature.size,
	                             (const unsigned char *)bytes.data, bytes.size) == 1;

	EVP_MD_CTX_free(context);
	ERR_clear_error();
	return good;
}

/* Verifies the signature, since otherwise a signature by a wrong key would only be noticed by a
 * verifier much later. */
int key_sign(struct key *key, struct slice bytes, struct buf *out, struct error *error)
{
	BUF_AUTO struct buf signature;

	buf_init(&signature, SIGNATURE_MAX);
	int result = key->driver->sign(key->handle, bytes, &signature, error);
	if (!result)
		result = buf_check(&signature);
	if (result)
		return result;
	if (!verifies(key, bytes, buf_slice(&signature)))
		return error_cause(error, ERR_UNAVAILABLE,
		                   "the signature does not verify with the key's certificate");
	buf_add_slice(out, buf_slice(&signature));
	return buf_check(out);
}

struct key_calls key_calls(const struct key *key)
{
	return key->driver->calls;
}

/* ---- opening ---- */

static const struct key_driver *find_driver(const char *source)
{
	size_t i = 0;

	while (!drivers[i]->takes(source))
		i++;
	return drivers[i];
}

/* Makes a trial signature. It detects a key and certificate that do not match, and a holder that
 * lists the key but refuses its use. It also makes libraries read the files that they need
 * for their first signature. */
static int try_key(struct key *key, const struct key_source *source, struct error *error)
{
	BUF_AUTO struct buf signature;
	static const char trial[] = "a trial at start";

	buf_init(&signature, SIGNATURE_MAX);
	int result = key->driver->sign(key->handle, slice_of(trial), &signature, error);
	if (result == ERR_UNAVAILABLE)
		return ERR_REFUSED;
	if (result || verifies(key, slice_of(trial), buf_slice(&signature)))
		return result;
	bool own = !source->chain || !*source->chain;
	return error_cause(error, ERR_REFUSED,
	                   "the first certificate in %.200s does not belong to the key in %.200s; the "
	                   "key's own certificate must come first, then its issuers",
	                   own ? source->key : source->chain, source->key);
}

int key_open(const struct key_source *source, struct key **ret_key, struct error *error)
{
	char passphrase[KEY_PASSPHRASE_MAX + 1] = "";
	bool locked = source->passphrase && *source->passphrase;
	STACK_OF(X509) *own = NULL;
	int result = locked ? key_read_passphrase(source->passphrase, passphrase, error) : OK;
	struct key *key = !result ? calloc(1, sizeof *key) : NULL;

	if (!result && !key)
		result = ERR_NO_MEMORY;
	if (!result) {
		key->driver = find_driver(source->key);
		result = key->driver->open(source, locked ? passphrase : NULL, &key->handle, &own, error);
	}
	OPENSSL_cleanse(passphrase, sizeof passphrase);
	if (!result)
		result = collect_certificates(source, own, key, error);
	if (!result)
		result = check_strength(source, sk_X509_value(key->certificates, 0), error);
	if (!result)
		result = try_key(key, source, error);
	if (!result)
		result = order(key, error);
	if (!result)
		result = check_leads_to_root(source, key, error);
	ERR_clear_error();
	if (result) {
		key_close(key);
		return result;
	}
	*ret_key = key;
	return OK;
}

void key_close(struct key *key)
{
	if (!key)
		return;
	if (key->handle)
		key->driver->close(key->handle);
	certificates_cleanup(&key->certificates);
	free(key);
}
