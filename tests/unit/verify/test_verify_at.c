/* The verdicts on the same evidence as of several times, with certificates that expire. */
#include "testing.h"
#include "seal/evidence_record.h"
#include "test_archive_fixture.h"
#include "test_forger.h"

#define ENDED "the certificate of the newest timestamp expired at "

static struct fixture fixture;
static struct forger_holder root, authority;
static struct forger_authority stamper = {.holder = &authority, .accuracy_seconds = 1};
static struct buf root_pem;
static struct trust_roots roots;
static int64_t now_us;
static struct fixture_archive archive; /* its authority's certificate expires in ten days */

static int set_up(void **state)
{
	static const struct forger_plan plans[] = {
		{.name = "Root", .from_days = -90, .to_days = 900, .extensions = {CA, CA_USAGE}},
		{.name = "Ends soon", .from_days = -60, .to_days = 10, .extensions = {LEAF, SIGNS, STAMPS}},
	};
	static const struct fixture_plan plan = {MODE_LIVE, 5, 1, 5, 5, false, 0, FAULT_NONE};
	now_us = clock_now_us();
	fixture_open(&fixture);
	forger_issue(&plans[0], NULL, &root);
	forger_issue(&plans[1], &root, &authority);
	roots = forger_trust(&root, fixture.roots.signers, &root_pem);
	fixture.stamp = forger_stamp;
	fixture.stamp_context = &stamper;
	assert_int_equal(fixture_make(&fixture, "ends", &plan, &archive), 0);
	fixture.stamp = NULL;
	return 0;
}

static int tear_down(void **state)
{
	forger_free(&authority);
	forger_free(&root);
	buf_free(&root_pem);
	fixture_close(&fixture);
	return 0;
}

/* at_us TIME_NONE: no time requested. */
static void check(const char *const *paths, size_t count, int64_t at_us, int exit_code,
                  struct verify_result *result)
{
	struct verify_options options = {.has_time = at_us != TIME_NONE, .at_us = at_us};
	assert_int_equal(verify_paths(paths, count, &roots, &options, result, NULL), 0);
	fixture_expect_exit(result, exit_code);
}

static void expect(const char *path, int64_t at_us, int exit_code, enum verify_severity severity,
                   const char *what)
{
	struct verify_result result;
	check(&path, 1, at_us, exit_code, &result);
	assert_true(!what || fixture_finds(&result, severity, "", what));
	assert_true(what || !fixture_finds(&result, VERIFY_WARNING, "", "ended"));
	verify_result_free(&result);
}

TEST_CASE(a_file_is_judged_as_of_the_time)
{
	expect(archive.path, TIME_NONE, 0, VERIFY_WARNING, NULL);
	expect(archive.path, now_us + 9 * US_PER_DAY, 0, VERIFY_WARNING, NULL);
	expect(archive.path, now_us + 11 * US_PER_DAY, 2, VERIFY_UNCHECKED, ENDED);
	expect(archive.path, now_us - 9 * US_PER_DAY, 2, VERIFY_UNCHECKED,
	       "the file states that it was");
	expect(archive.path, now_us - 9 * US_PER_DAY, 2, VERIFY_WARNING,
	       "timestamps were issued after ");
	/* The Unix epoch is a time like any other. */
	expect(archive.path, 0, 2, VERIFY_UNCHECKED, "the file states that it was");
	expect(archive.path, -US_PER_SECOND, 2, VERIFY_UNCHECKED, "the file states that it was");
}

/* RFC 5280 section 4.1.2.5: through notAfter, inclusive. */
TEST_CASE(a_certificate_lasts_through_its_last_second)
{
	struct verify_result result;
	const char *path = archive.path;
	check(&path, 1, TIME_NONE, 0, &result);
	int64_t ends_us = result.authorities.first->certificate.not_after_us;
	verify_result_free(&result);
	assert_int_equal(ends_us % US_PER_SECOND, 0);
	expect(path, ends_us, 0, VERIFY_WARNING, NULL);
	expect(path, ends_us + US_PER_SECOND - 1, 0, VERIFY_WARNING, NULL);
	expect(path, ends_us + US_PER_SECOND, 2, VERIFY_UNCHECKED, ENDED);
}

/* The time at which the signature of a test archive is judged: nothing proves a time of its own. */
TEST_CASE(a_signature_without_a_timestamp_is_too)
{
	static const struct fixture_plan plan = {MODE_TEST, 3, 1, 3, 3, false, 0, FAULT_NONE};
	struct fixture_archive made;
	struct verify_result result;
	fixture_forget(&fixture);
	assert_int_equal(fixture_make(&fixture, "test", &plan, &made), 0);
	expect(made.path, TIME_NONE, 0, VERIFY_WARNING, NULL);
	const char *path = made.path;
	check(&path, 1, TIME_NONE, 0, &result);
	int64_t ends_us = result.signers.first->certificate.not_after_us;
	verify_result_free(&result);
	expect(made.path, ends_us - US_PER_DAY, 0, VERIFY_WARNING, NULL);
	check(&path, 1, ends_us + US_PER_DAY, 1, &result);
	assert_true(fixture_finds(&result, VERIFY_WRONG, "META-INF/", "expired"));
	verify_result_free(&result);
}

/* At the present time: an expired authority is reported, and issued evidence remains valid. */
TEST_CASE(an_end_in_the_past_is_a_warning)
{
	static const struct forger_plan past = {
		.name = "Ended", .from_days = -80, .to_days = -5, .extensions = {LEAF, SIGNS, STAMPS}};
	static const struct fixture_plan plan = {MODE_LIVE, 5, 1, 5, 5, false, 0, FAULT_NONE};
	struct forger_holder holder, signer;
	struct forger_plan signing = {
		.name = "Signer", .from_days = -80, .to_days = 80, .extensions = {LEAF, SIGNS}};
	struct fixture_archive made;
	struct cms_signer unused;
	forger_issue(&past, &root, &holder);
	forger_issue(&signing, &root, &signer);
	struct cms_signing wanted = fixture_signing(&fixture, MODE_LIVE, &unused);
	BUF_AUTO struct buf chain = {.limit = 65536};
	forger_chain(&signer, &chain);
	wanted.certificates_pem = buf_slice(&chain);
	wanted.sign = forger_sign;
	wanted.sign_context = &signer;
	struct forger_authority then = {
		.holder = &holder, .offset_us = -15 * US_PER_DAY, .accuracy_seconds = 1};
	fixture_forget(&fixture);
	fixture.signing = &wanted;
	fixture.stamp = forger_stamp;
	fixture.stamp_context = &then;
	fixture.base_us -= 15 * US_PER_DAY;
	fixture.clock_offset_us = -15 * US_PER_DAY;
	assert_int_equal(fixture_make(&fixture, "past", &plan, &made), 0);
	fixture.base_us += 15 * US_PER_DAY;
	fixture.clock_offset_us = 0;
	fixture.stamp = NULL;
	fixture.signing = NULL;
	expect(made.path, TIME_NONE, 0, VERIFY_WARNING, ENDED);
	expect(made.path, now_us, 2, VERIFY_UNCHECKED, ENDED);
	expect(made.path, now_us - 10 * US_PER_DAY, 0, VERIFY_WARNING, NULL);
	forger_free(&signer);
	forger_free(&holder);
}

/* ---- evidence records ---- */

/* Makes the archive's own record by two authorities: the certificate of the first one expires in
 * ten days, that of the second one in 300. */
static void make_record(const char *path, struct forger_authority *second)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	BUF_AUTO struct buf token = {.limit = 65536};
	BUF_AUTO struct buf again = {.limit = 65536};
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};
	struct error error = {0};
	assert_int_equal(forger_stamp(&stamper, &archive.sum.sha256, &token, &error), 0);
	struct tree_proof proof = {.leaf = archive.sum.sha256};
	assert_int_equal(evidence_record_create(&proof, buf_slice(&token), &record, &error), 0);
	if (second) {
		struct evidence_path way = {.count = 0};
		assert_int_equal(evidence_record_next_leaf(record, NULL, &way.leaf), 0);
		struct sha256 imprint;
		memcpy(imprint.bytes, way.leaf.bytes, SHA256_SIZE);
		assert_int_equal(forger_stamp(second, &imprint, &again, &error), 0);
		assert_int_equal(evidence_record_renew(record, NULL, &way, buf_slice(&again), &error), 0);
	}
	assert_int_equal(evidence_record_write(record, &der), 0);
	fixture_write(path, buf_slice(&der));
}

TEST_CASE(a_record_shows_that_a_file_existed_before)
{
	static const struct forger_plan longer = {
		.name = "Lasts", .from_days = -60, .to_days = 300, .extensions = {LEAF, SIGNS, STAMPS}};
	struct forger_holder holder;
	struct verify_result result;
	char once[FIXTURE_PATH_SIZE], renewed[FIXTURE_PATH_SIZE];
	forger_issue(&longer, &root, &holder);
	struct forger_authority second = {
		.holder = &holder, .offset_us = 5 * US_PER_SECOND, .accuracy_seconds = 1};
	snprintf(once, sizeof once, "%s/once.ers", fixture.directory);
	snprintf(renewed, sizeof renewed, "%s/renewed.ers", fixture.directory);
	make_record(once, NULL);
	make_record(renewed, &second);
	const char *with_one[] = {archive.path, once}, *with_two[] = {renewed, archive.path};
	check(with_one, 2, now_us + 9 * US_PER_DAY, 0, &result);
	verify_result_free(&result);
	check(with_one, 2, now_us + 11 * US_PER_DAY, 1, &result);
	assert_true(fixture_finds(&result, VERIFY_WRONG, "", "expired"));
	verify_result_free(&result);
	check(with_two, 2, now_us + 11 * US_PER_DAY, 0, &result);
	assert_int_equal(result.at_us, now_us + 11 * US_PER_DAY);
	verify_result_free(&result);
	check(with_two, 2, now_us + 301 * US_PER_DAY, 1, &result);
	verify_result_free(&result);
	check(with_two, 2, now_us - 9 * US_PER_DAY, 2, &result);
	assert_true(fixture_finds(&result, VERIFY_UNCHECKED, "",
	                          "the first timestamp of the evidence record is later"));
	assert_null(result.records);
	verify_result_free(&result);
	forger_free(&holder);
}

TEST_CASE(the_time_is_told)
{
	struct verify_result result;
	const char *path = archive.path;
	char *text = NULL, wanted[64], at[TIME_TEXT_SIZE];
	size_t size = 0;
	check(&path, 1, now_us + US_PER_DAY, 0, &result);
	FILE *out = open_memstream(&text, &size);
	verify_print(&result, true, out);
	fclose(out);
	time_format(now_us + US_PER_DAY, at);
	snprintf(wanted, sizeof wanted, "{\"as_of\":\"%s\",", at);
	assert_non_null(strstr(text, wanted));
	free(text);
	verify_result_free(&result);
}

TEST_MAIN(set_up, tear_down)
