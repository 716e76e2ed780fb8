/* The kinds of tokens that the standards permit, made by openssl with its keys, and similar ones
 * that are refused. */
#include "support.h"

#include <openssl/pem.h>
#include <openssl/ts.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "seal/signed_data.h"
#include "seal/timestamp.h"
#include "stride.h"
#include "token_parts.h"

static struct sha256 imprint;

/* Makes a PKI: a root, an intermediate below it, and an unrelated root and leaf. */
static int make_authorities(void **state)
{
	static const char config[] =
		"[req]\ndistinguished_name=dn\n[dn]\n[ca]\nbasicConstraints=critical,CA:TRUE\n"
		"keyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n"
		"authorityKeyIdentifier=keyid:always\n"
		"[stranger]\nextendedKeyUsage=critical,timeStamping\nsubjectKeyIdentifier=hash\n"
		"authorityKeyIdentifier=keyid:always\n"
		"[leaf]\nextendedKeyUsage=critical,timeStamping\nsubjectKeyIdentifier=hash\n"
		"authorityKeyIdentifier=keyid:always\n"
		"subjectAltName=DNS:time.example,URI:http://time.example/,dirName:elsewhere\n"
		"[elsewhere]\nCN=Leaf elsewhere\n[list]\ndatabase=index\ndefault_md=sha256\n"
		"default_crl_days=9\n";

	static const char keys[] =
		"for bits in 256 384 521; do openssl genpkey -algorithm EC -pkeyopt "
		"ec_paramgen_curve:P-$bits -out p$bits.key || exit 1; done; "
		"openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -out rsa.key && "
		"openssl genpkey -algorithm RSA-PSS -pkeyopt rsa_keygen_bits:3072 -out pss.key && "
		"openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out weak.key";

	scratch_begin(state);
	if (scratch_run("%s", keys) != 0)
		return -1;
	imprint = sha256_of("kinds", 5);
	scratch_write("openssl.cnf", slice_of(config));
	return scratch_run(
		"ec='ec -pkeyopt ec_paramgen_curve:P-256'; req='openssl req -config openssl.cnf -nodes'; "
		"sign='openssl x509 -req -days 9 -extfile openssl.cnf'; : >index; "
		"$req -x509 -newkey $ec -extensions ca -keyout root.key -out root.pem -subj /CN=Root -days "
		"9 && "
		"$req -x509 -newkey $ec -extensions ca -keyout other.key -out other.pem -subj /CN=Other "
		"-days 9 && "
		"$req -new -newkey $ec -keyout middle.key -out middle.csr -subj /CN=Middle && "
		"$sign -in middle.csr -CA root.pem -CAkey root.key -set_serial 2 -extensions ca -out "
		"middle.pem && "
		"$req -new -newkey $ec -keyout stranger.key -out stranger.csr -subj /CN=Stranger && "
		"$sign -in stranger.csr -CA other.pem -CAkey other.key -set_serial 3 -extensions stranger "
		"-out stranger.pem && "
		"openssl ca -config openssl.cnf -name list -gencrl -cert root.pem -keyfile root.key -out "
		"list.pem && openssl crl -in list.pem -outform DER -out list.der && "
		"cat middle.pem root.pem >path.pem && cat path.pem stranger.pem other.pem >many.pem");
}

/* Takes ownership of `tsa` and `extension`, which may be NULL. */
static void write_info_with(bool with_accuracy, GENERAL_NAME *tsa, X509_EXTENSION *extension)
{
	TS_TST_INFO *info = TS_TST_INFO_new();
	TS_MSG_IMPRINT *message = TS_MSG_IMPRINT_new();
	TS_ACCURACY *accuracy = TS_ACCURACY_new();
	X509_ALGOR *algorithm = X509_ALGOR_new();
	ASN1_INTEGER *number = ASN1_INTEGER_new();
	ASN1_OBJECT *policy = OBJ_txt2obj("1.2.3.4", 1);
	/* So that the certificates made for it are already valid. */
	ASN1_GENERALIZEDTIME *later = ASN1_GENERALIZEDTIME_adj(NULL, time(NULL), 0, 60);
	unsigned char *der = NULL;

	X509_ALGOR_set0(algorithm, OBJ_nid2obj(NID_sha256), V_ASN1_NULL, NULL);
	TS_MSG_IMPRINT_set_algo(message, algorithm);
	TS_MSG_IMPRINT_set_msg(message, imprint.bytes, SHA256_SIZE);
	ASN1_INTEGER_set(number, 5);
	TS_ACCURACY_set_seconds(accuracy, number);
	TS_TST_INFO_set_version(info, 1);
	TS_TST_INFO_set_policy_id(info, policy);
	TS_TST_INFO_set_msg_imprint(info, message);
	TS_TST_INFO_set_serial(info, number);
	TS_TST_INFO_set_time(info, later);
	if (with_accuracy)
		TS_TST_INFO_set_accuracy(info, accuracy);
	if (tsa)
		TS_TST_INFO_set_tsa(info, tsa);
	if (extension)
		TS_TST_INFO_add_ext(info, extension, -1);
	int size = i2d_TS_TST_INFO(info, &der);
	assert_true(size > 0);
	GENERAL_NAME_free(tsa);
	X509_EXTENSION_free(extension);
	scratch_write("info.der", slice_make(der, (size_t)size));
	OPENSSL_free(der);
	ASN1_GENERALIZEDTIME_free(later);
	ASN1_OBJECT_free(policy);
	ASN1_INTEGER_free(number);
	X509_ALGOR_free(algorithm);
	TS_ACCURACY_free(accuracy);
	TS_MSG_IMPRINT_free(message);
	TS_TST_INFO_free(info);
}

static void write_info(bool with_accuracy)
{
	write_info_with(with_accuracy, NULL, NULL);
}

#define P256 "p256.key"
#define P384 "p384.key"
#define P521 "p521.key"
#define RSA "rsa.key"
#define PSS "-keyopt rsa_padding_mode:pss"

/* Signs by a leaf below the intermediate and includes these certificates. */
static void make_token(const char *key, const char *options, const char *certificates,
                       struct buf *out)
{
	int status =
		scratch_run("openssl req -config openssl.cnf -new -key %s -out "
	                "leaf.csr -subj /CN=Leaf && "
	                "openssl x509 -req -days 9 -extfile openssl.cnf -in leaf.csr -CA middle.pem "
	                "-CAkey middle.key -set_serial 7 -extensions leaf -out leaf.pem && "
	                "openssl cms -sign -binary -nodetach -outform DER -econtent_type "
	                "1.2.840.113549.1.9.16.1.4 -nosmimecap -cades -signer leaf.pem -inkey %s "
	                "-in info.der -out made.tst %s %s",
	                key, key, certificates, options);
	if (status != 0)
		fail_msg("openssl: %s %s", key, options);
	scratch_read("made.tst", out);
}

/* Reads the certificates of a PEM file and appends them in DER. */
static void read_der(const char *name, struct buf *out)
{
	FILE *file = fopen(scratch_path(name), "r");
	X509 *certificate;

	assert_non_null(file);
	buf_clear(out);
	while ((certificate = PEM_read_X509(file, NULL, NULL, NULL))) {
		unsigned char *der = NULL;
		int size = i2d_X509(certificate, &der);
		buf_add(out, der, (size_t)size);
		OPENSSL_free(der);
		X509_free(certificate);
	}
	fclose(file);
	assert_true(out->size > 0);
}

static int verify(struct slice token, const char *known, struct buf *complete,
                  struct timestamp_facts *facts, struct error *error)
{
	BUF_AUTO struct buf roots = {.limit = 65536};
	BUF_AUTO struct buf known_path = {.limit = 65536};

	scratch_read("root.pem", &roots);
	if (known)
		read_der(known, &known_path);
	struct timestamp_path path = {.known = buf_slice(&known_path), .complete = complete};
	return timestamp_verify_token_path(token, &imprint, buf_slice(&roots), &path, facts, error);
}

static void assert_refused(int result, const struct error *error, const char *cause)
{
	if (result != ERR_INVALID_EVIDENCE)
		fail_msg("%d, where it should be refused for '%s'", result, cause);
	if (!strstr(error->cause, cause))
		fail_msg("refused, but not for '%s': %s", cause, error->cause);
}

TEST_CASE(test_algorithms)
{
	static const struct {
		const char *key, *options;
		const char *cause; /* NULL: accepted */
	} cases[] = {
		{P256, "-md sha256", NULL},
		{P384, "-md sha384", NULL},
		{P521, "-md sha512", NULL},
		{P256, "-md sha512", NULL},
		{RSA, "-md sha384", NULL},
		{RSA, "-md sha512", NULL},
		{RSA, "-md sha256 " PSS, NULL},
		{RSA, "-md sha384 " PSS, NULL},
		{RSA, "-md sha512 " PSS " -keyopt rsa_pss_saltlen:20", NULL},
		{RSA, "-md sha256 " PSS " -keyopt rsa_pss_saltlen:0", NULL},
		{"pss.key", "-md sha256 " PSS, NULL},
		{P256, "-md sha256 -stream", NULL}, /* BER, of indefinite lengths */
		/* OpenSSL then states "rsaEncryption" but signs otherwise. */
		{"pss.key", "-md sha256", "signature algorithm"},
		{P256, "-md sha1", "digest algorithm"},
		{P256, "-md sha224", "digest algorithm"},

		{RSA, "-md sha1 " PSS, "digest algorithm"},
		{RSA, "-md sha256 " PSS " -keyopt rsa_mgf1_md:sha1", "signature algorithm"},
		{RSA, "-md sha256 " PSS " -keyopt rsa_mgf1_md:sha512", "signature algorithm"},
		{"weak.key", "-md sha256", "certificate path"},
		{"weak.key", "-md sha256 " PSS, "certificate path"},
	};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	write_info(true);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct timestamp_facts facts;
		struct error error = {0};
		make_token(cases[i].key, cases[i].options, "-certfile path.pem", &made);
		int result = verify(buf_slice(&made), NULL, NULL, &facts, &error);
		if (cases[i].cause)
			assert_refused(result, &error, cases[i].cause);
		else if (result)
			fail_msg("%s %s: %s", cases[i].key, cases[i].options, error.cause);
		else
			assert_int_equal(facts.accuracy_us, 5 * US_PER_SECOND);
	}
}

TEST_CASE(test_no_accuracy)
{
	struct timestamp_facts facts;
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	write_info(false);
	make_token(P256, "", "-certfile path.pem", &made);
	assert_int_equal(verify(buf_slice(&made), NULL, NULL, &facts, NULL), 0);
	assert_int_equal(facts.accuracy_us, TIMESTAMP_ACCURACY_UNKNOWN);
}

/* Makes a name; "CN:…" is a directory name; NULL: none. */
static GENERAL_NAME *make_name(const char *text)
{
	const char *value = text ? strchr(text, ':') + 1 : NULL;
	if (!text)
		return NULL;
	if (strncmp(text, "CN:", 3) != 0)
		return a2i_GENERAL_NAME(NULL, NULL, NULL, strncmp(text, "DNS:", 4) == 0 ? GEN_DNS : GEN_URI,
		                        value, 0);
	GENERAL_NAME *made = GENERAL_NAME_new();
	X509_NAME *name = X509_NAME_new();
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)value, -1, -1, 0);
	GENERAL_NAME_set0_value(made, GEN_DIRNAME, name);
	return made;
}

static bool openssl_verifies(void)
{
	char hex[65];

	hex_encode(imprint.bytes, SHA256_SIZE, hex);
	return scratch_run("openssl ts -verify -token_in -in made.tst -digest %s -CAfile root.pem "
	                   "-attime $(($(date +%%s) + 61))",
	                   hex) == 0;
}

/* As `openssl ts -verify` judges it, which the evidence names for a check by hand. */
TEST_CASE(test_name)
{
	static const struct {
		const char *name;
		const char *cause; /* NULL: accepted */
	} cases[] = {
		{NULL, NULL},
		{"CN:Leaf", NULL},
		{"CN:LEAF", NULL}, /* names are compared without regard to case: RFC 5280 section 7.1 */
		{"CN:Leaf elsewhere", NULL},
		{"DNS:time.example", NULL},
		{"URI:http://time.example/", NULL},
		{"CN:Middle", "tsa in the TSTInfo, CN=Middle, is no name of the certificate that signed "
	                  "it, CN=Leaf"},
		{"CN:Leaves", "tsa in the TSTInfo, CN=Leaves"},
		{"DNS:other.example", "tsa in the TSTInfo, (no directory name)"},
		{"URI:time.example", "tsa in the TSTInfo"},
	};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct timestamp_facts facts;
		struct error error = {0};
		write_info_with(true, make_name(cases[i].name), NULL);
		make_token(P256, "", "-certfile path.pem", &made);
		int result = verify(buf_slice(&made), NULL, NULL, &facts, &error);
		if (cases[i].cause)
			assert_refused(result, &error, cases[i].cause);
		else if (result)
			fail_msg("%s: %s", cases[i].name ? cases[i].name : "(none)", error.cause);
		assert_int_equal(openssl_verifies(), !cases[i].cause);
		result =
			timestamp_verify_token(buf_slice(&made), &imprint, slice_make(NULL, 0), &facts, &error);
		assert_int_equal(result, cases[i].cause ? ERR_INVALID_EVIDENCE : 0);
	}
}

/* A critical one may change what the token means: RFC 3161 section 2.4.2. */
TEST_CASE(test_extensions)
{
	static const struct {
		const char *extension;
		const char *cause;
	} cases[] = {
		{"DER:0500", NULL},
		{"critical,DER:0500", "the TSTInfo has an unknown critical extension, 1.2.3.4"},
	};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct timestamp_facts facts;
		struct error error = {0};
		write_info_with(true, NULL, X509V3_EXT_conf(NULL, NULL, "1.2.3.4", cases[i].extension));
		make_token(P256, "", "-certfile path.pem", &made);
		int result = verify(buf_slice(&made), NULL, NULL, &facts, &error);
		if (cases[i].cause)
			assert_refused(result, &error, cases[i].cause);
		else
			assert_int_equal(result, 0);
	}
}

TEST_CASE(test_two_signers)
{
	struct timestamp_facts facts;
	struct error error = {0};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	write_info(true);
	make_token(P256, "-signer stranger.pem -inkey stranger.key", "-certfile path.pem", &made);
	assert_refused(verify(buf_slice(&made), NULL, NULL, &facts, &error), &error, "one signer");
}

/* Any certificates in addition to the path have no effect. */
TEST_CASE(test_certificates)
{
	static const struct {
		const char *inside, *known;
		const char *cause;
	} cases[] = {
		{"-certfile path.pem", NULL, NULL},
		{"-certfile middle.pem", NULL, NULL},
		{"-certfile many.pem", NULL, NULL},
		{"", "middle.pem", NULL},
		{"", "many.pem", NULL},
		{"-certfile middle.pem", "other.pem", NULL},
		{"", NULL, "certificate path"},
		{"", "other.pem", "certificate path"},
		{"-certfile other.pem", "stranger.pem", "certificate path"},
	};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf complete = {.limit = 65536};
	BUF_AUTO struct buf wanted = {.limit = 65536};

	write_info(true);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct timestamp_facts facts;
		struct error error = {0};
		buf_clear(&complete);
		make_token(P256, "", cases[i].inside, &made);
		int result = verify(buf_slice(&made), cases[i].known, &complete, &facts, &error);
		if (cases[i].cause) {
			assert_refused(result, &error, cases[i].cause);
			assert_int_equal(complete.size, 0);
			continue;
		}
		if (result)
			fail_msg("case %zu: %s", i, error.cause);
		assert_int_equal(scratch_run("cat leaf.pem path.pem >whole.pem"), 0);
		read_der("whole.pem", &wanted);
		assert_true(slice_equal(buf_slice(&complete), buf_slice(&wanted)));
		struct slice rest = buf_slice(&complete), one;
		for (size_t n = 0; n < 3; n++)
			assert_true(timestamp_next_certificate(&rest, &one));
		assert_false(timestamp_next_certificate(&rest, &one));
	}
}

/* Certificates that are not X.509 (CertificateChoices) have no effect. */
TEST_CASE(test_other_certificates)
{
	static const struct {
		int tag, version;
		const char *cause; /* NULL: accepted */
	} cases[] = {
		{0, 3, NULL},
		{0xa2, 4, NULL}, /* version 2 attribute certificate */
		{0xa2, 3, NULL}, /* as in RFC 2630 */
		{0xa1, 3, NULL}, /* version 1 attribute certificate */
		{0xa0, 3, NULL}, /* extended certificate of PKCS #6 */
		{0xa3, 5, NULL}, /* any other format */
		{0xa3, 3, NULL},
		{0, 4, "version of the SignedData"},
		{0, 5, "version of the SignedData"},
		{0, 1, "version of the SignedData"},
		{0xa1, 4, "version of the SignedData"},
		{0xa2, 5, "version of the SignedData"},
		{0xa3, 4, "version of the SignedData"},
		{0xa4, 3, "does not parse"},
		{0x31, 3, "does not parse"},
	};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf path = {.limit = 65536};
	BUF_AUTO struct buf choice = {.limit = 256};
	BUF_AUTO struct buf complete = {.limit = TIMESTAMP_RESPONSE_MAX};

	write_info(true);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct timestamp_facts facts;
		struct error error = {0};
		make_token(P256, "", "", &made);
		buf_clear(&choice);
		if (cases[i].tag)
			put_element(cases[i].tag, slice_make("\x06\x02\x2a\x03\x05\x00", 6), &choice);
		token_add_choice(&made, cases[i].version, buf_slice(&choice));
		int result = verify(buf_slice(&made), "middle.pem", &path, &facts, &error);
		if (cases[i].cause) {
			assert_refused(result, &error, cases[i].cause);
			continue;
		}
		if (result)
			fail_msg("case %zu: %s", i, error.cause);
		/* They are kept when a token is written again with its path. */
		buf_clear(&complete);
		assert_int_equal(
			timestamp_token_add_certificates(buf_slice(&made), buf_slice(&path), &complete, &error),
			0);
		assert_true(!choice.size || memmem(complete.data, complete.size, choice.data, choice.size));
		assert_int_equal(verify(buf_slice(&complete), NULL, NULL, &facts, &error), 0);
		scratch_write("other.tst", buf_slice(&complete));
		assert_int_equal(
			scratch_run("openssl cms -verify -inform DER -in other.tst -CAfile root.pem "
		                "-purpose timestampsign -binary -out info.out && cmp info.out "
		                "info.der"),
			0);
		buf_clear(&path);
	}
}

/* Our own tokens have none of them: one is refused. */
TEST_CASE(test_own_have_no_others)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	struct error error = {0};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	write_info(true);
	make_token(P256, "", "", &made);
	assert_int_equal(signed_content_parse(buf_slice(&made), &content, &error), 0);
	SignedContent_free(content);
	content = NULL;
	token_add_choice(&made, 4, slice_make("\xa2\x02\x05\x00", 4));
	assert_refused(signed_content_parse(buf_slice(&made), &content, &error), &error,
	               "an embedded certificate is not an X.509 certificate");
}

/* A damaged root indicates damage, even where the trusted one replaces it. */
TEST_CASE(test_damaged_certificate)
{
	struct timestamp_facts facts;
	struct error error = {0};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	write_info(true);
	make_token(P256, "", "-certfile many.pem", &made);
	char *found = NULL;
	for (size_t i = 0; i + 5 < made.size; i++)
		if (memcmp(made.data + i, "Other", 5) == 0)
			found = made.data + i; /* the last one is the name of the root itself */
	assert_non_null(found);
	*found ^= 1;
	assert_refused(verify(buf_slice(&made), NULL, NULL, &facts, &error), &error, "self-issued");
}

/* Attributes that may be added after signing: the token is accepted, and its path is the same. */
TEST_CASE(test_unsigned)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	struct timestamp_facts facts;
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf list = {.limit = 65536};
	ASN1_TYPE *revocation = ASN1_TYPE_new();
	ASN1_STRING *der = ASN1_STRING_new();

	write_info(true);
	make_token(P256, "", "-certfile path.pem", &made);
	assert_int_equal(signed_content_parse(buf_slice(&made), &content, NULL), 0);
	SignerInfo *signer = signed_content_signer(content);
	for (int i = 0; i < 2; i++)
		X509at_add1_attr_by_OBJ(&signer->unsigned_attributes,
		                        OBJ_nid2obj(i ? NID_pkcs9_unstructuredName : NID_friendlyName),
		                        V_ASN1_UTF8STRING, (const unsigned char *)"x", 1);
	scratch_read("list.der", &list);
	ASN1_STRING_set(der, list.data, (int)list.size);
	ASN1_TYPE_set(revocation, V_ASN1_SEQUENCE, der);
	content->data->revocations = sk_ASN1_TYPE_new_null();
	sk_ASN1_TYPE_push(content->data->revocations, revocation);
	buf_clear(&made);
	assert_int_equal(signed_content_write(content, &made), 0);
	assert_int_equal(verify(buf_slice(&made), NULL, NULL, &facts, NULL), 0);
	scratch_write("more.tst", buf_slice(&made));
	char hex[65];
	hex_encode(imprint.bytes, SHA256_SIZE, hex);
	assert_int_equal(scratch_run("openssl cms -cmsout -print -inform DER -in more.tst | "
	                             "grep -q 'CN *= *Root'"),
	                 0);
}

/* An OCSP response among the CRLs, as in RFC 5940. RFC 5652 then requires version 5, but some
 * programs that add it leave version 3. */
TEST_CASE(test_ocsp_inside)
{
	static const unsigned char response[] = "\xa1\x0f\x06\x08\x2b\x06\x01\x05\x05\x07\x10\x02"
											"\x30\x03\x0a\x01\x06";
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	write_info(true);
	for (int version = 3; version <= 5; version++) {
		SIGNED_CONTENT_AUTO SignedContent *content = NULL;
		const unsigned char *position = response;
		struct timestamp_facts facts;
		struct error error = {0};
		make_token(P256, "", "-certfile path.pem", &made);
		assert_int_equal(signed_content_parse(buf_slice(&made), &content, NULL), 0);
		content->data->revocations = sk_ASN1_TYPE_new_null();
		sk_ASN1_TYPE_push(content->data->revocations,
		                  d2i_ASN1_TYPE(NULL, &position, sizeof response - 1));
		ASN1_INTEGER_set(content->data->version, version);
		buf_clear(&made);
		assert_int_equal(signed_content_write(content, &made), 0);
		int result = verify(buf_slice(&made), NULL, NULL, &facts, &error);
		if (version == 4)
			assert_refused(result, &error, "version of the SignedData");
		else if (result)
			fail_msg("version %d: %s", version, error.cause);
		scratch_write("ocsp.tst", buf_slice(&made));
		assert_int_equal(scratch_run("openssl cms -verify -cades -inform DER -in ocsp.tst -CAfile "
		                             "root.pem -purpose timestampsign -out ocsp.out"),
		                 0);
	}
}

/* Makes a token by `openssl ts` that names the whole path: the authority's certificate and those
 * above it. */
static void make_token_that_names_all(struct buf *out)
{
	static const char config[] =
		"[tsa]\ndefault_tsa=own\n[own]\nserial=tsaserial\nsigner_digest=sha256\n"
		"default_policy=1.2.3.4\ndigests=sha256\naccuracy=secs:5\ness_cert_id_chain=yes\n"
		"ess_cert_id_alg=sha256\n";
	char hex[65];

	hex_encode(imprint.bytes, SHA256_SIZE, hex);
	write_info(true);
	make_token(P256, "", "", out); /* for leaf.pem */
	scratch_write("tsa.cnf", slice_of(config));
	assert_int_equal(
		scratch_run("echo 01 >tsaserial && openssl ts -query -digest %s -sha256 "
	                "-no_nonce -cert -out query.tsq && openssl ts -reply "
	                "-config tsa.cnf -queryfile query.tsq -signer leaf.pem -inkey " P256
	                " -chain path.pem -token_out -out all.tst",
	                hex),
		0);
	scratch_read("all.tst", out);
}

/* Replaces the included certificates, except that of the signer, by those of a file (NULL:
 * none). */
static void set_certificates(const char *name, struct buf *token)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	BUF_AUTO struct buf der = {.limit = 65536};
	const unsigned char *position, *end;

	assert_int_equal(signed_content_parse_ber(buf_slice(token), &content, NULL), 0);
	STACK_OF(CertificateChoice) *choices = content->data->choices;
	X509 *own = signed_content_certificate(content);
	for (int i = sk_CertificateChoice_num(choices) - 1; i >= 0; i--)
		if (sk_CertificateChoice_value(choices, i)->d.certificate != own)
			CertificateChoice_free(sk_CertificateChoice_delete(choices, i));
	if (name)
		read_der(name, &der);
	position = (const unsigned char *)der.data;
	for (end = position + der.size; position < end;)
		assert_true(
			signed_content_add_certificate(content, d2i_X509(NULL, &position, end - position)));
	buf_clear(token);
	assert_int_equal(signed_content_write(content, token), 0);
}

/* Without roots the path ends where the certificates do: the named ones above it may be missing. */
TEST_CASE(test_more_named_than_there)
{
	static const struct {
		const char *inside;
		const char *cause; /* without roots; NULL: accepted */
	} cases[] = {
		{"path.pem", NULL},
		{"middle.pem", NULL},
		{"root.pem", NULL}, /* not on the path, as the intermediate is missing */
		{NULL, NULL},
		{"other.pem", NULL},
		/* The same name and key, but not the named certificate. */
		{"again.pem", "signing-certificate"},
	};
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	assert_int_equal(
		scratch_run("openssl x509 -req -days 9 -extfile openssl.cnf -in middle.csr -CA "
	                "root.pem -CAkey root.key -set_serial 22 -extensions ca -out "
	                "again.pem && openssl x509 -in root.pem >>again.pem"),
		0);
	make_token_that_names_all(&token); /* now: certificates made later are not valid yet */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct timestamp_facts facts;
		struct error error = {0};
		buf_clear(&made);
		buf_add_slice(&made, buf_slice(&token));
		set_certificates(cases[i].inside, &made);
		int result =
			timestamp_verify_token(buf_slice(&made), &imprint, slice_make(NULL, 0), &facts, &error);
		if (cases[i].cause)
			assert_refused(result, &error, cases[i].cause);
		else if (result)
			fail_msg("case %zu: %s", i, error.cause);
		/* With roots the path is complete, and every named certificate must be on it. */
		const char *known = i < 2 || cases[i].cause ? NULL : "middle.pem";
		result = verify(buf_slice(&made), known, NULL, &facts, &error);
		if (cases[i].cause)
			assert_refused(result, &error, cases[i].cause);
		else
			assert_int_equal(result, 0);
	}
}

/* The parameters of RSA-PSS are not signed. For OpenSSL -1 means "as long as the digest", -2
 * "any". */
TEST_CASE(test_pss_parameters)
{
	static const struct {
		const char *from, *to;
		size_t size;
		const char *cause;
	} cases[] = {
		{"\xa2\x03\x02\x01\x20", "\xa2\x03\x02\x01\xff", 5, "signature algorithm"},
		{"\xa2\x03\x02\x01\x20", "\xa2\x03\x02\x01\xfe", 5, "signature algorithm"},
		{"\xa2\x03\x02\x01\x20", "\xa2\x03\x02\x01\x1f", 5, "does not fit"},
	};
	struct timestamp_facts facts;
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	write_info(true);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error error = {0};
		make_token(RSA, "-md sha256 " PSS " -keyopt rsa_pss_saltlen:32", "-certfile path.pem",
		           &made);
		assert_int_equal(verify(buf_slice(&made), NULL, NULL, &facts, NULL), 0);
		char *found = memmem(made.data, made.size, cases[i].from, cases[i].size);
		assert_non_null(found);
		memcpy(found, cases[i].to, cases[i].size);
		assert_refused(verify(buf_slice(&made), NULL, NULL, &facts, &error), &error,
		               cases[i].cause);
	}
}

/* As many bits as time allows: an altered token is never accepted. A certificate outside the path
 * that is not self-issued is left out here, because it has no effect. */
TEST_CASE(test_flipped_bits)
{
	static const struct {
		const char *key, *options, *inside;
	} cases[] = {
		{P384, "-md sha384", "-certfile path.pem"},
		{RSA, "-md sha256 " PSS, "-certfile path.pem"},
		{P256, "-md sha256 -stream", "-certfile path.pem"},
	};
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};

	write_info(false);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct timestamp_facts facts;
		make_token(cases[i].key, cases[i].options, cases[i].inside, &made);
		for (size_t at = 0; at < made.size; STRIDE(at)) {
			char bit = (char)(1 << (at + i) % 8);
			made.data[at] ^= bit;
			if (verify(buf_slice(&made), NULL, NULL, &facts, NULL) != ERR_INVALID_EVIDENCE)
				fail_msg("case %zu: a bit of byte %zu flipped, and taken", i, at);
			made.data[at] ^= bit;
		}
	}
}

/* Everything after the token in a BER response is removed, and the signed bytes are unchanged. */
TEST_CASE(test_response_ends_with_token)
{
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf response = {.limit = TIMESTAMP_RESPONSE_MAX};
	struct slice token;

	write_info(true);
	make_token(P256, "-stream", "-certfile path.pem", &made);
	assert_int_equal((unsigned char)made.data[1], 0x80);
	buf_add(&response, "\x30\x80\x30\x80\x02\x01\x00\x00\x00", 9);
	buf_add_slice(&response, buf_slice(&made));
	buf_add(&response, "\0\0", 2);
	assert_int_equal(timestamp_response_token(buf_slice(&response), &token, NULL), 0);
	assert_true(slice_equal(token, buf_slice(&made)));
	assert_int_equal(timestamp_response_end_with_token(&response, NULL), 0);
	assert_true(response.size > made.size);
	assert_memory_equal(response.data + response.size - made.size, made.data, made.size);
	assert_int_equal(timestamp_response_token(buf_slice(&response), &token, NULL), 0);
	assert_true(slice_equal(token, buf_slice(&made)));
	scratch_write("reply.tsr", buf_slice(&response));
	assert_int_equal(scratch_run("openssl ts -reply -in reply.tsr -text | grep -q 'Granted'"), 0);
	/* A response that ends with the token is not changed. */
	size_t size = response.size;
	assert_int_equal(timestamp_response_end_with_token(&response, NULL), 0);
	assert_int_equal(response.size, size);
	buf_add(&response, "\0\0", 2);
	assert_int_equal(timestamp_response_token(buf_slice(&response), &token, NULL),
	                 ERR_INVALID_EVIDENCE);
}

/* With the path inside and in DER, for verifiers that look nowhere else: openssl needs only the
 * root. */
TEST_CASE(test_completed)
{
	struct timestamp_facts facts;
	BUF_AUTO struct buf made = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf path = {.limit = 65536};
	BUF_AUTO struct buf complete = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf again = {.limit = TIMESTAMP_RESPONSE_MAX};
	char hex[65];

	write_info(true);
	make_token(P256, "-stream", "", &made);
	hex_encode(imprint.bytes, SHA256_SIZE, hex);
	assert_int_equal(scratch_run("openssl ts -verify -token_in -in made.tst -digest %s -CAfile "
	                             "root.pem",
	                             hex),
	                 1);
	assert_int_equal(verify(buf_slice(&made), "middle.pem", &path, &facts, NULL), 0);
	assert_int_equal(
		timestamp_token_add_certificates(buf_slice(&made), buf_slice(&path), &complete, NULL), 0);
	assert_int_equal(verify(buf_slice(&complete), NULL, NULL, &facts, NULL), 0);
	scratch_write("complete.tst", buf_slice(&complete));
	assert_int_equal(scratch_run("openssl ts -verify -token_in -in complete.tst -digest %s -CAfile "
	                             "root.pem",
	                             hex),
	                 0);
	assert_int_equal(
		timestamp_token_add_certificates(buf_slice(&complete), buf_slice(&path), &again, NULL), 0);
	assert_true(slice_equal(buf_slice(&complete), buf_slice(&again)));
	assert_int_equal(
		timestamp_token_add_certificates(slice_of("0"), buf_slice(&path), &again, NULL),
		ERR_INVALID_EVIDENCE);
}

TEST_MAIN(make_authorities, scratch_end)
