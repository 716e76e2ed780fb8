#include "support.h"

#include <openssl/ess.h>
#include <openssl/pem.h>
#include <openssl/ts.h>

#include "base/clock.h"
#include "seal/signed_data.h"
#include "seal/timestamp.h"
#include "stride.h"

static struct signer *signer;
static struct sha256 imprint;
static struct buf request;
static struct buf response;
static struct buf token;
static struct slice roots;

static const struct slice no_roots;

static int make_sample(void **state)
{
	struct timestamp_facts facts;

	scratch_begin(state);
	signer = development_signer();
	roots = signer_timestamp_roots(signer);
	imprint = sha256_of("sample", 6);
	buf_init(&request, TIMESTAMP_REQUEST_MAX);
	buf_init(&response, TIMESTAMP_RESPONSE_MAX);
	buf_init(&token, TIMESTAMP_RESPONSE_MAX);
	if (timestamp_request(&imprint, NULL, &request, NULL) != 0 ||
	    signer_timestamp(signer, buf_slice(&request), &response, NULL) != 0)
		return -1;
	return timestamp_verify_response(buf_slice(&request), buf_slice(&response), roots, NULL, &token,
	                                 &facts, NULL);
}

static int drop_sample(void **state)
{
	signer_stop(signer);
	buf_free(&request);
	buf_free(&response);
	buf_free(&token);
	return scratch_end(state);
}

static void assert_refused(int result, const struct error *error, const char *cause)
{
	if (result != ERR_INVALID_EVIDENCE)
		fail_msg("%d, where it should be refused for '%s'", result, cause);
	if (!strstr(error->cause, cause))
		fail_msg("refused, but not for '%s': %s", cause, error->cause);
}

TEST_CASE(test_facts)
{
	struct timestamp_facts facts;
	int64_t now_us = clock_now_us();

	assert_int_equal(timestamp_verify_token(buf_slice(&token), &imprint, roots, &facts, NULL), 0);
	assert_true(facts.trusted);
	assert_int_equal(facts.accuracy_us, 1000000);
	assert_true(facts.gen_time_us <= now_us && facts.gen_time_us > now_us - US_PER_DAY);
	assert_memory_equal(facts.imprint.bytes, imprint.bytes, SHA256_SIZE);
	assert_string_equal(facts.authority.subject, "CN=Development timestamp authority,"
	                                             "O=Constancia development\\, no legal value");
	assert_int_equal(strlen(facts.serial), 32);
	assert_ptr_equal(strstr(facts.policy, "2.25."), facts.policy);

	facts.trusted = true;
	assert_int_equal(timestamp_verify_token(buf_slice(&token), &imprint, no_roots, &facts, NULL),
	                 0);
	assert_false(facts.trusted);
}

/* The command of OpenSSL reaches the same result, over the bytes that were sent and extracted. */
TEST_CASE(test_openssl_agrees)
{
	char hex[65];

	hex_encode(imprint.bytes, SHA256_SIZE, hex);
	scratch_write("query.tsq", buf_slice(&request));
	scratch_write("reply.tsr", buf_slice(&response));
	scratch_write("token.tst", buf_slice(&token));
	scratch_write("roots.pem", roots);
	assert_int_equal(scratch_run("openssl ts -verify -in reply.tsr -queryfile query.tsq "
	                             "-CAfile roots.pem"),
	                 0);
	assert_int_equal(scratch_run("openssl ts -verify -in token.tst -token_in -digest %s "
	                             "-CAfile roots.pem",
	                             hex),
	                 0);
	assert_int_equal(scratch_run("openssl ts -query -in query.tsq -text | "
	                             "grep -q 'Certificate required: yes'"),
	                 0);
	assert_int_equal(scratch_run("openssl ts -reply -in reply.tsr -token_out -out cut.tst && "
	                             "cmp cut.tst token.tst"),
	                 0);
}

TEST_CASE(test_request)
{
	BUF_AUTO struct buf one = {.limit = TIMESTAMP_REQUEST_MAX};
	BUF_AUTO struct buf other = {.limit = TIMESTAMP_REQUEST_MAX};

	assert_int_equal(timestamp_request(&imprint, "1.2.3.4", &one, NULL), 0);
	assert_int_equal(timestamp_request(&imprint, "1.2.3.4", &other, NULL), 0);
	assert_int_equal(one.size, other.size);
	assert_memory_not_equal(one.data, other.data, one.size);
	scratch_write("policy.tsq", buf_slice(&one));
	assert_int_equal(scratch_run("openssl ts -query -in policy.tsq -text | grep -q 'OID: 1.2.3.4'"),
	                 0);
	assert_int_equal(timestamp_request(&imprint, "1.2.x", &one, NULL), ERR_VALIDATION);
	assert_int_equal(timestamp_request(&imprint, "timeStamping", &one, NULL), ERR_VALIDATION);
}

TEST_CASE(test_other_algorithms)
{
	static const char *const names[] = {"sha256", "sha384", "sha512"};

	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++) {
		struct digest digest = digest_by((enum digest_algorithm)i, "sample", 6);
		BUF_AUTO struct buf asked = {.limit = TIMESTAMP_REQUEST_MAX};
		assert_int_equal(timestamp_request_over(&digest, NULL, &asked, NULL), 0);
		scratch_write("other.tsq", buf_slice(&asked));
		assert_int_equal(
			scratch_run("openssl ts -query -in other.tsq -text | grep -q 'Hash Algorithm: %s'",
		                names[i]),
			0);
	}
	struct digest found, expected = digest_of_sha256(&imprint);
	assert_int_equal(timestamp_token_imprint(buf_slice(&token), &found, NULL), 0);
	assert_true(digest_equal(&found, &expected));
	struct slice answer = buf_slice(&response);
	assert_int_equal(timestamp_token_imprint(answer, &found, NULL), ERR_INVALID_EVIDENCE);
}

/* The authority's certificate is valid for ten years. */
TEST_CASE(test_judged_later)
{
	struct timestamp_facts facts;
	struct error error = {0};
	struct digest digest = digest_of_sha256(&imprint);
	const struct slice *trusts[] = {&roots, &no_roots};

	assert_int_equal(timestamp_verify_token(buf_slice(&token), &imprint, roots, &facts, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(timestamp_verify_token_at(buf_slice(&token), &digest, *trusts[i], NULL,
		                                           facts.authority.not_after_us - US_PER_SECOND,
		                                           &facts, NULL),
		                 0);
		assert_refused(timestamp_verify_token_at(buf_slice(&token), &digest, *trusts[i], NULL,
		                                         facts.authority.not_after_us + US_PER_SECOND,
		                                         &facts, &error),
		               &error, "expired");
	}
	digest.algorithm = DIGEST_SHA384;
	assert_refused(timestamp_verify_token_at(buf_slice(&token), &digest, roots, NULL, TIME_NONE,
	                                         &facts, &error),
	               &error, "not that of the data");
}

static int verify_against(struct slice other_request, struct slice some_roots, struct error *error)
{
	struct timestamp_facts facts;

	return timestamp_verify_response(other_request, buf_slice(&response), some_roots, NULL, NULL,
	                                 &facts, error);
}

TEST_CASE(test_response_against_request)
{
	struct error error = {0};
	struct sha256 other_imprint = sha256_of("other", 5);
	BUF_AUTO struct buf other = {.limit = TIMESTAMP_REQUEST_MAX};

	assert_int_equal(timestamp_request(&imprint, NULL, &other, NULL), 0);
	assert_refused(verify_against(buf_slice(&other), roots, &error), &error, "nonce");
	buf_clear(&other);
	assert_int_equal(timestamp_request(&other_imprint, NULL, &other, NULL), 0);
	assert_refused(verify_against(buf_slice(&other), roots, &error), &error,
	               "differs from that of the request");
	assert_refused(verify_against(slice_of("no request"), roots, &error), &error, "request");
	buf_free(&other);
	buf_init(&other, 65536);
	scratch_read("signer/report-root.pem", &other);
	assert_refused(verify_against(buf_slice(&request), buf_slice(&other), &error), &error,
	               "certificate path");
	assert_int_equal(verify_against(buf_slice(&request), slice_of(""), &error), ERR_VALIDATION);
	assert_int_equal(verify_against(buf_slice(&request), no_roots, &error), ERR_VALIDATION);
}

/* The embedded authority refuses an unknown policy and reports it. */
TEST_CASE(test_not_granted)
{
	struct timestamp_facts facts;
	struct error error = {0};
	BUF_AUTO struct buf asked = {.limit = TIMESTAMP_REQUEST_MAX};
	BUF_AUTO struct buf answer = {.limit = TIMESTAMP_RESPONSE_MAX};

	assert_int_equal(timestamp_request(&imprint, "1.2.3.4", &asked, NULL), 0);
	assert_int_equal(signer_timestamp(signer, buf_slice(&asked), &answer, NULL), 0);
	assert_refused(timestamp_verify_response(buf_slice(&asked), buf_slice(&answer), roots, NULL,
	                                         NULL, &facts, &error),
	               &error, "not granted: status 2");
	struct slice none;
	assert_int_equal(timestamp_response_token(buf_slice(&answer), &none, NULL),
	                 ERR_INVALID_EVIDENCE);
}

TEST_CASE(test_every_flipped_bit)
{
	struct timestamp_facts facts;
	char *copy = malloc(token.size);

	assert_non_null(copy);
	for (size_t bit = 0; bit < token.size * 8; STRIDE(bit)) {
		memcpy(copy, token.data, token.size);
		copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
		struct slice altered = slice_make(copy, token.size);
		if (timestamp_verify_token(altered, &imprint, roots, &facts, NULL) != ERR_INVALID_EVIDENCE)
			fail_msg("bit %zu of byte %zu flipped, and taken", bit % 8, bit / 8);
		if (timestamp_verify_token(altered, &imprint, no_roots, &facts, NULL) !=
		    ERR_INVALID_EVIDENCE)
			fail_msg("bit %zu of byte %zu flipped, and taken without roots", bit % 8, bit / 8);
	}
	free(copy);
}

TEST_CASE(test_every_other_length)
{
	struct timestamp_facts facts;
	char *copy = calloc(1, token.size + 4);

	assert_non_null(copy);
	memcpy(copy, token.data, token.size);
	for (size_t size = 0; size < token.size + 4; size++)
		assert_int_equal(
			timestamp_verify_token(slice_make(copy, size), &imprint, no_roots, &facts, NULL),
			size == token.size ? 0 : ERR_INVALID_EVIDENCE);
	free(copy);
	copy = malloc(response.size + 1);
	assert_non_null(copy);
	memcpy(copy, response.data, response.size);
	copy[response.size] = 0;
	for (size_t size = 0; size < response.size + 2; size += size < response.size - 8 ? 7 : 1) {
		struct slice cut = slice_make(copy, size);
		int result =
			timestamp_verify_response(buf_slice(&request), cut, roots, NULL, NULL, &facts, NULL);
		assert_int_equal(result, size == response.size ? 0 : ERR_INVALID_EVIDENCE);
	}
	free(copy);
}

/* Tokens with one fault each, signed with the authority's own key. */
enum forgery {
	FORGE_NOTHING,
	FORGE_DATA_VERSION,
	FORGE_SIGNER_VERSION,
	FORGE_UNSIGNED_ATTRIBUTE,
	FORGE_STRANGE_CERTIFICATE,
	FORGE_NO_CERTIFICATE,
	FORGE_NO_SIGNING_CERTIFICATE,
	FORGE_OTHER_SIGNING_CERTIFICATE,
	FORGE_REPEATED_ATTRIBUTE,
	FORGE_NO_CONTENT_TYPE,
	FORGE_NO_MESSAGE_DIGEST,
	FORGE_WEAK_DIGEST,
	FORGE_SECOND_DIGEST,
	FORGE_SIGNATURE_ALGORITHM,
	FORGE_SECOND_SIGNER,
	FORGE_OTHER_NAME_CASE,
	FORGE_OTHER_TYPE,
	FORGE_INFO_VERSION,
	FORGE_INFO_TRAILER,
	FORGE_NO_ACCURACY,
	FORGE_EMPTY_ACCURACY,
	FORGE_LATER, /* later, so that the certificates made for it are already valid */
};

/* OpenSSL cannot remove an accuracy. */
static int cut_accuracy(unsigned char *der, int size)
{
	unsigned char *found = memmem(der, (size_t)size, "\x30\x03\x02\x01\x01", 5);

	assert_non_null(found);
	memmove(found, found + 5, (size_t)(der + size - found - 5));
	der[der[1] == 0x81 ? 2 : 1] -= 5;
	assert_true(der[1] != 0x81 || der[2] > 0x7f);
	return size - 5;
}

static void forge_info(SignedContent *content, enum forgery forgery)
{
	ASN1_OCTET_STRING *inside = content->data->encapsulated->content;
	const unsigned char *position = ASN1_STRING_get0_data(inside);
	unsigned char *der = NULL;
	TS_TST_INFO *info = d2i_TS_TST_INFO(NULL, &position, ASN1_STRING_length(inside));
	TS_ACCURACY *empty = TS_ACCURACY_new();

	assert_non_null(info);
	if (forgery == FORGE_INFO_VERSION)
		TS_TST_INFO_set_version(info, 2);
	if (forgery == FORGE_EMPTY_ACCURACY)
		TS_TST_INFO_set_accuracy(info, empty);
	ASN1_GENERALIZEDTIME *later = ASN1_GENERALIZEDTIME_adj(NULL, time(NULL), 0, 60);
	if (forgery == FORGE_LATER)
		TS_TST_INFO_set_time(info, later);
	ASN1_GENERALIZEDTIME_free(later);
	int size = i2d_TS_TST_INFO(info, &der);
	if (forgery == FORGE_NO_ACCURACY)
		size = cut_accuracy(der, size);
	ASN1_STRING_set(inside, der, size);
	if (forgery == FORGE_INFO_TRAILER) {
		der = realloc(der, (size_t)size + 2);
		memcpy(der + size, "\x05", 2);
		ASN1_STRING_set(inside, der, size + 2);
	}
	free(der);
	TS_ACCURACY_free(empty);
	TS_TST_INFO_free(info);
}

static X509 *read_certificate(const char *name)
{
	FILE *file = fopen(scratch_path(name), "r");
	X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);

	fclose(file);
	assert_non_null(certificate);
	return certificate;
}

static void drop_attribute(SignerInfo *info, int nid)
{
	int at = X509at_get_attr_by_NID(info->signed_attributes, nid, -1);

	X509_ATTRIBUTE_free(X509at_delete_attr(info->signed_attributes, at));
}

static void forge_signing_certificate(SignerInfo *info)
{
	unsigned char *der = NULL;
	X509 *other = read_certificate("signer/timestamp-root.pem");
	ESS_SIGNING_CERT_V2 *reference =
		OSSL_ESS_signing_cert_v2_new_init(EVP_sha256(), other, NULL, 1);
	int size = i2d_ESS_SIGNING_CERT_V2(reference, &der);

	drop_attribute(info, NID_id_smime_aa_signingCertificateV2);
	X509at_add1_attr_by_NID(&info->signed_attributes, NID_id_smime_aa_signingCertificateV2,
	                        V_ASN1_SEQUENCE, der, size);
	OPENSSL_free(der);
	ESS_SIGNING_CERT_V2_free(reference);
	X509_free(other);
}

/* Changes the case of a letter in the issuer's name of the signer identifier. */
static void forge_name(SignerInfo *info)
{
	unsigned char *der = NULL;
	int size = i2d_X509_NAME(info->sid->issuer, &der);
	unsigned char *letter = memmem(der, (size_t)size, "Development", 11);
	const unsigned char *position = der;

	assert_non_null(letter);
	*letter ^= 0x20;
	X509_NAME_free(info->sid->issuer);
	info->sid->issuer = d2i_X509_NAME(NULL, &position, size);
	OPENSSL_free(der);
}

static void forge_attributes(SignerInfo *info, enum forgery forgery)
{
	STACK_OF(X509_ATTRIBUTE) *attributes = info->signed_attributes;

	if (forgery == FORGE_NO_SIGNING_CERTIFICATE)
		drop_attribute(info, NID_id_smime_aa_signingCertificateV2);
	if (forgery == FORGE_NO_CONTENT_TYPE)
		drop_attribute(info, NID_pkcs9_contentType);
	if (forgery == FORGE_OTHER_SIGNING_CERTIFICATE)
		forge_signing_certificate(info);
	if (forgery == FORGE_REPEATED_ATTRIBUTE)
		sk_X509_ATTRIBUTE_push(attributes,
		                       X509_ATTRIBUTE_dup(sk_X509_ATTRIBUTE_value(attributes, 0)));
	if (forgery == FORGE_UNSIGNED_ATTRIBUTE)
		X509at_add1_attr_by_NID(&info->unsigned_attributes, NID_pkcs9_unstructuredName,
		                        V_ASN1_UTF8STRING, (const unsigned char *)"x", 1);
}

static void drop_signer(SignedData *data)
{
	for (int i = sk_CertificateChoice_num(data->choices) - 1; i >= 0; i--)
		if (X509_check_ca(sk_CertificateChoice_value(data->choices, i)->d.certificate) == 0)
			CertificateChoice_free(sk_CertificateChoice_delete(data->choices, i));
}

static void forge_data(SignedContent *content, enum forgery forgery)
{
	SignedData *data = content->data;
	SignerInfo *info = signed_content_signer(content);

	if (forgery == FORGE_DATA_VERSION)
		ASN1_INTEGER_set(data->version, 1);
	if (forgery == FORGE_SIGNER_VERSION)
		ASN1_INTEGER_set(info->version, 3);
	if (forgery == FORGE_STRANGE_CERTIFICATE)
		assert_true(
			signed_content_add_certificate(content, read_certificate("signer/report-root.pem")));
	if (forgery == FORGE_NO_CERTIFICATE)
		drop_signer(data);
	if (forgery == FORGE_SECOND_DIGEST)
		sk_X509_ALGOR_push(data->digest_algorithms, X509_ALGOR_dup(info->digest_algorithm));
	if (forgery == FORGE_WEAK_DIGEST) {
		X509_ALGOR_set_md(info->digest_algorithm, EVP_sha1());
		X509_ALGOR_set_md(sk_X509_ALGOR_value(data->digest_algorithms, 0), EVP_sha1());
	}
	if (forgery == FORGE_SIGNATURE_ALGORITHM)
		X509_ALGOR_set0(info->signature_algorithm, OBJ_nid2obj(NID_ecdsa_with_SHA384), V_ASN1_UNDEF,
		                NULL);
	if (forgery == FORGE_OTHER_TYPE)
		data->encapsulated->type = OBJ_nid2obj(NID_pkcs7_data);
	if (forgery == FORGE_OTHER_NAME_CASE)
		forge_name(info);
}

static void sign_again(SignedContent *content, enum forgery forgery)
{
	SignerInfo *info = signed_content_signer(content);
	const ASN1_OCTET_STRING *inside = content->data->encapsulated->content;
	const EVP_MD *digest = forgery == FORGE_WEAK_DIGEST ? EVP_sha1() : EVP_sha256();
	unsigned char value[EVP_MAX_MD_SIZE];
	unsigned char signature[128];
	size_t signature_size = sizeof signature;
	unsigned int size;
	BUF_AUTO struct buf attributes = {.limit = 65536};

	EVP_Digest(ASN1_STRING_get0_data(inside), (size_t)ASN1_STRING_length(inside), value, &size,
	           digest, NULL);
	drop_attribute(info, NID_pkcs9_messageDigest);
	if (forgery != FORGE_NO_MESSAGE_DIGEST)
		X509at_add1_attr_by_NID(&info->signed_attributes, NID_pkcs9_messageDigest,
		                        V_ASN1_OCTET_STRING, value, (int)size);
	assert_int_equal(signed_attributes_write(info->signed_attributes, &attributes), 0);
	FILE *file = fopen(scratch_path("signer/timestamp.pem"), "r");
	EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	fclose(file);
	assert_int_equal(EVP_DigestSignInit(context, NULL, digest, NULL, key), 1);
	assert_int_equal(EVP_DigestSign(context, signature, &signature_size,
	                                (const unsigned char *)attributes.data, attributes.size),
	                 1);
	ASN1_STRING_set(info->signature, signature, (int)signature_size);
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(key);
}

static void forge(enum forgery forgery, struct buf *out)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;

	buf_clear(out);
	assert_int_equal(signed_content_parse(buf_slice(&token), &content, NULL), 0);
	forge_info(content, forgery);
	forge_attributes(signed_content_signer(content), forgery);
	forge_data(content, forgery);
	sign_again(content, forgery);
	if (forgery == FORGE_SECOND_SIGNER) {
		unsigned char *der = NULL;
		int size = i2d_SignerInfo(signed_content_signer(content), &der);
		const unsigned char *position = der;
		sk_SignerInfo_push(content->data->signers, d2i_SignerInfo(NULL, &position, size));
		OPENSSL_free(der);
	}
	assert_int_equal(signed_content_write(content, out), 0);
}

TEST_CASE(test_forgeries)
{
	static const enum forgery good[] = {FORGE_NOTHING, FORGE_UNSIGNED_ATTRIBUTE,
	                                    FORGE_STRANGE_CERTIFICATE, FORGE_NO_ACCURACY};
	static const struct {
		enum forgery forgery;
		const char *cause;
	} cases[] = {
		{FORGE_DATA_VERSION, "version of the SignedData"},
		{FORGE_SIGNER_VERSION, "version of the SignerInfo"},
		{FORGE_NO_CERTIFICATE, "certificate is not inside"},
		{FORGE_NO_SIGNING_CERTIFICATE, "signing-certificate"},
		{FORGE_OTHER_SIGNING_CERTIFICATE, "signing-certificate"},
		{FORGE_REPEATED_ATTRIBUTE, "repeated"},
		{FORGE_NO_CONTENT_TYPE, "content-type"},
		{FORGE_NO_MESSAGE_DIGEST, "message digest"},
		{FORGE_WEAK_DIGEST, "digest algorithm"},
		{FORGE_SECOND_DIGEST, "digest algorithm"},
		{FORGE_SIGNATURE_ALGORITHM, "signature algorithm"},
		{FORGE_SECOND_SIGNER, "one signer"},
		{FORGE_OTHER_NAME_CASE, "certificate is not inside"},
		{FORGE_OTHER_TYPE, "content type"},
		{FORGE_INFO_VERSION, "version of the TSTInfo"},
		{FORGE_INFO_TRAILER, "TSTInfo does not parse"},
		{FORGE_EMPTY_ACCURACY, "accuracy"},
	};
	struct timestamp_facts facts;
	struct error error = {0};
	BUF_AUTO struct buf forged = {.limit = TIMESTAMP_RESPONSE_MAX};

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		forge(good[i], &forged);
		if (timestamp_verify_token(buf_slice(&forged), &imprint, roots, &facts, &error) != 0 ||
		    timestamp_verify_token(buf_slice(&forged), &imprint, no_roots, &facts, &error) != 0)
			fail_msg("%zu: %s", i, error.cause);
	}
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		forge(cases[i].forgery, &forged);
		assert_refused(timestamp_verify_token(buf_slice(&forged), &imprint, roots, &facts, &error),
		               &error, cases[i].cause);
		assert_refused(
			timestamp_verify_token(buf_slice(&forged), &imprint, no_roots, &facts, &error), &error,
			cases[i].cause);
	}
}

/* Signs the sample's TSTInfo by openssl with a certificate of these extensions. */
static int sign_with_openssl(const char *key, const char *extensions, const char *options)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	char text[1024];

	assert_int_equal(signed_content_parse(buf_slice(&token), &content, NULL), 0);
	forge_info(content, FORGE_LATER);
	const ASN1_OCTET_STRING *inside = content->data->encapsulated->content;
	scratch_write("info.der",
	              slice_make(ASN1_STRING_get0_data(inside), (size_t)ASN1_STRING_length(inside)));
	snprintf(text, sizeof text,
	         "[req]\ndistinguished_name=dn\n[dn]\n[ca]\n"
	         "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n[leaf]\n%s\n",
	         extensions);
	scratch_write("openssl.cnf", slice_of(text));
	return scratch_run(
		"openssl req -x509 -config openssl.cnf -extensions ca -newkey ec -pkeyopt "
		"ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -subj /CN=Root -days 9 && "
		"openssl req -new -config openssl.cnf -newkey %s -nodes -keyout leaf.key -out leaf.csr "
		"-subj /CN=Leaf && "
		"openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -set_serial 7 -out leaf.pem -days "
		"9 "
		"-extfile openssl.cnf -extensions leaf && "
		"openssl cms -sign -binary -nodetach -outform DER -econtent_type 1.2.840.113549.1.9.16.1.4 "
		"-nosmimecap -md sha256 -signer leaf.pem -inkey leaf.key -certfile ca.pem -in info.der "
		"-out made.tst %s",
		key, options);
}

#define EC "ec -pkeyopt ec_paramgen_curve:P-256"
#define GOOD_USAGE "extendedKeyUsage=critical,timeStamping"

TEST_CASE(test_signers)
{
	static const struct {
		const char *key, *extensions, *options;
		const char *cause; /* NULL: accepted */
	} cases[] = {
		{EC, GOOD_USAGE, "-cades", NULL},
		{"rsa:2048", GOOD_USAGE, "-cades", NULL},
		{EC, "keyUsage=critical,digitalSignature,nonRepudiation\n" GOOD_USAGE, "-cades", NULL},
		{EC, GOOD_USAGE, "", "signing-certificate"},
		{EC, "", "-cades", "timeStamping"},
		{EC, "extendedKeyUsage=timeStamping", "-cades", "timeStamping"},
		{EC, "extendedKeyUsage=critical,timeStamping,codeSigning", "-cades", "timeStamping"},
		{EC, "extendedKeyUsage=critical,timeStamping,1.2.3.4.5", "-cades", "timeStamping"},
		{EC, "extendedKeyUsage=critical,emailProtection", "-cades", "timeStamping"},
		{EC, "keyUsage=critical,keyEncipherment\n" GOOD_USAGE, "-cades", "may not sign"},
		{EC, "keyUsage=critical,digitalSignature,keyAgreement\n" GOOD_USAGE, "-cades",
	     "certificate path"},
		{EC, GOOD_USAGE, "-cades -md sha1", "digest algorithm"},
		{EC, GOOD_USAGE, "-cades -keyid", "does not parse"},
	};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf root = {.limit = 65536};
	struct timestamp_facts facts;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error error = {0};
		assert_int_equal(sign_with_openssl(cases[i].key, cases[i].extensions, cases[i].options), 0);
		scratch_read("made.tst", &made);
		scratch_read("ca.pem", &root);
		int result =
			timestamp_verify_token(buf_slice(&made), &imprint, buf_slice(&root), &facts, &error);
		if (cases[i].cause)
			assert_refused(result, &error, cases[i].cause);
		else if (result)
			fail_msg("case %zu: %s", i, error.cause);
	}
}

/* A reissued root with the same name and key also issued the authority. A root with the same name
 * and another key did not. */
TEST_CASE(test_another_root_inside)
{
	struct timestamp_facts facts;
	struct error error = {0};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf root = {.limit = 65536};

	assert_int_equal(sign_with_openssl(EC, GOOD_USAGE, "-cades"), 0);
	scratch_read("made.tst", &made);
	assert_int_equal(scratch_run("openssl req -x509 -config openssl.cnf -extensions ca -key ca.key "
	                             "-out again.pem -subj /CN=Root -days 9"),
	                 0);
	scratch_read("again.pem", &root);
	assert_int_equal(
		timestamp_verify_token(buf_slice(&made), &imprint, buf_slice(&root), &facts, &error), 0);
	assert_true(facts.trusted);
	assert_int_equal(scratch_run("openssl req -x509 -config openssl.cnf -extensions ca -newkey " EC
	                             " -nodes -keyout else.key -out else.pem -subj /CN=Root -days 9"),
	                 0);
	scratch_read("else.pem", &root);
	assert_refused(
		timestamp_verify_token(buf_slice(&made), &imprint, buf_slice(&root), &facts, &error),
		&error, "certificate path");
}

TEST_MAIN(make_sample, drop_sample)
