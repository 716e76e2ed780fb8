/* Reports of level B-LTA: validation data of their signature inside, and a timestamp over
 * everything. Judged by other programs and by the service's own check, which detects every
 * change. */
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <unistd.h>

#include "testing.h"
#include "pki.h"
#include "base/clock.h"
#include "report/pdf_check.h"
#include "report/pdf_sign.h"
#include "scratch.h"
#include "stride.h"
#include "test_report_facts.h"
#include "test_report_tools.h"
#include "time_authority.h"

#define SIGNED_AT_US INT64_C(1795252503000000) /* 2026-11-21T09:15:03Z */
#define DAY_US US_PER_DAY

static char directory[SCRATCH_MAX];
static char base_path[128];
static char signed_path[128];
static struct sample sample;
static struct pki_identity root, signer;
static struct time_authority authority;
static struct buf chain, roots, time_roots;
static struct buf file;
static int64_t gen_time_us;
static const struct trust_roots no_roots;

/* What the set lacks or has in addition. */
static enum { WHOLE, NO_LIST, REVOKED, NOTHING } collecting;

static int make_timestamp(void *context, const struct sha256 *imprint, struct buf *out,
                          struct error *error)
{
	struct digest digest = digest_of_sha256(imprint);
	time_authority_stamp(&authority, &digest, gen_time_us, out);
	gen_time_us += US_PER_SECOND;
	return 0;
}

static int sign(void *context, struct slice bytes, struct buf *out, struct error *error)
{
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	unsigned char value[256];
	size_t size = sizeof value;
	assert_int_equal(EVP_DigestSignInit(digest, NULL, EVP_sha256(), NULL, signer.key), 1);
	assert_int_equal(
		EVP_DigestSign(digest, value, &size, (const unsigned char *)bytes.data, bytes.size), 1);
	buf_add(out, value, size);
	EVP_MD_CTX_free(digest);
	return 0;
}

static void add_certificate(struct validation_set *set, X509 *certificate)
{
	unsigned char *der = NULL;
	int size = i2d_X509(certificate, &der);
	assert_int_equal(
		validation_set_add(set, VALIDATION_CERTIFICATE, slice_make(der, (size_t)size), NULL), 0);
	OPENSSL_free(der);
}

static void add_list(struct validation_set *set, const struct pki_identity *issuer, X509 *revoked)
{
	BUF_AUTO struct buf der = {.limit = 65536};
	struct pki_crl wanted = {
		.issuer = issuer,
		.revoked = revoked,
		.revoked_us = SIGNED_AT_US - DAY_US,
		.reason = -1,
		.issued_us = SIGNED_AT_US - US_PER_SECOND,
		.next_us = SIGNED_AT_US + 7 * DAY_US,
	};
	pki_crl(&der, &wanted);
	assert_int_equal(validation_set_add(set, VALIDATION_CRL, buf_slice(&der), NULL), 0);
}

static int collect(void *context, struct validation_set *set, struct error *error)
{
	struct pki_identity time_root = {authority.root, authority.root_key};
	BUF_AUTO struct buf answer = {.limit = 65536};
	if (collecting == NOTHING)
		return 0;
	add_certificate(set, root.certificate);
	add_certificate(set, signer.certificate);
	add_certificate(set, authority.root);
	add_certificate(set, authority.certificate);
	if (collecting != NO_LIST)
		add_list(set, &time_root, NULL);
	struct pki_ocsp wanted = {
		.issuer = &root,
		.certificate = signer.certificate,
		.status = collecting == REVOKED ? V_OCSP_CERTSTATUS_REVOKED : V_OCSP_CERTSTATUS_GOOD,
		.revoked_us = collecting == REVOKED ? SIGNED_AT_US - DAY_US : TIME_NONE,
		.issued_us = SIGNED_AT_US + US_PER_SECOND,
		.next_us = SIGNED_AT_US + DAY_US,
	};
	pki_ocsp(&answer, &wanted);
	assert_int_equal(validation_set_add(set, VALIDATION_OCSP, buf_slice(&answer), NULL), 0);
	return 0;
}

static int try_to_make(struct error *error)
{
	struct cms_signing signing = {
		.certificates_pem = buf_slice(&chain), .sign = sign, .timestamp = make_timestamp};
	struct pdf_long_term lasting = {.collect = collect};
	struct pdf_signed made;
	gen_time_us = SIGNED_AT_US;
	sample_ordinary(&sample, 1);
	int result = tools_render(&sample.facts, LANGUAGE_ENGLISH, base_path, error);
	if (!result)
		result = pdf_sign(base_path, signed_path, SIGNED_AT_US, &signing, &lasting, &made, error);
	return result;
}

static void make(void)
{
	struct error error = {0};
	if (try_to_make(&error))
		fail_msg("%s", error.cause);
	buf_free(&file);
	tools_read(signed_path, &file);
}

static int setup(void **state)
{
	scratch_make(directory);
	snprintf(base_path, sizeof base_path, "%s/base.pdf", directory);
	snprintf(signed_path, sizeof signed_path, "%s/signed.pdf", directory);
	root = pki_issue(&(struct pki_certificate){.name = "Root", .extensions = pki_authority});
	signer = pki_issue(
		&(struct pki_certificate){.name = "Signer", .issuer = &root, .extensions = pki_leaf});
	time_authority_make(&authority, "Time", SIGNED_AT_US - 365 * DAY_US,
	                    SIGNED_AT_US + 3650 * DAY_US);
	buf_init(&chain, 65536);
	buf_init(&roots, 65536);
	buf_init(&time_roots, 65536);
	pki_path(&chain, (const struct pki_identity *[]){&signer, &root}, 2);
	pki_path(&roots, (const struct pki_identity *[]){&root}, 1);
	time_authority_trust(&authority, &time_roots);
	return 0;
}

static int teardown(void **state)
{
	pki_free(&root);
	pki_free(&signer);
	time_authority_free(&authority);
	buf_free(&chain);
	buf_free(&roots);
	buf_free(&time_roots);
	buf_free(&file);
	scratch_remove(directory);
	return 0;
}

TEST_CASE(is_of_the_highest_level)
{
	struct trust_roots trusted = {.signers = buf_slice(&roots),
	                              .timestamps = buf_slice(&time_roots)};
	struct pdf_facts facts;
	struct error error = {0};
	collecting = WHOLE;
	make();
	if (pdf_check(buf_slice(&file), &trusted, &facts, &error))
		fail_msg("%s", error.cause);
	assert_int_equal(facts.level, LEVEL_LTA);
	assert_string_equal(facts.level_cause, "");
	assert_true(facts.signature.trusted && facts.has_document_timestamp);
	assert_true(facts.document_timestamp.trusted);
	assert_int_equal(facts.signature.timestamp.gen_time_us, SIGNED_AT_US);
	assert_int_equal(facts.document_timestamp.gen_time_us, SIGNED_AT_US + US_PER_SECOND);
	assert_int_equal(facts.document_timestamp.authority.not_after_us, SIGNED_AT_US + 3650 * DAY_US);
	assert_string_equal(facts.binding.certification_id, sample.facts.certification_id);
	assert_int_equal(pdf_check(buf_slice(&file), &no_roots, &facts, &error), 0);
	assert_int_equal(facts.level, LEVEL_LTA);
	assert_false(facts.document_timestamp.trusted);
}

TEST_CASE(is_valid_for_pdfsig_and_qpdf)
{
	BUF_AUTO struct buf out = {0};
	collecting = WHOLE;
	make();
	if (tools_run(&out, "qpdf --check '%s'", signed_path))
		fail_msg("%s", out.data);
	assert_null(strstr(out.data, "WARNING"));
	tools_run(&out, "HOME='%s' pdfsig '%s'", directory, signed_path);
	/* The tool recognizes the timestamp but does not verify it. */
	if (!strstr(out.data, "Signature Validation: Signature is Valid.") ||
	    !strstr(out.data, "Signature #2") || !strstr(out.data, "Total document signed"))
		fail_msg("%s", out.data);
}

/* The report as it was signed is still in it and valid on its own. */
TEST_CASE(begins_with_a_report_of_level_t)
{
	struct pdf_facts facts;
	collecting = NOTHING;
	make();
	assert_int_equal(pdf_check(buf_slice(&file), &no_roots, &facts, NULL), 0);
	assert_int_equal(facts.level, LEVEL_T);
	assert_false(facts.has_document_timestamp);
	collecting = WHOLE;
	make();
	const char *validation = memmem(file.data, file.size, "/Type /DSS", 10);
	assert_non_null(validation);
	const char *end = NULL;
	for (const char *at = file.data; at < validation; at++)
		if (memcmp(at, "%%EOF\n", 6) == 0)
			end = at + 6;
	assert_non_null(end);
	struct slice as_signed = slice_make(file.data, (size_t)(end - file.data));
	assert_int_equal(pdf_check(as_signed, &no_roots, &facts, NULL), 0);
	assert_int_equal(facts.level, LEVEL_T);
}

TEST_CASE(tells_what_is_missing)
{
	struct pdf_facts facts;
	struct error error = {0};
	collecting = NO_LIST;
	make();
	assert_int_equal(pdf_check(buf_slice(&file), &no_roots, &facts, &error), 0);
	assert_int_equal(facts.level, LEVEL_T);
	assert_non_null(strstr(facts.level_cause, "of Time"));
}

TEST_CASE(refuses_a_revoked_signer)
{
	struct pdf_facts facts;
	struct error error = {0};
	collecting = REVOKED;
	make();
	assert_int_equal(pdf_check(buf_slice(&file), &no_roots, &facts, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "of Signer was revoked"));
}

static void expect_found(size_t at, int bit)
{
	struct pdf_facts facts;
	file.data[at] = (char)(file.data[at] ^ (1 << bit));
	int result = pdf_check(buf_slice(&file), &no_roots, &facts, NULL);
	file.data[at] = (char)(file.data[at] ^ (1 << bit));
	if (result != ERR_INVALID_EVIDENCE)
		fail_msg("not found: bit %d of byte %zu", bit, at);
}

TEST_CASE(finds_every_flipped_bit)
{
	unsigned seed = (unsigned)clock_now_us();
	print_message("seed %u\n", seed);
	collecting = WHOLE;
	make();
	const char *text = memmem(file.data, file.size, "/Type /DSS", 10);
	const char *stamp = memmem(file.data, file.size, "/Type /DocTimeStamp ", 20);
	size_t begin = (size_t)(text - file.data);
	while (memcmp(file.data + begin - 6, "%%EOF\n", 6) != 0)
		begin--;
	size_t contents = (size_t)(strstr(stamp, "/Contents <") + 11 - file.data);
	size_t end = contents + 2 * PDF_CMS_SIZE_MAX, used = end;
	while (file.data[used - 1] == '0')
		used--;
	/* The validation data, the timestamp and the tables: every bit of every third byte. */
	size_t first = begin + (size_t)rand_r(&seed) % 3;
	for (size_t bit = 0; first + 3 * (bit / 8) < used; STRIDE(bit))
		expect_found(first + 3 * (bit / 8), (int)(bit % 8));
	for (size_t bit = end * 8; bit < file.size * 8; STRIDE(bit))
		expect_found(bit / 8, (int)(bit % 8));
	for (size_t at = used; at < end; at += 61)
		expect_found(at, rand_r(&seed) % 8);
	for (int i = 0; i < 400; STRIDE(i))
		expect_found((size_t)rand_r(&seed) % begin, rand_r(&seed) % 8);
}

TEST_CASE(finds_what_is_cut_off_or_added)
{
	struct pdf_facts facts;
	collecting = WHOLE;
	make();
	BUF_AUTO struct buf longer;
	buf_init(&longer, 2 * file.size);
	buf_add_slice(&longer, buf_slice(&file));
	buf_add_byte(&longer, '\n');
	assert_int_equal(pdf_check(buf_slice(&longer), &no_roots, &facts, NULL), ERR_INVALID_EVIDENCE);
	const char *stamp = memmem(file.data, file.size, "/Type /DocTimeStamp ", 20);
	/* When it is cut after the validation data, nothing vouches for them. */
	size_t cut = (size_t)(stamp - file.data);
	while (memcmp(file.data + cut - 6, "%%EOF\n", 6) != 0)
		cut--;
	assert_int_equal(pdf_check(slice_make(file.data, cut), &no_roots, &facts, NULL),
	                 ERR_INVALID_EVIDENCE);
	for (size_t size = file.size - 1; size > cut; size -= 997)
		assert_int_equal(pdf_check(slice_make(file.data, size), &no_roots, &facts, NULL),
		                 ERR_INVALID_EVIDENCE);
}

static size_t place_of(const char *text)
{
	const char *found = memmem(file.data, file.size, text, strlen(text));
	assert_non_null(found);
	return (size_t)(found - file.data);
}

/* A public authority timestamps a modified update, too, so the timestamp alone must not make its
 * content acceptable. */
TEST_CASE(takes_no_other_update_under_a_timestamp)
{
	static const char *const changes[][2] = {
		{"/Rect [ 0 0 0 0 ] /F 132", "/Rect [ 0 0 9 9 ] /F 132"},
		{"/Type /DSS /Certs", "/Type /DSS /Xerts"},
		{"/TU (Timestamp)", "/TU (Timestomp)"},
		{"/ExtensionLevel 1", "/ExtensionLevel 2"},
	};
	collecting = WHOLE;
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		make();
		size_t at = place_of("/Type /DSS");
		if (i != 1 && i != 3)
			at = place_of("/TU (Timestamp)") - (i == 0 ? 0 : 1);
		if (i == 3)
			at = place_of("/ExtensionLevel 1");
		char *changed =
			memmem(file.data + at, file.size - at, changes[i][0], strlen(changes[i][0]));
		assert_non_null(changed);
		memcpy(changed, changes[i][1], strlen(changes[i][1]));
		size_t contents =
			(size_t)(strstr(file.data + place_of("/Type /DocTimeStamp "), "/Contents <") + 11 -
		             file.data);
		size_t resumes = contents + 2 * PDF_CMS_SIZE_MAX + 1;
		struct digest_stream *digest = digest_begin();
		digest_add(digest, file.data, contents - 1);
		digest_add(digest, file.data + resumes, file.size - resumes);
		struct sha256 covered = digest_end(digest);
		BUF_AUTO struct buf token = {.limit = PDF_CMS_SIZE_MAX};
		assert_int_equal(make_timestamp(NULL, &covered, &token, NULL), 0);
		memset(file.data + contents, '0', 2 * PDF_CMS_SIZE_MAX);
		char after = file.data[contents + 2 * token.size];
		hex_encode(token.data, token.size, file.data + contents);
		file.data[contents + 2 * token.size] = after;
		struct pdf_facts facts;
		struct error error = {0};
		assert_int_equal(pdf_check(buf_slice(&file), &no_roots, &facts, &error),
		                 ERR_INVALID_EVIDENCE);
		if (!strstr(error.cause, "form") && !strstr(error.cause, "malformed"))
			fail_msg("%s: %s", changes[i][0], error.cause);
	}
}

static int fail_to_collect(void *context, struct validation_set *set, struct error *error)
{
	return error_cause(error, ERR_UNAVAILABLE, "nobody answers");
}

TEST_CASE(leaves_nothing_when_it_cannot_collect)
{
	struct cms_signing signing = {
		.certificates_pem = buf_slice(&chain), .sign = sign, .timestamp = make_timestamp};
	struct pdf_long_term lasting = {.collect = fail_to_collect};
	struct pdf_signed made;
	char other[160];
	snprintf(other, sizeof other, "%s/other.pdf", directory);
	collecting = WHOLE;
	make();
	assert_int_equal(pdf_sign(base_path, other, SIGNED_AT_US, &signing, &lasting, &made, NULL),
	                 ERR_UNAVAILABLE);
	assert_int_equal(access(other, F_OK), -1);
}

TEST_MAIN(setup, teardown)
