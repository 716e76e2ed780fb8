#include "support.h"

#include <openssl/pem.h>

#include "base/clock.h"
#include "seal/authority.h"
#include "seal/cms.h"
#include "seal/signed_data.h"
#include "stride.h"

static struct signer *signer;
static struct cms_signer cms_signer;
static struct sha256 digest;
static const struct slice no_roots;
static const char content[] = "what is signed\n";

/* With the same roots for the signer and the authority. */
static int verify_with(struct slice cms, const struct sha256 *of, struct slice roots,
                       struct cms_facts *ret_facts, struct error *error)
{
	return cms_verify(cms, of, &(struct trust_roots){.signers = roots, .timestamps = roots},
	                  ret_facts, error);
}

static int make_signer(void **state)
{
	scratch_begin(state);
	signer = development_signer();
	cms_signer = (struct cms_signer){signer, SIGNER_REPORT};
	digest = sha256_of(content, strlen(content));
	scratch_write("content", slice_of(content));
	scratch_write("trust.pem", signer_trust(signer));
	return 0;
}

static int drop_signer(void **state)
{
	signer_stop(signer);
	return scratch_end(state);
}

static int embedded_timestamp(void *context, const struct sha256 *imprint, struct buf *out,
                              struct error *error)
{
	AUTHORITY_RESULT_AUTO struct authority_result result = {0};

	int code = authorities_timestamp(context, imprint, TIME_NONE, &result, NULL, error);
	if (code == 0)
		buf_add_slice(out, buf_slice(&result.token));
	return code;
}

static struct authorities *embedded_authority(void)
{
	struct authority_options one = {.url = AUTHORITY_EMBEDDED_URL};
	struct authorities_options options = {.authorities = &one, .count = 1, .signer = signer};
	struct authorities *authorities = NULL;

	assert_int_equal(authorities_create(&options, &authorities, NULL), 0);
	return authorities;
}

static void create_at(int64_t signing_time_us, bool timestamped, struct buf *out)
{
	struct authorities *authorities = embedded_authority();
	struct error error = {0};
	struct cms_signing signing = {
		.certificates_pem = signer_certificates(signer),
		.sign = cms_sign_with_signer,
		.sign_context = &cms_signer,
		.timestamp = timestamped ? embedded_timestamp : NULL,
		.timestamp_context = authorities,
	};

	buf_init(out, CMS_SIZE_MAX);
	if (cms_create(&digest, signing_time_us, &signing, out, &error) != 0)
		fail_msg("%s", error.cause);
	authorities_free(authorities);
}

static void create(bool timestamped, struct buf *out)
{
	create_at(TIME_NONE, timestamped, out);
}

TEST_CASE(test_verifies)
{
	for (int timestamped = 0; timestamped < 2; timestamped++) {
		BUF_AUTO struct buf cms;
		struct cms_facts facts;
		create(timestamped, &cms);
		assert_int_equal(verify_with(buf_slice(&cms), &digest, signer_trust(signer), &facts, NULL),
		                 0);
		assert_true(facts.trusted);
		assert_int_equal(facts.signing_time_us, TIME_NONE);
		assert_string_equal(facts.signer.subject, "CN=Development report signer,"
		                                          "O=Constancia development\\, no legal value");
		assert_int_equal(facts.has_timestamp, timestamped);
		assert_int_equal(facts.timestamp.trusted, timestamped);
		if (timestamped)
			assert_int_equal(facts.timestamp.accuracy_us, 1000000);
		assert_int_equal(verify_with(buf_slice(&cms), &digest, no_roots, &facts, NULL), 0);
		assert_false(facts.trusted);
		assert_false(facts.timestamp.trusted);
		assert_int_equal(facts.has_timestamp, timestamped);
	}
}

TEST_CASE(test_openssl_agrees)
{
	for (int timestamped = 0; timestamped < 2; timestamped++) {
		BUF_AUTO struct buf cms;
		create(timestamped, &cms);
		scratch_write("made.p7s", buf_slice(&cms));
		assert_int_equal(scratch_run("openssl cms -verify -cades -inform DER -in made.p7s -content "
		                             "content -binary -purpose any -CAfile trust.pem"),
		                 0);
		assert_int_equal(
			scratch_run("openssl cms -cmsout -print -inform DER -in made.p7s > text && "
		                "! grep -q 'object: signingTime' text && "
		                "grep -q id-smime-aa-signingCertificateV2 text"),
			0);
		assert_int_equal(scratch_run("grep -q timeStampToken text"), timestamped ? 0 : 1);
	}
}

TEST_CASE(test_signing_time)
{
	static const struct {
		const char *time, *printed;
	} cases[] = {
		{"2026-11-21T09:15:02.999999Z", "UTCTIME:Nov 21 09:15:02 2026 GMT"},
		{"2049-12-31T23:59:59Z", "UTCTIME:Dec 31 23:59:59 2049 GMT"},
		{"2050-01-01T00:00:00Z", "GENERALIZEDTIME:Jan  1 00:00:00 2050 GMT"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		BUF_AUTO struct buf cms;
		struct cms_facts facts;
		int64_t time_us;
		assert_int_equal(time_parse(slice_of(cases[i].time), "time", &time_us, NULL), 0);
		create_at(time_us, false, &cms);
		assert_int_equal(verify_with(buf_slice(&cms), &digest, no_roots, &facts, NULL), 0);
		assert_int_equal(facts.signing_time_us, time_us / US_PER_SECOND * US_PER_SECOND);
		scratch_write("made.p7s", buf_slice(&cms));
		assert_int_equal(scratch_run("openssl cms -cmsout -print -inform DER -in made.p7s | "
		                             "grep -q '%s'",
		                             cases[i].printed),
		                 0);
	}
}

static void assert_refused(int result, const struct error *error, const char *cause)
{
	if (result != ERR_INVALID_EVIDENCE)
		fail_msg("%d, where it should be refused for '%s'", result, cause);
	if (!strstr(error->cause, cause))
		fail_msg("refused, but not for '%s': %s", cause, error->cause);
}

/* Signed by the right key, but not in the only valid form of a time. */
/* Signs any bytes, as the owner of the key could. */
static int sign_by_key(struct slice bytes, struct buf *out)
{
	FILE *file = fopen(scratch_path("signer/report.pem"), "r");
	EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	unsigned char signature[1024];
	size_t size = sizeof signature;

	fclose(file);
	assert_int_equal(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key), 1);
	assert_int_equal(
		EVP_DigestSign(context, signature, &size, (const unsigned char *)bytes.data, bytes.size),
		1);
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(key);
	buf_add(out, signature, size);
	return buf_check(out);
}

TEST_CASE(test_malformed_signing_time)
{
	static const struct {
		int type;
		const char *text;
	} cases[] = {
		{V_ASN1_GENERALIZEDTIME, "20261121091502Z"},   {V_ASN1_UTCTIME, "2611210915Z"},
		{V_ASN1_UTCTIME, "261121091502+0000"},         {V_ASN1_UTCTIME, "261321091502Z"},
		{V_ASN1_GENERALIZEDTIME, "20510101000000.5Z"}, {V_ASN1_UTF8STRING, "261121091502Z"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		SIGNED_CONTENT_AUTO SignedContent *parsed = NULL;
		BUF_AUTO struct buf cms, attributes, signature;
		struct cms_facts facts;
		struct error error = {0};
		create(false, &cms);
		buf_init(&attributes, SIGNER_BYTES_MAX);
		buf_init(&signature, 4096);
		assert_int_equal(signed_content_parse(buf_slice(&cms), &parsed, NULL), 0);
		SignerInfo *info = signed_content_signer(parsed);
		X509at_add1_attr_by_NID(&info->signed_attributes, NID_pkcs9_signingTime, cases[i].type,
		                        (const unsigned char *)cases[i].text, (int)strlen(cases[i].text));
		assert_int_equal(signed_attributes_write(info->signed_attributes, &attributes), 0);
		assert_int_equal(sign_by_key(buf_slice(&attributes), &signature), 0);
		ASN1_STRING_set(info->signature, signature.data, (int)signature.size);
		buf_clear(&cms);
		assert_int_equal(signed_content_write(parsed, &cms), 0);
		assert_refused(verify_with(buf_slice(&cms), &digest, no_roots, &facts, &error), &error,
		               "signing-time attribute is malformed");
	}
}

TEST_CASE(test_refusals)
{
	struct sha256 other = sha256_of("other", 5);
	struct cms_facts facts;
	struct error error = {0};
	BUF_AUTO struct buf cms;
	BUF_AUTO struct buf root = {.limit = 65536};

	create(true, &cms);
	assert_refused(verify_with(buf_slice(&cms), &other, no_roots, &facts, &error), &error,
	               "content was altered");
	/* The root of the signer alone does not make the timestamp trusted, nor vice versa. */
	scratch_read("signer/report-root.pem", &root);
	assert_refused(verify_with(buf_slice(&cms), &digest, buf_slice(&root), &facts, &error), &error,
	               "certificate path");
	scratch_read("signer/timestamp-root.pem", &root);
	assert_refused(verify_with(buf_slice(&cms), &digest, buf_slice(&root), &facts, &error), &error,
	               "certificate path");
	assert_int_equal(verify_with(buf_slice(&cms), &digest, slice_of("no PEM"), &facts, &error),
	                 ERR_VALIDATION);
	assert_int_equal(verify_with(slice_of(""), &digest, no_roots, &facts, &error),
	                 ERR_INVALID_EVIDENCE);
	assert_int_equal(cms_size(buf_slice(&cms)), cms.size);
	buf_add(&cms, "\0", 1);
	assert_int_equal(cms_size(buf_slice(&cms)), cms.size - 1);
	assert_refused(verify_with(buf_slice(&cms), &digest, no_roots, &facts, &error), &error, "DER");
	assert_int_equal(cms_size(slice_of("")), 0);
	assert_int_equal(cms_size(slice_make("\x30\x80\x00\x00", 4)), 0);
	assert_int_equal(cms_size(slice_make("\x30\x05\x00", 3)), 0);
	assert_int_equal(cms_size(slice_make("\x31\x00", 2)), 0);
}

/* Flips every step-th bit. */
static void flip(const struct buf *cms, struct slice roots, size_t step)
{
	struct cms_facts facts;
	char *copy = malloc(cms->size);

	assert_non_null(copy);
	for (size_t place = 0; place * step < cms->size * 8; STRIDE(place)) {
		size_t bit = place * step;
		memcpy(copy, cms->data, cms->size);
		copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
		if (verify_with(slice_make(copy, cms->size), &digest, roots, &facts, NULL) !=
		    ERR_INVALID_EVIDENCE)
			fail_msg("bit %zu of byte %zu flipped, and taken", bit % 8, bit / 8);
	}
	free(copy);
}

TEST_CASE(test_every_flipped_bit)
{
	BUF_AUTO struct buf cms;

	create(true, &cms);
	flip(&cms, signer_trust(signer), 1);
}

TEST_CASE(test_every_flipped_bit_without_roots)
{
	BUF_AUTO struct buf cms;

	create(false, &cms);
	flip(&cms, no_roots, 1);
}

TEST_CASE(test_every_other_length)
{
	struct cms_facts facts;
	BUF_AUTO struct buf cms;

	create(true, &cms);
	for (size_t size = 0; size < cms.size; STRIDE(size))
		assert_int_equal(verify_with(slice_make(cms.data, size), &digest, no_roots, &facts, NULL),
		                 ERR_INVALID_EVIDENCE);
}

static int fail_to_sign(void *context, struct slice bytes, struct buf *out, struct error *error)
{
	return error_cause(error, ERR_UNAVAILABLE, "no key today");
}

static int sign_wrongly(void *context, struct slice bytes, struct buf *out, struct error *error)
{
	return sign_by_key(slice_of("something else"), out);
}

static int token_over_something_else(void *context, const struct sha256 *imprint, struct buf *out,
                                     struct error *error)
{
	struct sha256 other = sha256_of(imprint, sizeof *imprint);

	return embedded_timestamp(context, &other, out, error);
}

TEST_CASE(test_callbacks)
{
	struct cms_signing signing = {.certificates_pem = signer_certificates(signer),
	                              .sign = fail_to_sign};
	struct cms_facts facts;
	struct error error = {0};
	BUF_AUTO struct buf cms = {.limit = CMS_SIZE_MAX};

	assert_int_equal(cms_create(&digest, TIME_NONE, &signing, &cms, &error), ERR_UNAVAILABLE);
	assert_string_equal(error.cause, "no key today");
	signing.sign = sign_wrongly;
	assert_int_equal(cms_create(&digest, TIME_NONE, &signing, &cms, NULL), 0);
	assert_refused(verify_with(buf_slice(&cms), &digest, no_roots, &facts, &error), &error,
	               "signature does not fit");

	struct authorities *authorities = embedded_authority();
	signing.sign = cms_sign_with_signer;
	signing.sign_context = &cms_signer;
	signing.timestamp = token_over_something_else;
	signing.timestamp_context = authorities;
	buf_clear(&cms);
	assert_int_equal(cms_create(&digest, TIME_NONE, &signing, &cms, NULL), 0);
	assert_refused(verify_with(buf_slice(&cms), &digest, no_roots, &facts, &error), &error,
	               "the imprint of the timestamp is not that of the data");
	authorities_free(authorities);

	signing.certificates_pem = slice_of("none");
	assert_int_equal(cms_create(&digest, TIME_NONE, &signing, &cms, NULL), ERR_REFUSED);
}

/* Signatures of another program: RSA and its signing-time are accepted, other forms are not. */
TEST_CASE(test_foreign_signatures)
{
	static const struct {
		const char *key, *options, *cause;
	} cases[] = {
		{"rsa:2048", "-cades", NULL},
		{"rsa:2048", "-noattr", "does not parse"},
		{"ec -pkeyopt ec_paramgen_curve:P-256", "-cades -nodetach",
	     "the content is detached but must be embedded, or the reverse"},
		{"rsa:2048", "-cades -keyopt rsa_padding_mode:pss", "signature algorithm"},
	};
	struct cms_facts facts;
	BUF_AUTO struct buf cms = {.limit = CMS_SIZE_MAX};

	scratch_write("openssl.cnf",
	              slice_of("[req]\ndistinguished_name=dn\nx509_extensions=own\n[dn]\n"
	                       "[own]\nbasicConstraints=critical,CA:FALSE\n"));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error error = {0};
		assert_int_equal(
			scratch_run(
				"openssl req -x509 -config openssl.cnf -newkey %s -nodes "
				"-keyout own.key -out own.pem -subj /CN=Own -days 9 && openssl cms -sign -binary "
				"-outform DER -signer own.pem -inkey own.key -in content "
				"-nosmimecap -md sha256 -out made.p7s %s",
				cases[i].key, cases[i].options),
			0);
		scratch_read("made.p7s", &cms);
		int result = verify_with(buf_slice(&cms), &digest, no_roots, &facts, &error);
		if (cases[i].cause) {
			assert_refused(result, &error, cases[i].cause);
			continue;
		}
		assert_int_equal(result, 0);
		assert_in_range(clock_now_us() - facts.signing_time_us, 0, US_PER_DAY);
	}
}

/* A real deployment: an RSA key in a file of the operator, with an intermediate. */
TEST_CASE(test_operator_keys)
{
	static const char config[] =
		"[req]\ndistinguished_name=dn\n[dn]\n[ca]\nbasicConstraints=critical,CA:TRUE\n"
		"keyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n"
		"authorityKeyIdentifier=keyid:always\n"
		"[leaf]\nkeyUsage=critical,nonRepudiation\n";
	struct signer *own = NULL;
	struct error error = {0};
	struct cms_facts facts;
	BUF_AUTO struct buf cms = {.limit = CMS_SIZE_MAX};

	scratch_write("openssl.cnf", slice_of(config));
	assert_int_equal(scratch_run("openssl req -x509 -config openssl.cnf -extensions ca -newkey "
	                             "rsa:2048 -nodes -keyout ca.key "
	                             "-out ca.pem -subj /CN=Root -days 9 && "
	                             "openssl req -new -config openssl.cnf -newkey rsa:2048 -nodes "
	                             "-keyout sub.key -out sub.csr "
	                             "-subj /CN=Intermediate && openssl x509 -req -in sub.csr -CA "
	                             "ca.pem -CAkey ca.key -out sub.pem "
	                             "-set_serial 2 -extfile openssl.cnf -extensions ca -days 9 && "
	                             "openssl req -new -config openssl.cnf -newkey rsa:3072 -nodes "
	                             "-keyout leaf.key -out leaf.csr "
	                             "-subj \"/O=A name that is longer than the issuer's/CN=Leaf\" && "
	                             "openssl x509 -req -in leaf.csr -CA sub.pem "
	                             "-CAkey sub.key -out leaf.pem "
	                             "-set_serial 3 -extfile openssl.cnf -extensions leaf -days 9 && "
	                             "cat leaf.pem sub.pem ca.pem > chain.pem"),
	                 0);
	char directory[256], key[256], chain[256];
	strcpy(directory, scratch_path("own"));
	strcpy(key, scratch_path("leaf.key"));
	strcpy(chain, scratch_path("chain.pem"));
	struct signer_options options = {.directory = directory, .key = {.key = key, .chain = chain}};
	if (signer_start(&options, &own, &error) != 0)
		fail_msg("%s", error.cause);
	struct cms_signer context = {own, SIGNER_ARCHIVE};
	struct cms_signing signing = {.certificates_pem = signer_certificates(own),
	                              .sign = cms_sign_with_signer,
	                              .sign_context = &context};
	assert_int_equal(cms_create(&digest, TIME_NONE, &signing, &cms, NULL), 0);
	BUF_AUTO struct buf root = {.limit = 65536};
	scratch_read("ca.pem", &root);
	assert_true(signer_trust(own).size > 0);
	assert_int_equal(verify_with(buf_slice(&cms), &digest, buf_slice(&root), &facts, NULL), 0);
	assert_string_equal(facts.signer.subject, "CN=Leaf,O=A name that is longer than the issuer's");
	assert_int_equal(verify_with(buf_slice(&cms), &digest, no_roots, &facts, NULL), 0);
	scratch_write("made.p7s", buf_slice(&cms));
	assert_int_equal(
		scratch_run("openssl cms -verify -cades -inform DER -in made.p7s -content content "
	                "-binary -purpose any -CAfile ca.pem"),
		0);
	/* DER to the last byte: in a SET the longer certificate comes last, regardless of its owner. */
	assert_int_equal(scratch_run("openssl cms -cmsout -inform DER -in made.p7s -outform DER "
	                             "-out again.p7s && cmp made.p7s again.p7s"),
	                 0);
	flip(&cms, buf_slice(&root), 7);
	signer_stop(own);
}

static int verify_attached(struct slice cms, struct slice roots, struct cms_facts *ret_facts,
                           struct buf *inside)
{
	buf_init(inside, 4096);
	return cms_verify_attached(cms, &(struct trust_roots){.signers = roots, .timestamps = roots},
	                           ret_facts, inside, NULL);
}

/* The document is inside the CMS, as the list of signers is signed. */
TEST_CASE(test_content_inside)
{
	struct authorities *authorities = embedded_authority();
	struct cms_signer purpose = {signer, SIGNER_LIST};
	const struct cms_signing signing = {.certificates_pem = signer_certificates(signer),
	                                    .sign = cms_sign_with_signer,
	                                    .sign_context = &purpose,
	                                    .timestamp = embedded_timestamp,
	                                    .timestamp_context = authorities};
	BUF_AUTO struct buf cms, detached, inside, nothing;
	struct cms_facts facts;
	buf_init(&cms, CMS_LT_SIZE_MAX);
	assert_int_equal(cms_create_attached(slice_of(content), TIME_NONE, &signing, &cms, NULL), 0);
	authorities_free(authorities);
	assert_int_equal(verify_attached(buf_slice(&cms), signer_trust(signer), &facts, &inside), 0);
	assert_true(slice_is(buf_slice(&inside), content));
	assert_true(facts.trusted && facts.has_timestamp && facts.timestamp.trusted);
	scratch_write("made.p7m", buf_slice(&cms));
	assert_int_equal(scratch_run("openssl cms -verify -cades -inform DER -in made.p7m -binary "
	                             "-purpose any -CAfile trust.pem | cmp - content"),
	                 0);
	/* A detached signature does not count as one with content, nor vice versa. */
	create(true, &detached);
	assert_int_equal(verify_attached(buf_slice(&detached), no_roots, &facts, &nothing),
	                 ERR_INVALID_EVIDENCE);
	assert_int_equal(nothing.size, 0);
	assert_int_equal(verify_with(buf_slice(&cms), &digest, no_roots, &facts, NULL),
	                 ERR_INVALID_EVIDENCE);
	for (size_t bit = 0; bit < cms.size * 8; STRIDE(bit)) {
		BUF_AUTO struct buf none;
		cms.data[bit / 8] = (char)(cms.data[bit / 8] ^ 1 << bit % 8);
		assert_int_equal(verify_attached(buf_slice(&cms), signer_trust(signer), &facts, &none),
		                 ERR_INVALID_EVIDENCE);
		cms.data[bit / 8] = (char)(cms.data[bit / 8] ^ 1 << bit % 8);
	}
}

TEST_MAIN(make_signer, drop_signer)
