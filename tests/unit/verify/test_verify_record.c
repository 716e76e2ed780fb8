/* The verifier with evidence records and the files that they cover. */
#include <sys/stat.h>

#include "testing.h"
#include "base/json.h"
#include "ledger/ledger.h"
#include "seal/evidence_record.h"
#include "seal/signer.h"
#include "verify/extract.h"
#include "verify/verify_check.h"
#include "test_archive_fixture.h"

static struct fixture fixture;
static struct fixture_archive archive;
static char record[FIXTURE_PATH_SIZE], data[FIXTURE_PATH_SIZE];             /* of event 8 */
static char other_record[FIXTURE_PATH_SIZE], other_data[FIXTURE_PATH_SIZE]; /* of event 14 */
static char altered[FIXTURE_PATH_SIZE];
static struct buf record_der;

static void extract(int64_t sequence, const char *record_path, const char *data_path)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
	struct extracted extracted;
	char event_id[ID_SIZE];
	event_id_make(FIXTURE_CHANNEL, MODE_LIVE, sequence, event_id);
	assert_int_equal(extract_record(&(struct extraction){archive.path, event_id, NULL, NULL},
	                                &arena, &extracted, NULL),
	                 0);
	fixture_write(record_path, extracted.record);
	fixture_write(data_path, extracted.event);
}

static int set_up(void **state)
{
	static const struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};
	fixture_open(&fixture);
	assert_int_equal(fixture_make(&fixture, "archive", &plan, &archive), 0);
	snprintf(record, sizeof record, "%s/event.ers", fixture.directory);
	snprintf(data, sizeof data, "%s/event.json", fixture.directory);
	snprintf(other_record, sizeof other_record, "%s/other.ers", fixture.directory);
	snprintf(other_data, sizeof other_data, "%s/other.json", fixture.directory);
	snprintf(altered, sizeof altered, "%s/altered", fixture.directory);
	extract(8, record, data);
	extract(14, other_record, other_data);
	buf_init(&record_der, EVIDENCE_RECORD_MAX);
	fixture_read(record, &record_der);
	return 0;
}

static int tear_down(void **state)
{
	buf_free(&record_der);
	fixture_close(&fixture);
	return 0;
}

static void check(const char *const *paths, size_t count, int exit_code,
                  struct verify_result *result)
{
	fixture_verify(paths, count, &fixture.roots, result);
	fixture_expect_exit(result, exit_code);
}

#define CHECK(exit_code, result, ...)                                                              \
	check((const char *const[]){__VA_ARGS__},                                                      \
	      sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), exit_code, result)

TEST_CASE(test_covered)
{
	struct verify_result result;
	CHECK(2, &result, record, data);
	assert_false(result.trusted); /* nothing is signed */
	assert_int_equal(verify_verdict(&result), VERIFY_EXISTENCE_ONLY);
	assert_int_equal(result.wrong + result.unchecked, 0);
	assert_int_equal(result.unestablished, 1);
	assert_true(fixture_finds(&result, VERIFY_UNESTABLISHED, "",
	                          "nothing shows who recorded this event, unless an archive"));
	assert_int_equal(result.checked.records, 1);
	assert_int_equal(result.checked.timestamps, 1);
	assert_non_null(result.records);
	assert_null(result.records->next);
	assert_string_equal(result.records->path, record);
	assert_string_equal(result.records->covers->path, data);
	assert_int_equal(result.authorities.count, 1);
	assert_int_equal(result.records->facts.valid_until_us,
	                 result.authorities.first->certificate.not_after_us);
	verify_result_free(&result);

	CHECK(0, &result, other_data, data, record, archive.path, other_record);
	assert_true(result.trusted);
	assert_string_equal(result.records->covers->path, data);
	assert_string_equal(result.records->next->covers->path, other_data);
	verify_result_free(&result);
}

static int stamp(void *context, const struct digest *imprint, struct buf *token,
                 struct error *error)
{
	BUF_AUTO struct buf request = {.limit = TIMESTAMP_REQUEST_MAX};
	BUF_AUTO struct buf response = {.limit = TIMESTAMP_RESPONSE_MAX};
	struct timestamp_facts facts;
	(void)context;
	int result = timestamp_request_over(imprint, NULL, &request, error);
	if (!result)
		result = signer_timestamp(fixture.signer, buf_slice(&request), &response, error);
	return result ? result
	              : timestamp_verify_response(buf_slice(&request), buf_slice(&response),
	                                          fixture.roots.timestamps, NULL, token, &facts, error);
}

TEST_CASE(test_not_covered)
{
	struct verify_result result;
	BUF_AUTO struct buf content = {.limit = (size_t)1 << 20};
	fixture_read(data, &content);
	content.data[content.size / 2] ^= 1;
	fixture_write(altered, buf_slice(&content));
	CHECK(1, &result, record, altered);
	assert_true(
		fixture_finds(&result, VERIFY_WRONG, "", "none of the given evidence records covers"));
	assert_true(fixture_finds(&result, VERIFY_UNCHECKED, "", "was not given"));
	assert_null(result.records);
	verify_result_free(&result);
	CHECK(1, &result, record, data, altered);
	verify_result_free(&result);
	CHECK(1, &result, record, other_data);
	verify_result_free(&result);
	CHECK(2, &result, record);
	assert_true(fixture_finds(&result, VERIFY_UNCHECKED, "", "was not given"));
	verify_result_free(&result);
	CHECK(2, &result, record, archive.path);
	verify_result_free(&result);
	CHECK(2, &result, data);
	assert_true(fixture_finds(&result, VERIFY_UNCHECKED, "", "a content part or a report"));
	verify_result_free(&result);
}

TEST_CASE(test_damaged)
{
	struct verify_result result;
	for (size_t at = 0; at < record_der.size; at += 11) {
		record_der.data[at] ^= 1;
		fixture_write(altered, buf_slice(&record_der));
		record_der.data[at] ^= 1;
		const char *paths[] = {altered, data};
		fixture_verify(paths, 2, &fixture.roots, &result);
		if (verify_exit_code(&result) == 0)
			fail_msg("byte %zu was altered, and it is valid", at);
		if (at > 8)
			assert_int_equal(verify_exit_code(&result), 1);
		verify_result_free(&result);
	}
	fixture_write(altered, slice_make(record_der.data, record_der.size - 1));
	CHECK(1, &result, altered, data);
	verify_result_free(&result);
}

TEST_CASE(test_other_roots)
{
	struct verify_result result;
	const char *paths[] = {record, data};
	struct trust_roots none = {0};
	fixture_verify(paths, 2, &none, &result);
	assert_int_equal(verify_exit_code(&result), 2);
	assert_int_equal(verify_verdict(&result), VERIFY_EXISTENCE_ONLY);
	assert_int_equal(result.unestablished, 2); /* the authority, too */
	assert_false(result.trusted);
	verify_result_free(&result);
}

/* A record that covers the archive itself, renewed once. */
TEST_CASE(test_of_an_archive)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *made = NULL;
	struct tree_proof proof = {.leaf = archive.sum.sha256};
	struct verify_result result;
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};
	BUF_AUTO struct buf text = {.limit = (size_t)1 << 20};
	struct digest leaf = digest_of_sha256(&proof.leaf);
	assert_int_equal(stamp(NULL, &leaf, &token, NULL), 0);
	assert_int_equal(evidence_record_create(&proof, buf_slice(&token), &made, NULL), 0);
	assert_int_equal(
		evidence_records_renew(&(struct evidence_renewal){made, NULL}, 1, stamp, NULL, NULL), 0);
	assert_int_equal(evidence_record_write(made, &der), 0);
	fixture_write(altered, buf_slice(&der));
	CHECK(0, &result, altered, archive.path);
	assert_int_equal(result.records->facts.stamp_count, 2);

	char printed[FIXTURE_PATH_SIZE];
	snprintf(printed, sizeof printed, "%s/printed", fixture.directory);
	FILE *out = fopen(printed, "w");
	assert_non_null(out);
	verify_print(&result, true, out);
	verify_print(&result, false, out);
	fclose(out);
	fixture_read(printed, &text);
	assert_non_null(strstr(text.data, "\"evidence_records\":[{\"covers\":[\""));
	assert_non_null(strstr(text.data, "\"number\":2}],\"valid_until\":\""));
	assert_non_null(strstr(text.data, "renewed 1 times, 0 of them with a new digest"));
	verify_result_free(&result);
}

/* Anyone can get a record of invented data, such as an event of another user's channel. */
TEST_CASE(test_invented)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *made = NULL;
	struct verify_result result;
	BUF_AUTO struct buf content = {.limit = (size_t)1 << 20};
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};
	BUF_AUTO struct buf sentence = {.limit = 4096};
	char invented[FIXTURE_PATH_SIZE], invented_record[FIXTURE_PATH_SIZE];
	snprintf(invented, sizeof invented, "%s/invented.json", fixture.directory);
	snprintf(invented_record, sizeof invented_record, "%s/invented.ers", fixture.directory);
	fixture_read(data, &content);
	char *received = memmem(content.data, content.size, "\"received_at\":\"2", 16);
	assert_non_null(received);
	received[16] = '1'; /* in another century */
	fixture_write(invented, buf_slice(&content));
	struct tree_proof proof = {.leaf = sha256_of(content.data, content.size)};
	struct digest leaf = digest_of_sha256(&proof.leaf);
	assert_int_equal(stamp(NULL, &leaf, &token, NULL), 0);
	assert_int_equal(evidence_record_create(&proof, buf_slice(&token), &made, NULL), 0);
	assert_int_equal(evidence_record_write(made, &der), 0);
	fixture_write(invented_record, buf_slice(&der));

	CHECK(2, &result, invented_record, invented);
	assert_false(result.trusted);
	assert_int_equal(verify_verdict(&result), VERIFY_EXISTENCE_ONLY);
	assert_int_equal(verify_write_sentence(&result, LANGUAGE_ENGLISH, &sentence), 0);
	assert_int_equal(
		strncmp(sentence.data, "EXISTENCE ONLY: nothing shows who recorded this event, /", 56), 0);
	assert_non_null(strstr(sentence.data, " by a timestamp of Development timestamp authority ("));
	verify_result_free(&result);
	/* A signed file next to it does not vouch for it. */
	CHECK(2, &result, invented_record, invented, archive.path);
	assert_int_equal(verify_verdict(&result), VERIFY_EXISTENCE_ONLY);
	assert_true(fixture_finds(&result, VERIFY_UNESTABLISHED, "", "nothing shows who recorded"));
	verify_result_free(&result);
	/* The real one is in the archive, byte for byte; alone it is worth no more than the other. */
	CHECK(0, &result, record, data, archive.path);
	verify_result_free(&result);

	fixture_write(invented, slice_of("a letter\n"));
	proof.leaf = sha256_of("a letter\n", 9);
	leaf = digest_of_sha256(&proof.leaf);
	buf_clear(&token);
	buf_clear(&der);
	evidence_record_free(made);
	assert_int_equal(stamp(NULL, &leaf, &token, NULL), 0);
	assert_int_equal(evidence_record_create(&proof, buf_slice(&token), &made, NULL), 0);
	assert_int_equal(evidence_record_write(made, &der), 0);
	fixture_write(invented_record, buf_slice(&der));
	CHECK(2, &result, invented_record, invented);
	assert_true(fixture_finds(&result, VERIFY_UNESTABLISHED, "", "nothing shows who made this"));
	verify_result_free(&result);
}

/* With many records, every file would be read for each of them. */
TEST_CASE(test_digested_once)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *made = NULL;
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};
	BUF_AUTO struct buf text = {.limit = (size_t)1 << 20};
	struct verify_result result = {0};
	fixture_read(data, &text);
	struct tree_proof proof = {.leaf = sha256_of(text.data, text.size)};
	struct digest leaf = digest_of_sha256(&proof.leaf);
	struct digest other = digest_by(DIGEST_SHA512, text.data, text.size);
	assert_int_equal(stamp(NULL, &leaf, &token, NULL), 0);
	assert_int_equal(evidence_record_create(&proof, buf_slice(&token), &made, NULL), 0);
	assert_int_equal(
		evidence_records_renew(&(struct evidence_renewal){made, &other}, 1, stamp, NULL, NULL), 0);
	assert_int_equal(evidence_record_write(made, &der), 0);
	fixture_write(altered, buf_slice(&der));

	struct input inputs[] = {verify_make_input(altered, altered), verify_make_input(data, data)};
	struct run run = {.result = &result,
	                  .roots = fixture.roots,
	                  .inputs = inputs,
	                  .input_count = sizeof inputs / sizeof *inputs};
	result.at_us = clock_now_us();
	arena_init(&result.arena, (size_t)16 << 20);
	inputs[0].kind = INPUT_RECORD;
	for (size_t i = 0; i < run.input_count; i++) {
		struct stat facts;
		assert_int_equal(stat(inputs[i].file, &facts), 0);
		inputs[i].identity = zip_identity(&facts);
		assert_int_equal(zip_file_sum(inputs[i].file, &inputs[i].sum, NULL), 0);
	}
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(verify_record(&run, &inputs[0]), 0);
	assert_int_equal(result.wrong + result.unchecked, 0);
	assert_true(inputs[1].covered);
	assert_int_equal(run.digested_files, 1);
	arena_free(&result.arena);
}

TEST_MAIN(set_up, tear_down)
