/* The signature of an archive with its validation data inside (CAdES-BASELINE-LT): complete, or
 * refused. Nothing is signed over that data, so every change must be detected by its content. */
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "testing.h"
#include "pki.h"
#include "base/clock.h"
#include "seal/signed_data.h"
#include "seal/validation_set.h"
#include "verify/verify_check.h"
#include "stride.h"
#include "time_authority.h"

#define SIGNED_AT_US INT64_C(1795252503000000) /* 2026-11-21T09:15:03Z */

enum collected {
	WHOLE,
	NO_LIST,
	REVOKED,
	UNREADABLE,
	NOTHING,
	JUNK,
	OLDER_LIST,
	OTHERS_ANSWER,
	BELOW
};

static struct pki_identity root, signer, other;
static struct pki_identity issuer, below; /* one more certificate up to the root */
static struct time_authority authority;
static struct buf chain, longer_chain, roots, time_roots;
static struct sha256 digest;

static int make_timestamp(void *context, const struct sha256 *imprint, struct buf *out,
                          struct error *error)
{
	struct digest wanted = digest_of_sha256(imprint);
	time_authority_stamp(&authority, &wanted, SIGNED_AT_US, out);
	return 0;
}

static int sign(void *context, struct slice bytes, struct buf *out, struct error *error)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char value[256];
	size_t size = sizeof value;
	const struct pki_identity *own = context;
	assert_int_equal(EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, own->key), 1);
	assert_int_equal(
		EVP_DigestSign(md, value, &size, (const unsigned char *)bytes.data, bytes.size), 1);
	buf_add(out, value, size);
	EVP_MD_CTX_free(md);
	return 0;
}

static void add_list_of(struct validation_set *set, const struct pki_identity *of,
                        int64_t issued_us)
{
	BUF_AUTO struct buf der = {.limit = 65536};
	struct pki_crl wanted = {
		.issuer = of,
		.reason = -1,
		.issued_us = issued_us,
		.next_us = SIGNED_AT_US + 7 * US_PER_DAY,
	};
	pki_crl(&der, &wanted);
	assert_int_equal(validation_set_add(set, VALIDATION_CRL, buf_slice(&der), NULL), 0);
}

static void add_list(struct validation_set *set, int64_t issued_us)
{
	struct pki_identity time_root = {authority.root, authority.root_key};
	add_list_of(set, &time_root, issued_us);
}

static int collect(void *context, struct validation_set *set, struct error *error)
{
	enum collected what = *(const enum collected *)context;
	BUF_AUTO struct buf answer = {.limit = 65536};
	if (what == NOTHING)
		return 0;
	if (what == UNREADABLE)
		return validation_set_add(set, VALIDATION_CRL, slice_of("no DER"), error);
	struct pki_ocsp wanted = {
		.issuer = what == BELOW ? &issuer : &root,
		.certificate = what == BELOW ? below.certificate : signer.certificate,
		.status = what == REVOKED ? V_OCSP_CERTSTATUS_REVOKED : V_OCSP_CERTSTATUS_GOOD,
		.revoked_us = what == REVOKED ? SIGNED_AT_US - US_PER_DAY : TIME_NONE,
		.issued_us = SIGNED_AT_US + US_PER_SECOND,
		.next_us = SIGNED_AT_US + US_PER_DAY,
		.without_certificate = true, /* about the issuer itself: not needed, and not checked */
	};
	pki_ocsp(&answer, &wanted);
	assert_int_equal(validation_set_add(set, VALIDATION_OCSP, buf_slice(&answer), NULL), 0);
	if (what != NO_LIST)
		add_list(set, SIGNED_AT_US - US_PER_SECOND);
	if (what == JUNK) /* an empty SEQUENCE OF INTEGER, of which there may be megabytes */
		assert_int_equal(validation_set_add(set, VALIDATION_CRL, slice_of("0\3\2\1\1"), NULL), 0);
	if (what == BELOW)
		add_list_of(set, &root, SIGNED_AT_US - US_PER_SECOND);
	if (what == OLDER_LIST)
		add_list(set, SIGNED_AT_US - 2 * US_PER_SECOND);
	if (what == OTHERS_ANSWER) {
		buf_clear(&answer);
		wanted.certificate = other.certificate;
		pki_ocsp(&answer, &wanted);
		assert_int_equal(validation_set_add(set, VALIDATION_OCSP, buf_slice(&answer), NULL), 0);
	}
	return 0;
}

static int make(enum collected what, struct buf *out, struct error *error)
{
	struct cms_signing signing = {
		.certificates_pem = buf_slice(what == BELOW ? &longer_chain : &chain),
		.sign = sign,
		.sign_context = what == BELOW ? &below : &signer,
		.timestamp = make_timestamp,
		.collect = collect,
		.collect_context = &what,
	};
	buf_init(out, CMS_LT_SIZE_MAX);
	return cms_create(&digest, SIGNED_AT_US, &signing, out, error);
}

static int judge(struct slice cms, struct slice trusted_roots, enum level *ret_level,
                 struct error *error)
{
	struct trust_roots trusted = {.signers = trusted_roots, .timestamps = buf_slice(&time_roots)};
	struct cms_paths paths = {0};
	struct cms_facts facts;
	buf_init(&paths.signer, CMS_PATH_SIZE_MAX);
	buf_init(&paths.authority, CMS_PATH_SIZE_MAX);
	char cause[LEVEL_CAUSE_SIZE];
	int result = verify_signature(cms, &digest, &trusted, &paths, &facts, ret_level, cause, error);
	buf_free(&paths.signer);
	buf_free(&paths.authority);
	return result;
}

TEST_CASE(has_level_lt_when_whole)
{
	BUF_AUTO struct buf cms;
	struct error error = {0};
	enum level level;
	assert_int_equal(make(WHOLE, &cms, &error), 0);
	if (judge(buf_slice(&cms), buf_slice(&roots), &level, &error))
		fail_msg("%s", error.cause);
	assert_int_equal(level, LEVEL_LT);
	BUF_AUTO struct buf bare;
	assert_int_equal(make(NOTHING, &bare, &error), 0);
	assert_int_equal(judge(buf_slice(&bare), buf_slice(&roots), &level, &error), 0);
	assert_int_equal(level, LEVEL_T);
}

TEST_CASE(refuses_what_does_not_validate_and_what_nothing_needs)
{
	static const struct {
		enum collected what;
		const char *told;
	} cases[] = {
		{NO_LIST, "nothing published"},         {REVOKED, "was revoked"},
		{JUNK, "nothing needs: crl"},           {OLDER_LIST, "nothing needs: crl"},
		{OTHERS_ANSWER, "nothing needs: ocsp"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		BUF_AUTO struct buf cms;
		struct error error = {0};
		enum level level;
		assert_int_equal(make(cases[i].what, &cms, &error), 0);
		assert_int_equal(judge(buf_slice(&cms), buf_slice(&roots), &level, &error),
		                 ERR_INVALID_EVIDENCE);
		if (!strstr(error.cause, cases[i].told))
			fail_msg("no '%s' in '%s'", cases[i].told, error.cause);
	}
	BUF_AUTO struct buf unreadable;
	assert_int_equal(make(UNREADABLE, &unreadable, NULL), ERR_CORRUPT);
}

/* After the certificates, where signed data has a field for it. */
TEST_CASE(refuses_an_empty_place_of_revocation_data)
{
	BUF_AUTO struct buf cms;
	BUF_AUTO struct buf emptied = {.limit = CMS_SIZE_MAX};
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	struct error error = {0};
	enum level level;
	assert_int_equal(make(NOTHING, &cms, NULL), 0);
	assert_int_equal(signed_content_parse(buf_slice(&cms), &content, NULL), 0);
	content->data->revocations = sk_ASN1_TYPE_new_null();
	assert_int_equal(signed_content_write(content, &emptied), 0);
	assert_int_equal(emptied.size, cms.size + 2);
	assert_int_equal(judge(buf_slice(&emptied), buf_slice(&roots), &level, &error),
	                 ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "empty set"));
}

/* A root may have the name and key of an included certificate. What is above that certificate is
 * then not on the reader's path, and its revocation data is not needed. */
TEST_CASE(lasts_whomever_one_trusts)
{
	BUF_AUTO struct buf cms;
	assert_int_equal(EVP_PKEY_up_ref(issuer.key), 1);
	struct pki_identity twin = pki_issue(&(struct pki_certificate){
		.name = "Issuer", .extensions = pki_authority, .key = issuer.key});
	const struct pki_identity *trusted[] = {&root, &twin, &root};
	assert_int_equal(make(BELOW, &cms, NULL), 0);
	for (size_t i = 0; i < 4; i++) {
		BUF_AUTO struct buf given = {.limit = 65536};
		struct error error = {0};
		enum level level;
		pki_path(&given, trusted + i % 2, i < 2 ? 2 : 1);
		if (judge(buf_slice(&cms), buf_slice(&given), &level, &error))
			fail_msg("%zu: %s", i, error.cause);
		assert_int_equal(level, LEVEL_LT);
	}
	pki_free(&twin);
}

/* A signature of a report has the data outside, where the document's timestamp covers it. */
TEST_CASE(is_not_taken_for_a_signature_without)
{
	BUF_AUTO struct buf cms;
	struct trust_roots trusted = {.signers = buf_slice(&roots)};
	struct cms_facts facts;
	struct error error = {0};
	assert_int_equal(make(WHOLE, &cms, &error), 0);
	assert_int_equal(cms_verify(buf_slice(&cms), &digest, &trusted, &facts, &error),
	                 ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "the signed data contains revocation data"));
}

TEST_CASE(finds_every_change)
{
	BUF_AUTO struct buf cms;
	assert_int_equal(make(WHOLE, &cms, NULL), 0);
	for (size_t i = 0; i < cms.size; STRIDE(i)) {
		struct error error = {0};
		enum level level;
		cms.data[i] ^= (char)(1 << i % 8);
		if (!judge(buf_slice(&cms), buf_slice(&roots), &level, &error))
			fail_msg("byte %zu of %zu passes over", i, cms.size);
		cms.data[i] ^= (char)(1 << i % 8);
	}
	for (size_t size = 0; size < cms.size; size += 7) {
		enum level level;
		assert_int_not_equal(judge(slice_make(cms.data, size), buf_slice(&roots), &level, NULL), 0);
	}
}

static int setup(void **state)
{
	digest = sha256_of("an ASiCManifest", 15);
	root = pki_issue(&(struct pki_certificate){.name = "Root", .extensions = pki_authority});
	signer = pki_issue(
		&(struct pki_certificate){.name = "Signer", .issuer = &root, .extensions = pki_leaf});
	other = pki_issue(
		&(struct pki_certificate){.name = "Other", .issuer = &root, .extensions = pki_leaf});
	issuer = pki_issue(
		&(struct pki_certificate){.name = "Issuer", .issuer = &root, .extensions = pki_authority});
	below = pki_issue(
		&(struct pki_certificate){.name = "Below", .issuer = &issuer, .extensions = pki_leaf});
	time_authority_make(&authority, "Time", SIGNED_AT_US - 365 * US_PER_DAY,
	                    SIGNED_AT_US + 3650 * US_PER_DAY);
	buf_init(&chain, 65536);
	buf_init(&longer_chain, 65536);
	buf_init(&roots, 65536);
	buf_init(&time_roots, 65536);
	pki_path(&chain, (const struct pki_identity *[]){&signer, &root}, 2);
	pki_path(&longer_chain, (const struct pki_identity *[]){&below, &issuer, &root}, 3);
	pki_path(&roots, (const struct pki_identity *[]){&root}, 1);
	time_authority_trust(&authority, &time_roots);
	return 0;
}

static int teardown(void **state)
{
	pki_free(&root);
	pki_free(&signer);
	pki_free(&other);
	pki_free(&issuer);
	pki_free(&below);
	time_authority_free(&authority);
	buf_free(&chain);
	buf_free(&longer_chain);
	buf_free(&roots);
	buf_free(&time_roots);
	return 0;
}

TEST_MAIN(setup, teardown)
