#include "pki.h"

#include "support.h"

#include <openssl/pem.h>

#define HALF_CENTURY_S (50LL * 365 * 86400)

const struct pki_extension pki_authority[] = {
	{"basicConstraints", "critical,CA:TRUE"},
	{"keyUsage", "critical,keyCertSign,cRLSign"},
	{"subjectKeyIdentifier", "hash"},
	{NULL, NULL},
};
const struct pki_extension pki_leaf[] = {
	{"basicConstraints", "critical,CA:FALSE"},
	{"keyUsage", "critical,digitalSignature"},
	{"subjectKeyIdentifier", "hash"},
	{"authorityInfoAccess", "OCSP;URI:http://ocsp.example/"},
	{"crlDistributionPoints", "URI:http://crl.example/1.crl"},
	{NULL, NULL},
};

static void set_time(ASN1_TIME *time, int64_t time_us, int64_t otherwise_s)
{
	time_t seconds = (time_t)(time_us != 0 ? time_us / US_PER_SECOND : otherwise_s);

	assert_non_null(ASN1_TIME_set(time, seconds));
}

static ASN1_GENERALIZEDTIME *time_of(int64_t time_us)
{
	return time_us == TIME_NONE || time_us == 0
	           ? NULL
	           : ASN1_GENERALIZEDTIME_set(NULL, (time_t)(time_us / US_PER_SECOND));
}

struct pki_identity pki_issue(const struct pki_certificate *wanted)
{
	static long serial = 1000;
	struct pki_identity made = {X509_new(), wanted->key ? wanted->key : EVP_EC_gen("P-256")};
	const struct pki_identity *issuer = wanted->issuer ? wanted->issuer : &made;
	int64_t now_s = clock_now_us() / US_PER_SECOND;
	X509V3_CTX context;

	assert_non_null(made.key);
	X509_set_version(made.certificate, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), serial++);
	X509_set_pubkey(made.certificate, made.key);
	set_time(X509_getm_notBefore(made.certificate), wanted->from_us, now_s - HALF_CENTURY_S);
	set_time(X509_getm_notAfter(made.certificate), wanted->to_us, now_s + HALF_CENTURY_S);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(made.certificate), "CN", MBSTRING_UTF8,
	                           (const unsigned char *)wanted->name, -1, -1, 0);
	X509_set_issuer_name(made.certificate, X509_get_subject_name(issuer->certificate));
	X509V3_set_ctx(&context, issuer->certificate, made.certificate, NULL, NULL, 0);
	for (const struct pki_extension *item = wanted->extensions; item->name; item++) {
		X509_EXTENSION *extension = X509V3_EXT_nconf(NULL, &context, item->name, item->value);
		if (!extension)
			fail_msg("%s = %s", item->name, item->value);
		X509_add_ext(made.certificate, extension, -1);
		X509_EXTENSION_free(extension);
	}
	assert_true(X509_sign(made.certificate, issuer->key, EVP_sha256()) > 0);
	return made;
}

void pki_free(struct pki_identity *identity)
{
	X509_free(identity->certificate);
	EVP_PKEY_free(identity->key);
}

void pki_path(struct buf *out, const struct pki_identity *const *path, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		BIO *bio = BIO_new(BIO_s_mem());
		char *data;
		assert_int_equal(PEM_write_bio_X509(bio, path[i]->certificate), 1);
		long size = BIO_get_mem_data(bio, &data);
		buf_add(out, data, (size_t)size);
		BIO_free(bio);
	}
}

static void put(struct buf *out, unsigned char *der, int size)
{
	assert_true(size > 0);
	buf_clear(out);
	buf_add(out, der, (size_t)size);
	assert_int_equal(buf_check(out), 0);
	OPENSSL_free(der);
}

void pki_ders(struct buf *out, const struct pki_identity *const *path, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned char *der = NULL;
		int size = i2d_X509(path[i]->certificate, &der);
		assert_true(size > 0);
		buf_add(out, der, (size_t)size);
		OPENSSL_free(der);
	}
}

static void add_entry(X509_CRL *crl, const struct pki_crl *wanted)
{
	X509_REVOKED *entry = X509_REVOKED_new();
	ASN1_TIME *when = ASN1_TIME_set(NULL, (time_t)(wanted->revoked_us / US_PER_SECOND));
	ASN1_GENERALIZEDTIME *invalid = time_of(wanted->invalid_us);

	X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(wanted->revoked));
	X509_REVOKED_set_revocationDate(entry, when);
	if (wanted->reason >= 0) {
		ASN1_ENUMERATED *reason = ASN1_ENUMERATED_new();
		ASN1_ENUMERATED_set(reason, wanted->reason);
		assert_int_equal(X509_REVOKED_add1_ext_i2d(entry, NID_crl_reason, reason, 0, 0), 1);
		ASN1_ENUMERATED_free(reason);
	}
	if (invalid)
		assert_int_equal(X509_REVOKED_add1_ext_i2d(entry, NID_invalidity_date, invalid, 0, 0), 1);
	for (const struct pki_extension *item = wanted->entry_extensions; item && item->name; item++) {
		X509_EXTENSION *extension = X509V3_EXT_nconf(NULL, NULL, item->name, item->value);
		if (!extension)
			fail_msg("%s = %s", item->name, item->value);
		X509_REVOKED_add_ext(entry, extension, -1);
		X509_EXTENSION_free(extension);
	}
	assert_int_equal(X509_CRL_add0_revoked(crl, entry), 1);
	ASN1_GENERALIZEDTIME_free(invalid);
	ASN1_TIME_free(when);
}

static void add_others(X509_CRL *crl, const struct pki_crl *wanted)
{
	ASN1_TIME *when = ASN1_TIME_set(NULL, (time_t)(wanted->issued_us / US_PER_SECOND));

	for (size_t i = 0; i < wanted->others; i++) {
		X509_REVOKED *entry = X509_REVOKED_new();
		ASN1_INTEGER *serial = ASN1_INTEGER_new();
		ASN1_INTEGER_set_uint64(serial, UINT64_C(0x4000000000000000) + i);
		X509_REVOKED_set_serialNumber(entry, serial);
		X509_REVOKED_set_revocationDate(entry, when);
		assert_int_equal(X509_CRL_add0_revoked(crl, entry), 1);
		ASN1_INTEGER_free(serial);
	}
	ASN1_TIME_free(when);
}

void pki_crl(struct buf *out, const struct pki_crl *wanted)
{
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *issued = ASN1_TIME_set(NULL, (time_t)(wanted->issued_us / US_PER_SECOND));
	ASN1_GENERALIZEDTIME *next = time_of(wanted->next_us);
	X509V3_CTX context;
	unsigned char *der = NULL;

	X509_CRL_set_version(crl, X509_CRL_VERSION_2);
	X509_CRL_set_issuer_name(crl, X509_get_subject_name(wanted->issuer->certificate));
	X509_CRL_set1_lastUpdate(crl, issued);
	if (next)
		X509_CRL_set1_nextUpdate(crl, next);
	if (wanted->revoked)
		add_entry(crl, wanted);
	add_others(crl, wanted);
	X509V3_set_ctx(&context, wanted->issuer->certificate, NULL, NULL, crl, 0);
	for (const struct pki_extension *item = wanted->extensions; item && item->name; item++) {
		X509_EXTENSION *extension = X509V3_EXT_nconf(NULL, &context, item->name, item->value);
		if (!extension)
			fail_msg("%s = %s", item->name, item->value);
		X509_CRL_add_ext(crl, extension, -1);
		X509_EXTENSION_free(extension);
	}
	assert_true(X509_CRL_sign(crl, wanted->issuer->key,
	                          wanted->digest ? wanted->digest : EVP_sha256()) > 0);
	int size = i2d_X509_CRL(crl, &der);
	put(out, der, size);
	ASN1_GENERALIZEDTIME_free(next);
	ASN1_TIME_free(issued);
	X509_CRL_free(crl);
}

void pki_ocsp(struct buf *out, const struct pki_ocsp *wanted)
{
	OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
	const struct pki_identity *signer = wanted->responder ? wanted->responder : wanted->issuer;
	ASN1_GENERALIZEDTIME *issued = time_of(wanted->issued_us);
	ASN1_GENERALIZEDTIME *next = time_of(wanted->next_us);
	ASN1_GENERALIZEDTIME *revoked = time_of(wanted->revoked_us);
	OCSP_CERTID *id = OCSP_cert_to_id(wanted->id_digest ? wanted->id_digest : EVP_sha1(),
	                                  wanted->certificate, wanted->issuer->certificate);
	int64_t produced_us = wanted->produced_us ? wanted->produced_us : wanted->issued_us;
	unsigned long flags = OCSP_NOTIME | (wanted->by_key ? OCSP_RESPID_KEY : 0) |
	                      (wanted->without_certificate ? OCSP_NOCERTS : 0);
	unsigned char *der = NULL;

	for (int i = 0; i < 1 + wanted->twice; i++) {
		OCSP_SINGLERESP *single = OCSP_basic_add1_status(basic, id, wanted->status, wanted->reason,
		                                                 revoked, issued, next);
		assert_non_null(single);
		if (wanted->critical)
			assert_int_equal(
				OCSP_SINGLERESP_add1_ext_i2d(single, NID_invalidity_date, issued, 1, 0), 1);
	}
	assert_non_null(
		ASN1_GENERALIZEDTIME_set((ASN1_GENERALIZEDTIME *)OCSP_resp_get0_produced_at(basic),
	                             (time_t)(produced_us / US_PER_SECOND)));
	assert_int_equal(OCSP_basic_sign(basic, signer->certificate, signer->key,
	                                 wanted->digest ? wanted->digest : EVP_sha256(), NULL, flags),
	                 1);
	OCSP_RESPONSE *response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
	int size = i2d_OCSP_RESPONSE(response, &der);
	put(out, der, size);
	OCSP_RESPONSE_free(response);
	OCSP_CERTID_free(id);
	ASN1_GENERALIZEDTIME_free(issued);
	ASN1_GENERALIZEDTIME_free(next);
	ASN1_GENERALIZEDTIME_free(revoked);
	OCSP_BASICRESP_free(basic);
}
