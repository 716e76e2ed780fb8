/* Signed reports, judged by other programs and by the service's own check, which detects every
 * change. */
#include <unistd.h>

#include "testing.h"
#include "base/clock.h"
#include "report/pdf_check.h"
#include "report/pdf_sign.h"
#include "report/report.h"
#include "scratch.h"
#include "seal/signer.h"
#include "stride.h"
#include "test_report_facts.h"
#include "test_report_tools.h"

#define SIGNED_AT_US INT64_C(1795252503000000) /* 2026-11-21T09:15:03Z */
#define SAMPLED_FLIPS 400

static char directory[SCRATCH_MAX];
static char base_path[128];
static char signed_path[128];
static struct sample sample;
static struct signer *signer;
static struct cms_signer cms_signer;
static struct cms_signing signing;
static struct pdf_signed last_signed;
static struct buf signed_file;
static const struct trust_roots no_roots;

static int make_timestamp(void *context, const struct sha256 *imprint, struct buf *out,
                          struct error *error)
{
	struct timestamp_facts facts;
	BUF_AUTO struct buf request = {.limit = TIMESTAMP_REQUEST_MAX};
	BUF_AUTO struct buf response = {.limit = TIMESTAMP_RESPONSE_MAX};
	int result = timestamp_request(imprint, NULL, &request, error);
	if (!result)
		result = signer_timestamp(signer, buf_slice(&request), &response, error);
	return result ? result
	              : timestamp_verify_response(buf_slice(&request), buf_slice(&response),
	                                          signer_timestamp_roots(signer), NULL, out, &facts,
	                                          error);
}

static void render_and_sign(enum language language)
{
	struct error error = {0};
	if (tools_render(&sample.facts, language, base_path, &error) ||
	    pdf_sign(base_path, signed_path, SIGNED_AT_US, &signing, NULL, &last_signed, &error))
		fail_msg("%s", error.cause);
	buf_free(&signed_file);
	tools_read(signed_path, &signed_file);
}

static int setup(void **state)
{
	scratch_make(directory);
	snprintf(base_path, sizeof(base_path), "%s/base.pdf", directory);
	snprintf(signed_path, sizeof(signed_path), "%s/signed.pdf", directory);
	struct error error = {0};
	struct signer_options options = {.directory = directory, .development = true};
	if (signer_start(&options, &signer, &error)) {
		print_error("%s\n", error.cause);
		return -1;
	}
	cms_signer = (struct cms_signer){signer, SIGNER_REPORT};
	signing = (struct cms_signing){.certificates_pem = signer_certificates(signer),
	                               .sign = cms_sign_with_signer,
	                               .sign_context = &cms_signer,
	                               .timestamp = make_timestamp};
	return 0;
}

static int teardown(void **state)
{
	signer_stop(signer);
	buf_free(&signed_file);
	scratch_remove(directory);
	return 0;
}

static void expect_output(struct buf *out, const char *text)
{
	if (!strstr(out->data, text))
		fail_msg("expected '%s' in: %s", text, out->data);
}

TEST_CASE(is_valid_for_pdfsig_and_qpdf)
{
	BUF_AUTO struct buf out = {0};
	for (int language = LANGUAGE_ENGLISH; language <= LANGUAGE_SPANISH; language++) {
		sample_ordinary(&sample, 12);
		render_and_sign((enum language)language);
		if (tools_run(&out, "qpdf --check '%s'", signed_path))
			fail_msg("%s", out.data);
		assert_null(strstr(out.data, "WARNING"));
		tools_run(&out, "HOME='%s' pdfsig '%s'", directory, signed_path);
		expect_output(&out, "Signature Validation: Signature is Valid.");
		expect_output(&out, "Total document signed");
		expect_output(&out, "Signature Type: ETSI.CAdES.detached");
		expect_output(&out, "Signing Hash Algorithm: SHA-256");
	}
}

/* Extracts the signature and the signed bytes by the byte range, and verifies them with openssl. */
TEST_CASE(is_valid_for_openssl)
{
	sample_ordinary(&sample, 2);
	render_and_sign(LANGUAGE_ENGLISH);
	char path[160];
	const char *range =
		strstr(memmem(signed_file.data, signed_file.size, "/Type /Sig ", 11), "/ByteRange [");
	long long start;
	long long first;
	long long second;
	long long last;
	assert_non_null(range);
	int count = sscanf(range, "/ByteRange [%lld %lld %lld %lld", &start, &first, &second, &last);
	assert_int_equal(count, 4);
	assert_int_equal(start, 0);
	assert_int_equal(second + last, signed_file.size);
	BUF_AUTO struct buf covered;
	BUF_AUTO struct buf cms = {.limit = PDF_CMS_SIZE_MAX};
	buf_init(&covered, signed_file.size);
	buf_add(&covered, signed_file.data, (size_t)first);
	buf_add(&covered, signed_file.data + second, (size_t)last);
	char *der = buf_extend(&cms, PDF_CMS_SIZE_MAX);
	assert_true(hex_decode(slice_make(signed_file.data + first + 1, 2 * PDF_CMS_SIZE_MAX), der,
	                       PDF_CMS_SIZE_MAX));
	snprintf(path, sizeof(path), "%s/covered", directory);
	tools_write(path, buf_slice(&covered));
	snprintf(path, sizeof(path), "%s/cms.der", directory);
	tools_write(path, slice_make(cms.data, cms_size(buf_slice(&cms))));
	snprintf(path, sizeof(path), "%s/trust.pem", directory);
	tools_write(path, signer_trust(signer));
	BUF_AUTO struct buf out = {0};
	tools_run(&out,
	          "cd '%s' && openssl cms -verify -cades -binary -inform DER -in cms.der "
	          "-content covered -CAfile trust.pem -purpose any -out /dev/null",
	          directory);
	expect_output(&out, "CAdES Verification successful");
}

TEST_CASE(is_valid_for_our_check)
{
	for (int language = LANGUAGE_ENGLISH; language <= LANGUAGE_SPANISH; language++) {
		sample_ordinary(&sample, 12);
		render_and_sign((enum language)language);
		struct trust_roots roots = {.signers = signer_trust(signer),
		                            .timestamps = signer_trust(signer)};
		struct pdf_facts facts;
		struct error error = {0};
		if (pdf_check(buf_slice(&signed_file), &no_roots, &facts, &error))
			fail_msg("%s", error.cause);
		assert_false(facts.signature.trusted);
		if (pdf_check(buf_slice(&signed_file), &roots, &facts, &error))
			fail_msg("%s", error.cause);
		assert_true(facts.signature.trusted && facts.signature.has_timestamp);
		assert_true(*facts.signature.signer.subject);
		assert_int_equal(facts.signing_time_us, SIGNED_AT_US);
		struct sha256 digest = sha256_of(signed_file.data, signed_file.size);
		assert_true(sha256_equal(&last_signed.digest, &digest));
		assert_int_equal(last_signed.size_bytes, signed_file.size);
		const struct pdf_binding *binding = &facts.binding;
		assert_string_equal(binding->certification_id, sample.facts.certification_id);
		assert_string_equal(binding->verification_code, sample.facts.verification_code);
		assert_string_equal(binding->channel_id, sample.facts.channel_id);
		assert_int_equal(binding->chain, MODE_LIVE);
		assert_int_equal(binding->first_sequence, 4120);
		assert_int_equal(binding->last_sequence, 4131);
		assert_int_equal(binding->event_count, 12);
		assert_true(sha256_equal(&binding->first_chain_hash, &sample.facts.first_chain_hash));
		assert_true(sha256_equal(&binding->last_chain_hash, &sample.facts.last_chain_hash));
		assert_true(sha256_equal(&binding->archive_digest, &sample.facts.archive_digest));
		assert_int_equal(binding->archive_size_bytes, sample.facts.archive_size_bytes);
	}
}

TEST_CASE(leaves_the_base_untouched)
{
	BUF_AUTO struct buf base = {0};
	sample_hostile(&sample, 3);
	render_and_sign(LANGUAGE_SPANISH);
	tools_read(base_path, &base);
	assert_true(signed_file.size > base.size + 2 * PDF_CMS_SIZE_MAX);
	assert_memory_equal(signed_file.data, base.data, base.size);
	const char *update = signed_file.data + base.size;
	assert_null(memmem(update, signed_file.size - base.size, "/Reason", 7));
	assert_null(memmem(update, signed_file.size - base.size, "/Cert", 5));
	assert_null(memmem(update, signed_file.size - base.size, "/DocMDP", 7));
	assert_non_null(memmem(update, signed_file.size - base.size, "/M (D:20261121091503Z)", 22));
}

static bool found_with_flip(size_t at, int bit)
{
	struct pdf_facts facts;
	signed_file.data[at] = (char)(signed_file.data[at] ^ (1 << bit));
	int result = pdf_check(buf_slice(&signed_file), &no_roots, &facts, NULL);
	signed_file.data[at] = (char)(signed_file.data[at] ^ (1 << bit));
	return result == ERR_INVALID_EVIDENCE;
}

static void expect_found(size_t at, int bit)
{
	if (!found_with_flip(at, bit))
		fail_msg("not found: bit %d of byte %zu", bit, at);
}

TEST_CASE(finds_every_flipped_bit)
{
	sample_ordinary(&sample, 1);
	render_and_sign(LANGUAGE_ENGLISH);
	struct pdf_facts facts;
	assert_int_equal(pdf_check(buf_slice(&signed_file), &no_roots, &facts, NULL), 0);
	unsigned seed = (unsigned)test_seed();
	const char *text = memmem(signed_file.data, signed_file.size, "/Type /Sig ", 11);
	size_t begin = (size_t)(text - signed_file.data);
	size_t contents = (size_t)(strstr(text, "/Contents <") + 11 - signed_file.data);
	size_t used = 2 * PDF_CMS_SIZE_MAX;
	while (signed_file.data[contents + used - 1] == '0')
		used--;
	/* The dictionary, the signature, the table and the trailer: every bit. */
	for (size_t bit = begin * 8; bit < (contents + used) * 8; STRIDE(bit))
		expect_found(bit / 8, bit % 8);
	for (size_t bit = (contents + 2 * PDF_CMS_SIZE_MAX) * 8; bit < signed_file.size * 8;
	     STRIDE(bit))
		expect_found(bit / 8, bit % 8);
	/* The padding: one bit of each digit, all bits of some. */
	for (size_t at = contents + used; at < contents + 2 * PDF_CMS_SIZE_MAX; STRIDE(at))
		for (int bit = at % 32 == 0 ? 0 : rand_r(&seed) % 8, end = at % 32 == 0 ? 8 : bit + 1;
		     bit < end; bit++)
			expect_found(at, bit);
	for (int i = 0; i < SAMPLED_FLIPS; STRIDE(i))
		expect_found((size_t)rand_r(&seed) % begin, rand_r(&seed) % 8);
	assert_int_equal(pdf_check(buf_slice(&signed_file), &no_roots, &facts, NULL), 0);
}

static void expect_invalid(struct slice file)
{
	struct pdf_facts facts;
	assert_int_equal(pdf_check(file, &no_roots, &facts, NULL), ERR_INVALID_EVIDENCE);
}

TEST_CASE(finds_what_is_cut_off_or_added)
{
	sample_ordinary(&sample, 1);
	render_and_sign(LANGUAGE_ENGLISH);
	BUF_AUTO struct buf longer;
	buf_init(&longer, 2 * signed_file.size);
	buf_add_slice(&longer, buf_slice(&signed_file));
	buf_add_byte(&longer, '\n');
	expect_invalid(buf_slice(&longer));
	/* Another update after the signed one. */
	const char *tail = memmem(signed_file.data, signed_file.size, "/Type /Sig ", 11);
	const char *table = strstr(tail, ">\nendobj\nxref\n") + 10;
	buf_add(&longer, table, (size_t)(signed_file.data + signed_file.size - table));
	expect_invalid(buf_slice(&longer));
	for (size_t size = 0; size < signed_file.size; size += size < 100 ? 1 : 997)
		expect_invalid(slice_make(signed_file.data, size));
	expect_invalid(slice_make(signed_file.data, signed_file.size - 1));
	expect_invalid(slice_make(signed_file.data + 1, signed_file.size - 1));
}

TEST_CASE(takes_only_lower_case_digits)
{
	sample_ordinary(&sample, 1);
	render_and_sign(LANGUAGE_ENGLISH);
	char *digits =
		strstr(memmem(signed_file.data, signed_file.size, "/Type /Sig ", 11), "/Contents <") + 11;
	char *letter = strpbrk(digits, "abcdef");
	*letter = (char)(*letter - 'a' + 'A');
	expect_invalid(buf_slice(&signed_file));
}

/* EN 319 142-1 section 6.3: the time is in /M only. */
TEST_CASE(takes_no_signing_time)
{
	sample_ordinary(&sample, 1);
	render_and_sign(LANGUAGE_ENGLISH);
	char *digits =
		strstr(memmem(signed_file.data, signed_file.size, "/Type /Sig ", 11), "/Contents <") + 11;
	BUF_AUTO struct buf covered;
	BUF_AUTO struct buf cms;
	buf_init(&covered, signed_file.size);
	buf_add(&covered, signed_file.data, (size_t)(digits - 1 - signed_file.data));
	const char *resumes = digits + 2 * PDF_CMS_SIZE_MAX + 1;
	buf_add(&covered, resumes, (size_t)(signed_file.data + signed_file.size - resumes));
	struct sha256 digest = sha256_of(covered.data, covered.size);
	for (int timed = 0; timed < 2; timed++) {
		buf_init(&cms, PDF_CMS_SIZE_MAX);
		assert_int_equal(
			cms_create(&digest, timed ? SIGNED_AT_US : TIME_NONE, &signing, &cms, NULL), 0);
		while (cms.size < PDF_CMS_SIZE_MAX)
			buf_add_byte(&cms, 0);
		char after = digits[2 * PDF_CMS_SIZE_MAX];
		hex_encode(cms.data, PDF_CMS_SIZE_MAX, digits);
		digits[2 * PDF_CMS_SIZE_MAX] = after;
		struct pdf_facts facts;
		struct error error = {0};
		int result = pdf_check(buf_slice(&signed_file), &no_roots, &facts, &error);
		assert_int_equal(result, timed ? ERR_INVALID_EVIDENCE : 0);
		if (timed)
			assert_non_null(strstr(error.cause, "signing-time"));
		buf_free(&cms);
	}
}

TEST_CASE(asks_a_live_report_for_a_timestamp)
{
	signing.timestamp = NULL;
	sample_ordinary(&sample, 1);
	render_and_sign(LANGUAGE_ENGLISH);
	expect_invalid(buf_slice(&signed_file));
	sample_hostile(&sample, 1);
	render_and_sign(LANGUAGE_ENGLISH);
	struct pdf_facts facts;
	assert_int_equal(pdf_check(buf_slice(&signed_file), &no_roots, &facts, NULL), 0);
	assert_int_equal(facts.binding.chain, MODE_TEST);
	assert_false(facts.signature.has_timestamp);
	signing.timestamp = make_timestamp;
}

static int refuse(void *context, struct slice bytes, struct buf *out, struct error *error)
{
	return error_cause(error, ERR_UNAVAILABLE, "no key today");
}

TEST_CASE(leaves_nothing_when_it_cannot_sign)
{
	struct error error = {0};
	char other_path[160];
	snprintf(other_path, sizeof(other_path), "%s/other.pdf", directory);
	sample_ordinary(&sample, 1);
	render_and_sign(LANGUAGE_ENGLISH);
	struct cms_signing refusing = signing;
	refusing.sign = refuse;
	assert_int_equal(
		pdf_sign(base_path, other_path, SIGNED_AT_US, &refusing, NULL, &last_signed, &error),
		ERR_UNAVAILABLE);
	assert_int_equal(access(other_path, F_OK), -1);
	/* Already signed, cut short, not a PDF, missing. */
	assert_int_equal(
		pdf_sign(signed_path, other_path, SIGNED_AT_US, &signing, NULL, &last_signed, &error),
		ERR_REFUSED);
	tools_write(base_path, slice_make(signed_file.data, 20000));
	assert_int_equal(
		pdf_sign(base_path, other_path, SIGNED_AT_US, &signing, NULL, &last_signed, &error),
		ERR_REFUSED);
	tools_write(base_path, slice_of("hello"));
	assert_int_equal(
		pdf_sign(base_path, other_path, SIGNED_AT_US, &signing, NULL, &last_signed, &error),
		ERR_REFUSED);
	assert_int_equal(
		pdf_sign("/nonexistent", other_path, SIGNED_AT_US, &signing, NULL, &last_signed, &error),
		ERR_IO);
	assert_int_equal(access(other_path, F_OK), -1);
}

TEST_MAIN(setup, teardown)
