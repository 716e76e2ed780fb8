#include "seal/development.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/durable.h"
#include "base/file.h"
#include "seal/certificate.h"
#include "seal/responder.h"

#define DAY_SECONDS 86400L
#define ROOT_DAYS 7300
#define SIGNER_DAYS 3650

struct issued {
	X509 *certificate;
	EVP_PKEY *key;
};

struct extension {
	int nid;
	const char *value;
};

const struct development_names development_names[DEVELOPMENT_KINDS] = {
	[DEVELOPMENT_REPORT] = {"report-root.pem", "report.pem", "report-responder.pem",
                            "report-former-roots.pem"},
	[DEVELOPMENT_TIMESTAMP] = {"timestamp-root.pem", "timestamp.pem", "timestamp-responder.pem",
                               "timestamp-former-roots.pem"},
};

static const struct extension root_extensions[] = {
	{NID_basic_constraints, "critical,CA:TRUE"},
	{NID_key_usage, "critical,keyCertSign,cRLSign"},
	{NID_subject_key_identifier, "hash"},
	{NID_authority_key_identifier, "keyid:always"},
	{0, NULL},
};

static const struct extension report_extensions[] = {
	{NID_basic_constraints, "critical,CA:FALSE"},
	{NID_key_usage, "critical,digitalSignature,nonRepudiation"},
	{NID_subject_key_identifier, "hash"},
	{NID_authority_key_identifier, "keyid:always"},
	{NID_info_access, "OCSP;URI:" RESPONDER_URL},
	{0, NULL},
};

static const struct extension timestamp_extensions[] = {
	{NID_basic_constraints, "critical,CA:FALSE"},
	{NID_key_usage, "critical,digitalSignature"},
	{NID_ext_key_usage, "critical,timeStamping"},
	{NID_subject_key_identifier, "hash"},
	{NID_authority_key_identifier, "keyid:always"},
	{NID_info_access, "OCSP;URI:" RESPONDER_URL},
	{0, NULL},
};

/* Its key is stored next to the signer's key, so that a revocation check of the responder would add
 * nothing. */
static const struct extension responder_extensions[] = {
	{NID_basic_constraints, "critical,CA:FALSE"},
	{NID_key_usage, "critical,digitalSignature"},
	{NID_ext_key_usage, "OCSPSigning"},
	{NID_id_pkix_OCSP_noCheck, "NULL"},
	{NID_subject_key_identifier, "hash"},
	{NID_authority_key_identifier, "keyid:always"},
	{0, NULL},
};

static void issued_cleanup(struct issued *issued)
{
	X509_free(issued->certificate);
	EVP_PKEY_free(issued->key);
}

static bool set_serial(X509 *certificate)
{
	unsigned char bytes[16];

	random_bytes(bytes, sizeof bytes);
	bytes[0] = (bytes[0] & 0x7f) | 0x40;
	BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
	bool set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
	BN_free(number);
	return set;
}

static bool add_name(X509_NAME *name, const char *field, const char *text)
{
	return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, (const unsigned char *)text, -1,
	                                  -1, 0) == 1;
}

static bool add_extensions(X509 *certificate, X509 *issuer, const struct extension *extensions)
{
	X509V3_CTX context;

	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	for (; extensions->value; extensions++) {
		X509_EXTENSION *extension =
			X509V3_EXT_conf_nid(NULL, &context, extensions->nid, extensions->value);
		bool added = extension && X509_add_ext(certificate, extension, -1) == 1;
		X509_EXTENSION_free(extension);
		if (!added)
			return false;
	}
	return true;
}

/* `issuer` NULL: self-signed. */
static bool issue(const char *common_name, int days, const struct extension *extensions,
                  const struct issued *issuer, struct issued *issued)
{
	issued->key = EVP_EC_gen("P-256");
	issued->certificate = X509_new();
	X509 *certificate = issued->certificate;
	if (!issued->key || !certificate)
		return false;
	X509 *above = issuer ? issuer->certificate : certificate;
	EVP_PKEY *signing_key = issuer ? issuer->key : issued->key;
	X509_NAME *name = X509_get_subject_name(certificate);
	return X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
	       X509_set_pubkey(certificate, issued->key) == 1 &&
	       X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY_SECONDS) &&
	       X509_gmtime_adj(X509_getm_notAfter(certificate), days * DAY_SECONDS) &&
	       add_name(name, "O", "Constancia development, no legal value") &&
	       add_name(name, "CN", common_name) &&
	       X509_set_issuer_name(certificate, X509_get_subject_name(above)) == 1 &&
	       add_extensions(certificate, above, extensions) &&
	       X509_sign(certificate, signing_key, EVP_sha256()) > 0;
}

/* `key` NULL: writes the certificate only. */
static int write_pem(const char *directory, const char *name, X509 *certificate, EVP_PKEY *key,
                     struct error *error)
{
	BIO *bio = BIO_new(BIO_s_secmem());
	char path[PATH_MAX];
	char *data;
	int result = ERR_INTERNAL;

	if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path)
		result = error_cause(error, ERR_IO, "path too long");
	else if (bio && PEM_write_bio_X509(bio, certificate) == 1 &&
	         (!key || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1)) {
		long size = BIO_get_mem_data(bio, &data);
		result = durable_replace(path, 0600, slice_make(data, (size_t)size), error);
	}
	BIO_free(bio);
	return result;
}

static bool exists(const char *directory, const char *name)
{
	char path[PATH_MAX];

	return (size_t)snprintf(path, sizeof path, "%s/%s", directory, name) < sizeof path &&
	       access(path, F_OK) == 0;
}

/* Returns 0 also if the file is absent. */
static int append_file(const char *directory, const char *name, struct buf *out,
                       struct error *error)
{
	char path[PATH_MAX];

	if (!exists(directory, name))
		return OK;
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return file_read_whole(path, out, error);
}

int development_append_former_roots(const char *directory, const struct development_names *names,
                                    struct buf *out, struct error *error)
{
	return append_file(directory, names->former_roots, out, error);
}

/* Moves a root to the former roots. Its key was discarded, so it cannot certify a responder and is
 * replaced. */
static int retire_root(const char *directory, const struct development_names *names,
                       struct error *error)
{
	BUF_AUTO struct buf roots;
	char path[PATH_MAX];

	buf_init(&roots, PEM_FILE_MAX);
	int result = development_append_former_roots(directory, names, &roots, error);
	if (!result)
		result = append_file(directory, names->root, &roots, error);
	if (!result)
		result = buf_check(&roots);
	if (result)
		return result;
	if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, names->former_roots) >= sizeof path)
		return error_cause(error, ERR_IO, "path too long");
	return durable_replace(path, 0600, buf_slice(&roots), error);
}

/* Writes the responder's file last. While it is missing, nothing was signed with these keys, and
 * all files are created again. */
static int create(const char *directory, const struct development_names *names,
                  const char *const subjects[3], const struct extension *extensions,
                  struct error *error)
{
	__attribute__((cleanup(issued_cleanup))) struct issued root = {0};
	__attribute__((cleanup(issued_cleanup))) struct issued signer = {0};
	__attribute__((cleanup(issued_cleanup))) struct issued responder = {0};
	int result = OK;

	if (exists(directory, names->signer) && exists(directory, names->responder))
		return OK;
	if (!issue(subjects[0], ROOT_DAYS, root_extensions, NULL, &root) ||
	    !issue(subjects[1], SIGNER_DAYS, extensions, &root, &signer) ||
	    !issue(subjects[2], SIGNER_DAYS, responder_extensions, &root, &responder))
		return error_cause(error, ERR_INTERNAL, "cannot make certificates: %s", openssl_reason());
	if (exists(directory, names->signer))
		result = retire_root(directory, names, error);
	if (!result)
		result = write_pem(directory, names->root, root.certificate, NULL, error);
	if (!result)
		result = write_pem(directory, names->signer, signer.certificate, signer.key, error);
	return result ? result
	              : write_pem(directory, names->responder, responder.certificate, responder.key,
	                          error);
}

int development_create(const char *directory, struct error *error)
{
	static const char *const report[] = {"Development report root", "Development report signer",
	                                     "Development report OCSP responder"};
	static const char *const timestamp[] = {"Development timestamp root",
	                                        "Development timestamp authority",
	                                        "Development timestamp OCSP responder"};
	int result =
		create(directory, &development_names[DEVELOPMENT_REPORT], report, report_extensions, error);

	return result ? result
	              : create(directory, &development_names[DEVELOPMENT_TIMESTAMP], timestamp,
	                       timestamp_extensions, error);
}
