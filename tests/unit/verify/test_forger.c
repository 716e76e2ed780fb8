#include "test_forger.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ts.h>
#include <openssl/x509v3.h>

#include "testing.h"
#include "base/clock.h"

static X509_EXTENSION *make_extension(X509V3_CTX *context, const char *text)
{
	char name[64];
	const char *value = strchr(text, '=');
	assert_non_null(value);
	snprintf(name, sizeof name, "%.*s", (int)(value - text), text);
	X509_EXTENSION *extension = X509V3_EXT_conf(NULL, context, name, value + 1);
	assert_non_null(extension);
	return extension;
}

static void add_extension(X509 *certificate, X509 *issuer, const char *text)
{
	X509V3_CTX context;
	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	X509_EXTENSION *extension = make_extension(&context, text);
	assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
	X509_EXTENSION_free(extension);
}

void forger_issue(const struct forger_plan *plan, const struct forger_holder *issuer,
                  struct forger_holder *ret_holder)
{
	static long serial = 100;
	bool usual = plan->from_days == 0 && plan->to_days == 0;
	EVP_PKEY *key = plan->rsa_bits ? EVP_RSA_gen((unsigned)plan->rsa_bits) : EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	assert_true(key && certificate);
	X509 *above = issuer ? issuer->certificate : certificate;
	X509_set_version(certificate, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
	X509_set_pubkey(certificate, key);
	X509_time_adj_ex(X509_getm_notBefore(certificate), usual ? -1 : plan->from_days, 0, NULL);
	X509_time_adj_ex(X509_getm_notAfter(certificate), usual ? 30 : plan->to_days, 0, NULL);
	if (plan->organization)
		X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "O", MBSTRING_UTF8,
		                           (const unsigned char *)plan->organization, -1, -1, 0);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
	                           (const unsigned char *)plan->name, -1, -1, 0);
	X509_set_issuer_name(certificate, X509_get_subject_name(above));
	for (const char *const *at = plan->extensions; *at; at++)
		add_extension(certificate, above, *at);
	assert_true(X509_sign(certificate, issuer ? issuer->key : key,
	                      plan->digest ? plan->digest : EVP_sha256()) > 0);
	*ret_holder = (struct forger_holder){certificate, key, issuer};
}

void forger_free(struct forger_holder *holder)
{
	X509_free(holder->certificate);
	EVP_PKEY_free(holder->key);
	*holder = (struct forger_holder){0};
}

static void write_certificate(X509 *certificate, struct buf *out)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data;
	assert_int_equal(PEM_write_bio_X509(bio, certificate), 1);
	long size = BIO_get_mem_data(bio, &data);
	buf_add(out, data, (size_t)size);
	BIO_free(bio);
	assert_int_equal(buf_check(out), 0);
}

void forger_chain(const struct forger_holder *holder, struct buf *out)
{
	write_certificate(holder->certificate, out);
	for (holder = holder->issuer; holder && holder->issuer; holder = holder->issuer)
		write_certificate(holder->certificate, out);
}

void forger_root(const struct forger_holder *holder, struct buf *out)
{
	while (holder->issuer)
		holder = holder->issuer;
	write_certificate(holder->certificate, out);
}

struct trust_roots forger_trust(const struct forger_holder *holder, struct slice others,
                                struct buf *ret_pem)
{
	*ret_pem = (struct buf){.limit = 65536};
	buf_add_slice(ret_pem, others);
	forger_root(holder, ret_pem);
	return (struct trust_roots){.signers = buf_slice(ret_pem), .timestamps = buf_slice(ret_pem)};
}

void forger_certificate(const struct forger_holder *holder, struct buf *out)
{
	write_certificate(holder->certificate, out);
}

int forger_sign(void *context, struct slice bytes, struct buf *out, struct error *error)
{
	const struct forger_holder *holder = context;
	unsigned char signature[1024];
	size_t size = sizeof signature;
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	assert_int_equal(EVP_DigestSignInit(digest, NULL, EVP_sha256(), NULL, holder->key), 1);
	assert_int_equal(
		EVP_DigestSign(digest, signature, &size, (const unsigned char *)bytes.data, bytes.size), 1);
	EVP_MD_CTX_free(digest);
	buf_add(out, signature, size);
	return 0;
}

static ASN1_INTEGER *next_serial(struct TS_resp_ctx *context, void *data)
{
	static long serial = 1;
	ASN1_INTEGER *number = ASN1_INTEGER_new();
	ASN1_INTEGER_set(number, serial++);
	return number;
}

static int tell_time(struct TS_resp_ctx *context, void *data, long *seconds, long *microseconds)
{
	const struct forger_authority *authority = data;
	int64_t now_us = clock_now_us() + authority->offset_us;
	*seconds = (long)(now_us / US_PER_SECOND);
	*microseconds = (long)(now_us % US_PER_SECOND);
	return 1;
}

/* For end_info, which OpenSSL 3.0 calls with the wrong context. */
static const struct forger_authority *stamping;

/* Called for each extension of the request; it has one. */
static int end_info(struct TS_resp_ctx *context, X509_EXTENSION *asked, void *data)
{
	const struct forger_authority *authority = stamping;
	TS_TST_INFO *info = TS_RESP_CTX_get_tst_info(context);
	if (authority->name) {
		GENERAL_NAME *tsa = GENERAL_NAME_new();
		X509_NAME *name = X509_NAME_new();
		X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
		                           (const unsigned char *)authority->name, -1, -1, 0);
		GENERAL_NAME_set0_value(tsa, GEN_DIRNAME, name);
		assert_int_equal(TS_TST_INFO_set_tsa(info, tsa), 1);
		GENERAL_NAME_free(tsa);
	}
	if (authority->extension) {
		X509_EXTENSION *extension = make_extension(NULL, authority->extension);
		assert_int_equal(TS_TST_INFO_add_ext(info, extension, -1), 1);
		X509_EXTENSION_free(extension);
	}
	return 1;
}

/* With an extension, so that end_info is called. */
static BIO *make_request(const struct sha256 *imprint)
{
	BUF_AUTO struct buf der = {.limit = TIMESTAMP_REQUEST_MAX};
	X509_EXTENSION *extension = make_extension(NULL, "1.2.3.4=DER:0500");
	BIO *bio = BIO_new(BIO_s_mem());
	assert_int_equal(timestamp_request(imprint, NULL, &der, NULL), 0);
	const unsigned char *position = (const unsigned char *)der.data;
	TS_REQ *request = d2i_TS_REQ(NULL, &position, (long)der.size);
	assert_int_equal(TS_REQ_add_ext(request, extension, -1), 1);
	assert_int_equal(i2d_TS_REQ_bio(bio, request), 1);
	X509_EXTENSION_free(extension);
	TS_REQ_free(request);
	return bio;
}

int forger_stamp(void *context, const struct sha256 *imprint, struct buf *out, struct error *error)
{
	struct forger_authority *authority = context;
	TS_RESP_CTX *maker = TS_RESP_CTX_new();
	ASN1_OBJECT *policy = OBJ_txt2obj("1.2.3.4", 1);
	STACK_OF(X509) *issuers = sk_X509_new_null();
	const struct forger_holder *above = authority->holder->issuer;
	for (; !authority->alone && above && above->issuer; above = above->issuer)
		sk_X509_push(issuers, above->certificate);
	BIO *bio = make_request(imprint);
	assert_true(TS_RESP_CTX_set_signer_cert(maker, authority->holder->certificate) &&
	            TS_RESP_CTX_set_signer_key(maker, authority->holder->key) &&
	            TS_RESP_CTX_set_certs(maker, issuers) &&
	            TS_RESP_CTX_set_signer_digest(maker, EVP_sha256()) &&
	            TS_RESP_CTX_set_ess_cert_id_digest(maker, EVP_sha256()) &&
	            TS_RESP_CTX_add_md(maker, EVP_sha256()) &&
	            TS_RESP_CTX_set_def_policy(maker, policy) &&
	            TS_RESP_CTX_set_accuracy(maker, authority->accuracy_seconds, 0, 0) &&
	            TS_RESP_CTX_set_clock_precision_digits(maker, 6));
	TS_RESP_CTX_set_serial_cb(maker, next_serial, NULL);
	TS_RESP_CTX_set_time_cb(maker, tell_time, authority);
	TS_RESP_CTX_set_extension_cb(maker, end_info, NULL);
	stamping = authority;
	TS_RESP *response = TS_RESP_create_response(maker, bio);
	unsigned char *der = NULL;
	int size = i2d_TS_RESP(response, &der);
	struct slice token;
	assert_true(size > 0);
	assert_int_equal(timestamp_response_token(slice_make(der, (size_t)size), &token, error), 0);
	buf_add_slice(out, token);
	OPENSSL_free(der);
	TS_RESP_free(response);
	BIO_free(bio);
	sk_X509_free(issuers);
	ASN1_OBJECT_free(policy);
	TS_RESP_CTX_free(maker);
	return 0;
}
