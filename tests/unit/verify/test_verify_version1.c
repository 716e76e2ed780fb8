/* Evidence of archive version 1 remains valid. It is in tests/support/fixtures/evidence-1 and must
 * not be made again. */
#include <unistd.h>

#include "testing.h"
#include "archive/zip.h"
#include "test_archive_fixture.h"

#define FILES 3

static char names[FILES + 3][512]; /* the archive, the part, the report; receipts, roots, a test */
static const char *const paths[FILES] = {names[0], names[1], names[2]};
static const char *const receipts = names[3];
static const char *const trust = names[4];

static int set_up(void **state)
{
	static const char *const files[] = {"archive.zip",   "content-part-001.zip",
	                                    "report-en.pdf", "receipts.ndjson",
	                                    "trust.pem",     "test.zip"};
	const char *directory = getenv("CONSTANCIA_EVIDENCE_1");
	for (size_t i = 0; i < FILES + 3; i++)
		snprintf(names[i], sizeof *names, "%s/%s",
		         directory ? directory : "tests/support/fixtures/evidence-1", files[i]);
	return 0;
}

static void verify(const char *const *files, size_t count, struct verify_result *ret_result)
{
	BUF_AUTO struct buf pem = {.limit = 65536};
	fixture_read(trust, &pem);
	struct trust_roots roots = {.signers = buf_slice(&pem), .timestamps = buf_slice(&pem)};
	struct verify_options options = {.receipts = &receipts, .receipt_count = 1};
	assert_int_equal(verify_paths(files, count, &roots, &options, ret_result, NULL), OK);
}

TEST_CASE(it_is_valid_under_its_roots)
{
	struct verify_result result;
	verify(paths, FILES, &result);
	if (verify_exit_code(&result) != 0) {
		verify_print(&result, false, stderr);
		fail();
	}
	assert_true(result.trusted);
	assert_int_equal(result.checked.events, 4);
	assert_int_equal(result.checked.segments, 2);
	assert_int_equal(result.checked.parts, 1);
	assert_int_equal(result.checked.reports, 1);
	assert_int_equal(result.checked.receipts, 4);
	verify_result_free(&result);
}

TEST_CASE(a_test_archive_is_valid)
{
	const char *path = names[FILES + 2];
	struct verify_result result;
	assert_int_equal(verify_paths(&path, 1, NULL, NULL, &result, NULL), OK);
	assert_int_equal(verify_verdict(&result), VERIFY_SIGNER_OPEN);
	assert_int_equal(result.checked.events, 2);
	verify_result_free(&result);
}

TEST_CASE(the_second_verifier_agrees)
{
	const char *script = getenv("CONSTANCIA_CHECK_ARCHIVE");
	if (!script)
		skip();
	char command[2048];
	snprintf(command, sizeof command, "python3 %s --trust %s %s %s", script, trust, names[0],
	         names[1]);
	assert_int_equal(system(command), 0);
}

/* Flips one bit of the archive. */
TEST_CASE(damage_is_found)
{
	char path[] = "/tmp/constancia-version1-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	BUF_AUTO struct buf whole = {.limit = 1 << 20};
	fixture_read(names[0], &whole);
	for (size_t at = 13; at < whole.size; at += 397) {
		whole.data[at] ^= 4;
		fixture_write(path, buf_slice(&whole));
		whole.data[at] ^= 4;
		const char *one = path;
		struct verify_result result;
		verify(&one, 1, &result);
		assert_int_equal(verify_exit_code(&result), 1);
		verify_result_free(&result);
	}
	close(fd);
	remove(path);
}

TEST_MAIN(set_up, NULL)
