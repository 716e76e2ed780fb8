#include "seal/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <time.h>

/* 112 bits: RSA of 2,048 bits and SHA-2 at least (SSL_CTX_set_security_level(3)). */
#define SECURITY_LEVEL 2
#define NAME_SIZE 256 /* in an error message */

const char *openssl_reason(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return reason ? reason : "unknown";
}

/* The first entry of the queue is the original failure; later entries result from it. */
static bool lacked_memory(void)
{
	return ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE;
}

int openssl_failure(struct error *error, const char *what)
{
	bool no_memory = lacked_memory();
	unsigned long last = ERR_peek_last_error();
	const char *reason = openssl_reason();

	if (no_memory)
		return error_cause(error, ERR_NO_MEMORY, "%s", what);
	return last ? error_cause(error, ERR_INVALID_EVIDENCE, "%s: %s", what, reason)
	            : error_cause(error, ERR_INVALID_EVIDENCE, "%s", what);
}

/* Returns whether reading stopped because no further PEM block begins. */
static bool ends_regularly(void)
{
	unsigned long last = ERR_peek_last_error();

	return ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
}

int certificates_read(struct slice pem, STACK_OF(X509) * *ret_certificates, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = sk_X509_new_null();
	BIO *bio = pem.size <= INT_MAX ? BIO_new_mem_buf(pem.data, (int)pem.size) : NULL;
	X509 *certificate = NULL;
	bool kept = true;

	if (!certificates || !bio) {
		BIO_free(bio);
		return ERR_NO_MEMORY;
	}
	ERR_clear_error();
	while (kept && sk_X509_num(certificates) <= CERTIFICATES_MAX &&
	       (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)))
		kept = sk_X509_push(certificates, certificate) > 0;
	if (!kept)
		X509_free(certificate);
	BIO_free(bio);
	bool no_memory = !kept || lacked_memory();
	bool regular = ends_regularly();
	ERR_clear_error();
	if (no_memory)
		return ERR_NO_MEMORY;
	if (!regular || sk_X509_num(certificates) == 0)
		return error_cause(error, ERR_VALIDATION, "not a PEM text of 1 to %d certificates",
		                   CERTIFICATES_MAX);
	*ret_certificates = certificates;
	certificates = NULL;
	return 0;
}

int certificate_write(const X509 *certificate, struct buf *out)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data;

	if (!bio || PEM_write_bio_X509(bio, certificate) != 1) {
		BIO_free(bio);
		return ERR_NO_MEMORY;
	}
	long size = BIO_get_mem_data(bio, &data);
	buf_add(out, data, (size_t)size);
	BIO_free(bio);
	return buf_check(out);
}

int certificates_write(const STACK_OF(X509) * certificates, struct buf *out)
{
	int result = buf_check(out);

	for (int i = 0; !result && i < sk_X509_num(certificates); i++)
		result = certificate_write(sk_X509_value(certificates, i), out);
	return result;
}

int certificates_read_der(struct slice der, STACK_OF(X509) * *ret_certificates, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = sk_X509_new_null();
	const unsigned char *position = (const unsigned char *)der.data;
	const unsigned char *end = position + der.size;

	if (!certificates)
		return ERR_NO_MEMORY;
	ERR_clear_error();
	while (position < end) {
		X509 *certificate = sk_X509_num(certificates) < CERTIFICATES_MAX
		                        ? d2i_X509(NULL, &position, end - position)
		                        : NULL;
		if (!certificate)
			return openssl_failure(error, "not 1 to 64 certificates in DER");
		if (!sk_X509_push(certificates, certificate)) {
			X509_free(certificate);
			return ERR_NO_MEMORY;
		}
	}
	*ret_certificates = certificates;
	certificates = NULL;
	return 0;
}

int certificates_write_der(const STACK_OF(X509) * certificates, struct buf *out)
{
	for (int i = 0; i < sk_X509_num(certificates); i++) {
		unsigned char *der = NULL;
		int size = i2d_X509(sk_X509_value(certificates, i), &der);
		if (size <= 0)
			return ERR_NO_MEMORY;
		buf_add(out, der, (size_t)size);
		OPENSSL_free(der);
	}
	return buf_check(out);
}

bool certificate_name(const X509_NAME *name, char *text, size_t text_size)
{
	unsigned long flags = XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB;
	BIO *bio = BIO_new(BIO_s_mem());
	char *data = NULL;
	size_t size = 0;

	bool written = bio && X509_NAME_print_ex(bio, name, 0, flags) >= 0;
	if (written)
		size = (size_t)BIO_get_mem_data(bio, &data);
	if (size >= text_size)
		for (size = text_size - 1; size > 0 && ((unsigned char)data[size] & 0xc0) == 0x80;)
			size--;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = 0;
	BIO_free(bio);
	return written;
}

bool certificate_time(const ASN1_TIME *time, int64_t *ret_us)
{
	struct tm parts = {0};

	if (ASN1_TIME_to_tm(time, &parts) != 1)
		return false;
	*ret_us = (int64_t)timegm(&parts) * US_PER_SECOND;
	return true;
}

int certificate_describe(const X509 *certificate, struct certificate_facts *ret_facts,
                         struct error *error)
{
	struct certificate_facts facts;
	unsigned int size = SHA256_SIZE;

	ERR_clear_error();
	if (!certificate_time(X509_get0_notBefore(certificate), &facts.not_before_us) ||
	    !certificate_time(X509_get0_notAfter(certificate), &facts.not_after_us) ||
	    !certificate_name(X509_get_subject_name(certificate), facts.subject, SUBJECT_SIZE) ||
	    !certificate_name(X509_get_issuer_name(certificate), facts.issuer, SUBJECT_SIZE))
		return openssl_failure(error, "the certificate's times or names cannot be read");
	if (X509_digest(certificate, EVP_sha256(), facts.sha256.bytes, &size) != 1)
		abort(); /* out of memory: a certificate cannot be identified without its digest */
	trust_name(facts.subject, facts.name);
	trust_name(facts.issuer, facts.issuer_name);
	*ret_facts = facts;
	return 0;
}

bool certificate_is_self_issued(X509 *certificate)
{
	const ASN1_OCTET_STRING *own = X509_get0_subject_key_id(certificate);
	const ASN1_OCTET_STRING *issuer = X509_get0_authority_key_id(certificate);

	return X509_NAME_cmp(X509_get_subject_name(certificate), X509_get_issuer_name(certificate)) ==
	           0 ||
	       (own && issuer && ASN1_OCTET_STRING_cmp(own, issuer) == 0);
}

/* Returns 0 with the result of the check, or ERR_NO_MEMORY. */
static int verify_by(X509 *certificate, X509 *issuer, bool *ret_verified)
{
	ERR_clear_error();
	*ret_verified = X509_verify(certificate, X509_get0_pubkey(issuer)) == 1;
	int result = !*ret_verified && lacked_memory() ? ERR_NO_MEMORY : 0;
	ERR_clear_error();
	return result;
}

int certificate_find_issuer(X509 *certificate, const STACK_OF(X509) * among, X509 **ret_issuer)
{
	X509 *issuer = NULL;
	int result = 0;

	for (int i = 0; !result && !issuer && i < sk_X509_num(among); i++) {
		X509 *candidate = sk_X509_value(among, i);
		bool verified;
		if (candidate == certificate || X509_check_issued(candidate, certificate) != X509_V_OK)
			continue;
		result = verify_by(certificate, candidate, &verified);
		if (!result && verified)
			issuer = candidate;
	}
	*ret_issuer = issuer;
	return result;
}

/* ---- the path inside ---- */

struct step {
	X509 *certificate;
	size_t below; /* index of the certificate that it issued; of the first: itself */
};

static bool is_reached(const struct step *steps, size_t count, const X509 *certificate)
{
	for (size_t i = 0; i < count; i++)
		if (X509_cmp(steps[i].certificate, certificate) == 0)
			return true;
	return false;
}

/* Adds the issuers of that step's certificate that were not reached before. */
static int add_issuers(struct step *steps, size_t at, const STACK_OF(X509) * among, size_t *count)
{
	X509 *below = steps[at].certificate;
	int result = 0;

	for (int i = 0; !result && i < sk_X509_num(among); i++) {
		X509 *candidate = sk_X509_value(among, i);
		bool verified = false;
		if (X509_check_issued(candidate, below) == X509_V_OK &&
		    !is_reached(steps, *count, candidate))
			result = verify_by(below, candidate, &verified);
		if (verified)
			steps[(*count)++] = (struct step){candidate, at};
	}
	return result;
}

static int take_path(const struct step *steps, size_t top, STACK_OF(X509) * *ret_path)
{
	STACK_OF(X509) *path = sk_X509_new_null();

	for (size_t at = top; path; at = steps[at].below) {
		if (!sk_X509_unshift(path, steps[at].certificate)) {
			sk_X509_free(path);
			path = NULL;
		} else if (at == 0) {
			break;
		}
	}
	*ret_path = path;
	return path ? 0 : ERR_NO_MEMORY;
}

/* Breadth-first search: each certificate is reached once, even if many share name and key. */
int certificate_embedded_path(X509 *certificate, const STACK_OF(X509) * inside,
                              STACK_OF(X509) * *ret_path)
{
	struct step *steps = calloc((size_t)sk_X509_num(inside) + 1, sizeof *steps);
	size_t count = 1, top = 0;
	int result = steps ? 0 : ERR_NO_MEMORY;

	if (!result)
		steps[0].certificate = certificate;
	for (size_t at = 0; !result && at < count; at++) {
		top = at;
		if (X509_get_extension_flags(steps[at].certificate) & EXFLAG_SS)
			break;
		result = add_issuers(steps, at, inside, &count);
	}
	ERR_clear_error();
	if (!result)
		result = take_path(steps, top, ret_path);
	free(steps);
	return result;
}

static int find_topmost(X509 *signer, const STACK_OF(X509) * inside, X509 **ret_top)
{
	STACK_OF(X509) *path = NULL;
	int result = certificate_embedded_path(signer, inside, &path);

	if (!result)
		*ret_top = sk_X509_value(path, sk_X509_num(path) - 1);
	sk_X509_free(path);
	return result;
}

static int check_self_signature(X509 *certificate, STACK_OF(X509) * inside,
                                const STACK_OF(X509) * roots, struct error *error)
{
	bool verified;
	int result = verify_by(certificate, certificate, &verified);

	for (int i = 0; !result && !verified && i < sk_X509_num(inside); i++)
		result = verify_by(certificate, sk_X509_value(inside, i), &verified);
	for (int i = 0; !result && !verified && roots && i < sk_X509_num(roots); i++)
		result = verify_by(certificate, sk_X509_value(roots, i), &verified);
	if (result || verified)
		return result;
	return error_cause(error, ERR_INVALID_EVIDENCE,
	                   "a self-issued certificate's signature is not its own");
}

/* A certificate outside the path proves nothing, but a damaged one indicates that the evidence was
 * altered. */
static int check_self_signatures(STACK_OF(X509) * inside, const STACK_OF(X509) * roots,
                                 struct error *error)
{
	int result = 0;

	for (int i = 0; !result && i < sk_X509_num(inside); i++)
		if (certificate_is_self_issued(sk_X509_value(inside, i)))
			result = check_self_signature(sk_X509_value(inside, i), inside, roots, error);
	return result;
}

static bool is_on_path(const X509 *certificate, const STACK_OF(X509) * path)
{
	for (int i = 0; i < sk_X509_num(path); i++)
		if (X509_cmp(certificate, sk_X509_value(path, i)) == 0)
			return true;
	return false;
}

static bool are_on_path(const STACK_OF(X509) * inside, const STACK_OF(X509) * path)
{
	for (int i = 0; i < sk_X509_num(inside); i++)
		if (!is_on_path(sk_X509_value(inside, i), path))
			return false;
	return true;
}

/* A trusted root may replace a certificate inside with the same name and key. The certificates
 * inside are then accepted if they form a path of their own. */
static int check_inside(X509 *signer, const STACK_OF(X509) * inside, const STACK_OF(X509) * path,
                        enum path_purpose purpose, struct error *error)
{
	if (purpose == PATH_SIGNATURE && !are_on_path(inside, path)) {
		STACK_OF(X509) *own = NULL;
		int result = certificate_embedded_path(signer, inside, &own);
		bool lead_up = !result && are_on_path(inside, own);
		sk_X509_free(own);
		if (result)
			return result;
		if (!lead_up)
			return error_cause(error, ERR_INVALID_EVIDENCE,
			                   "a certificate inside is not on the verified path");
	}
	return certificate_check_issuers(path, purpose, error);
}

static bool set_up(X509_STORE_CTX *context, X509_STORE *store, X509 *signer,
                   STACK_OF(X509) * inside, enum path_purpose purpose, bool rooted, bool any_anchor,
                   int64_t time_us)
{
	unsigned long flags = X509_V_FLAG_CHECK_SS_SIGNATURE;

	if (X509_STORE_CTX_init(context, store, signer, inside) != 1)
		return false;
	if (!rooted || any_anchor)
		flags |= X509_V_FLAG_PARTIAL_CHAIN;
	if (!rooted && time_us == TIME_NONE)
		flags |= X509_V_FLAG_NO_CHECK_TIME;
	X509_STORE_CTX_set_flags(context, flags);
	X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context), SECURITY_LEVEL);
	if (time_us != TIME_NONE)
		X509_STORE_CTX_set_time(context, 0, (time_t)(time_us / US_PER_SECOND));
	return purpose != PATH_TIMESTAMP ||
	       X509_STORE_CTX_set_purpose(context, X509_PURPOSE_TIMESTAMP_SIGN) == 1;
}

static X509_STORE *make_store(const STACK_OF(X509) * roots, X509 *top)
{
	X509_STORE *store = X509_STORE_new();
	bool complete = store != NULL;

	if (complete && top)
		complete = X509_STORE_add_cert(store, top) == 1;
	for (int i = 0; complete && roots && i < sk_X509_num(roots); i++)
		complete = X509_STORE_add_cert(store, sk_X509_value(roots, i)) == 1;
	if (complete)
		return store;
	X509_STORE_free(store);
	return NULL;
}

/* Returns whether the path ends at no trust anchor. Every other error is independent of the
 * anchors. */
static bool leads_elsewhere(int code)
{
	switch (code) {
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: return true;
	default: return false;
	}
}

static int set_path_error(X509_STORE_CTX *context, X509 *signer, bool rooted, struct error *error)
{
	X509 *certificate = X509_STORE_CTX_get_current_cert(context);
	int code = X509_STORE_CTX_get_error(context);
	char name[NAME_SIZE];

	if (code == X509_V_ERR_OUT_OF_MEM || lacked_memory())
		return ERR_NO_MEMORY;
	certificate_name(X509_get_subject_name(certificate ? certificate : signer), name, sizeof name);
	int result = rooted && leads_elsewhere(code) ? ERR_NOT_FOUND : ERR_INVALID_EVIDENCE;
	error_cause(error, result, "certificate path, at %s: %s", name,
	            X509_verify_cert_error_string(code));
	error_blame(error, result == ERR_NOT_FOUND ? BLAME_ROOTS : BLAME_NONE);
	return result;
}

int certificate_path(X509 *signer, STACK_OF(X509) * inside, const STACK_OF(X509) * roots,
                     bool any_anchor, enum path_purpose purpose, int64_t time_us,
                     STACK_OF(X509) * *ret_path, struct error *error)
{
	X509 *top = NULL;

	ERR_clear_error();
	int result = certificate_check_signer(signer, purpose, error);
	if (!result && !roots)
		result = find_topmost(signer, inside, &top);
	if (!result)
		result = check_self_signatures(inside, roots, error);
	if (result)
		return result;
	X509_STORE *store = make_store(roots, top);
	X509_STORE_CTX *context = X509_STORE_CTX_new();
	if (!store || !context ||
	    !set_up(context, store, signer, inside, purpose, roots != NULL, any_anchor, time_us)) {
		result = ERR_NO_MEMORY;
	} else if (X509_verify_cert(context) != 1) {
		result = set_path_error(context, signer, roots != NULL, error);
	} else {
		CERTIFICATES_AUTO STACK_OF(X509) *path = X509_STORE_CTX_get1_chain(context);
		result = path ? check_inside(signer, inside, path, purpose, error) : ERR_NO_MEMORY;
		if (!result) {
			*ret_path = path;
			path = NULL;
		}
	}
	X509_STORE_CTX_free(context);
	X509_STORE_free(store);
	ERR_clear_error();
	return result;
}
