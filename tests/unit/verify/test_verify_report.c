#include <unistd.h>

#include "testing.h"
#include "report/pdf_sign.h"
#include "report/report.h"
#include "test_archive_fixture.h"
#include "test_report_facts.h"
#include "test_report_tools.h"
#include "verify/verify_check.h"

static struct fixture fixture;
static struct fixture_archive archive;
static char report[FIXTURE_PATH_SIZE];

static const struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};

/* Makes the facts of the archive's report, or of one with `extra` more events. */
static void facts_of(struct sample *sample, const struct fixture_archive *made, int64_t extra)
{
	sample_ordinary(sample, plan.last - plan.first + 1 + extra);
	struct report_facts *facts = &sample->facts;
	facts->certification_id = FIXTURE_CERTIFICATION;
	facts->verification_code = FIXTURE_CODE;
	facts->channel_id = FIXTURE_CHANNEL;
	facts->first_sequence = plan.first;
	facts->last_sequence = plan.last + extra;
	facts->first_chain_hash = made->first_chain_hash;
	facts->last_chain_hash = made->last_chain_hash;
	facts->archive_digest = made->sum.sha256;
	facts->archive_size_bytes = (int64_t)made->sum.size_bytes;
	facts->log = (struct report_log){0}; /* the archive has no places in a log */
}

static void make_report(const struct sample *sample, const char *path)
{
	char base[FIXTURE_PATH_SIZE];
	struct cms_signer signer;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &signer);
	struct pdf_signed made;
	struct error error = {0};
	snprintf(base, sizeof base, "%s/base.pdf", fixture.directory);
	if (tools_render(&sample->facts, LANGUAGE_ENGLISH, base, &error) < 0 ||
	    pdf_sign(base, path, clock_now_us(), &signing, NULL, &made, &error))
		fail_msg("report: %s %s", error.english, error.cause);
}

static int set_up(void **state)
{
	static struct sample sample;
	fixture_open(&fixture);
	assert_int_equal(fixture_make(&fixture, "one", &plan, &archive), 0);
	facts_of(&sample, &archive, 0);
	snprintf(report, sizeof report, "%s/report.pdf", fixture.directory);
	make_report(&sample, report);
	return 0;
}

TEST_CASE(report_and_archive_are_bound)
{
	const char *paths[] = {report, archive.path};
	struct verify_result result;
	fixture_verify(paths, 2, &fixture.roots, &result);
	if (verify_exit_code(&result) != 0)
		verify_print(&result, false, stderr);
	assert_int_equal(verify_exit_code(&result), 0);
	assert_true(result.trusted);
	assert_int_equal(result.checked.reports, 1);
	/* The development authority; neither signature has revocation data. */
	assert_int_equal(fixture_warnings(&result), 3);
	assert_true(fixture_finds(&result, VERIFY_WARNING, "signature", "contains no revocation data"));
	verify_result_free(&result);
}

TEST_CASE(report_alone_is_valid_on_its_own)
{
	const char *path = report;
	struct verify_result result;
	fixture_verify(&path, 1, &fixture.roots, &result);
	assert_int_equal(verify_exit_code(&result), 0);
	assert_true(fixture_finds(&result, VERIFY_WARNING, "", "was not given"));
	verify_result_free(&result);
}

TEST_CASE(report_of_another_archive_is_found)
{
	struct fixture_archive other;
	struct verify_result result;
	assert_int_equal(fixture_make(&fixture, "other", &plan, &other), 0);
	const char *paths[] = {other.path, report};
	fixture_verify(paths, 2, &fixture.roots, &result);
	assert_int_equal(verify_exit_code(&result), 1);
	assert_true(fixture_finds(&result, VERIFY_WRONG, "metadata", "is a different archive"));
	verify_result_free(&result);
}

TEST_CASE(every_fact_is_compared)
{
	static const char *const what[] = {"certification",    "verification code", "channel",
	                                   "first sequence",   "last sequence",     "number of events",
	                                   "first chain hash", "last chain hash",   "archive size",
	                                   "log of segments"};
	static struct sample sample;
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/false.pdf", fixture.directory);
	for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
		facts_of(&sample, &archive, i == 4 || i == 5 ? 1 : 0);
		struct report_facts *facts = &sample.facts;
		facts->certification_id = i == 0 ? "CERT-2026-0000009" : facts->certification_id;
		facts->verification_code = i == 1 ? "SVC-2026-0000-0000" : facts->verification_code;
		facts->channel_id = i == 2 ? "chn_another" : facts->channel_id;
		facts->first_sequence += i == 3; /* with the other end: the range is consistent */
		facts->last_sequence += i == 3;
		facts->first_chain_hash.bytes[0] ^= i == 6;
		facts->last_chain_hash.bytes[0] ^= i == 7;
		facts->archive_size_bytes += i == 8;
		facts->log.origin = i == 9 ? "log.example" : NULL;
		make_report(&sample, path);
		const char *paths[] = {path, archive.path};
		struct verify_result result;
		fixture_verify(paths, 2, &fixture.roots, &result);
		if (!fixture_finds(&result, VERIFY_WRONG, "metadata", what[i]))
			fail_msg("the %s was not compared", what[i]);
		assert_int_equal(verify_exit_code(&result), 1);
		verify_result_free(&result);
	}
}

#define AT "2023-11-14T22:13:20.000000Z"

/* The cosignatures need not be valid here: their keys are not known. */
TEST_CASE(the_stated_log_is_that_of_the_archive)
{
	static const char note[] =
		"log&.example\n7\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n"
		"\xe2\x80\x94 log&.example AAAAAAA=\n"
		/* a key ID, 1700000000 s, and 64 bytes */
		"\xe2\x80\x94 w<1> AAAAAAAAAABlU/EAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\n"
		"\xe2\x80\x94 short AAAAAAAAAABlU/EA\n";
	static const struct {
		const char *stated;
		enum finding finding;
		bool is_wrong;
	} cases[] = {
		{"", FINDING_REPORT_LOG, false},
		{"7 3 log&amp;.example", FINDING_REPORT_LOG, false},
		{"7 3 log&amp;.example " AT " w&lt;1&gt;", FINDING_REPORT_LOG, false},
		{"8 3 log&amp;.example", FINDING_REPORT_LOG, true},
		{"7 4 log&amp;.example", FINDING_REPORT_LOG, true},
		{"7 3 log.example", FINDING_REPORT_LOG, true},
		{"7 3 log&.example", FINDING_REPORT_LOG, true},
		{"7 3", FINDING_REPORT_LOG, true},
		{" ", FINDING_REPORT_LOG, true},
		{"7 3 log&amp;.example " AT " w2", FINDING_REPORT_WITNESS, true},
		{"7 3 log&amp;.example " AT " short", FINDING_REPORT_WITNESS, true},
		{"7 3 log&amp;.example " AT " w&lt;1&gt; " AT " w2", FINDING_REPORT_WITNESS, true},
		{"7 3 log&amp;.example 2023-11-14T22:13:21.000000Z w&lt;1&gt;", FINDING_REPORT_WITNESS,
	     true},
		{"7 3 log&amp;.example " AT, FINDING_REPORT_WITNESS, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct verify_result result = {0};
		struct run run = {.result = &result};
		struct input stating = {.path = "r.pdf"};
		struct input given = {
			.path = "a.zip", .log_is_read = true, .log_note = note, .log_segments = 3};
		arena_init(&result.arena, (size_t)1 << 20);
		assert_int_equal(verify_compare_log(&run, &stating, &given, cases[i].stated), 0);
		if (result.wrong != cases[i].is_wrong ||
		    (result.first && result.first->finding != cases[i].finding))
			fail_msg("%s: %d", cases[i].stated, (int)result.wrong);
		given.log_is_read = false;
		assert_int_equal(verify_compare_log(&run, &stating, &given, cases[i].stated), 0);
		assert_int_equal(result.wrong, cases[i].is_wrong);
		arena_free(&result.arena);
	}
}

TEST_CASE(random_bits_of_a_report_count)
{
	enum { FLIPS = 200 };
	unsigned seed = (unsigned)test_seed();
	BUF_AUTO struct buf bytes = {.limit = 64 << 20};
	fixture_read(report, &bytes);
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/flipped.pdf", fixture.directory);
	const char *one = path;
	for (int i = 0; i < FLIPS; i++) {
		uint64_t number = (uint64_t)rand_r(&seed) << 31 ^ (uint64_t)rand_r(&seed);
		/* Byte 0 and the last ones first: they determine the type of the file. */
		uint64_t bit = i < 8 ? (uint64_t)i : number % (bytes.size * 8);
		if (i >= 8 && i < 56)
			bit = bytes.size * 8 - 1 - (uint64_t)(i - 8);
		struct verify_result result;
		bytes.data[bit / 8] ^= (char)(1 << bit % 8);
		fixture_write(path, buf_slice(&bytes));
		fixture_verify(&one, 1, NULL, &result);
		if (verify_exit_code(&result) != 1)
			fail_msg("bit %u of byte %llu was not found", (unsigned)(bit % 8),
			         (unsigned long long)(bit / 8));
		verify_result_free(&result);
		bytes.data[bit / 8] ^= (char)(1 << bit % 8);
	}
}

TEST_MAIN(set_up, fixture_tear_down)
