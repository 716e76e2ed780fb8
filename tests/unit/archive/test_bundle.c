/* The container of files with their evidence record: made, and read with every byte of a small one
 * altered. */
#include <unistd.h>

#include "testing.h"
#include "archive/bundle.h"
#include "base/base64.h"
#include "seal/evidence_record.h"
#include "seal/signer.h"
#include "stride.h"
#include "test_archive_fixture.h"

static struct fixture fixture;
static struct fixture_archive archive;
static char record[FIXTURE_PATH_SIZE], note[FIXTURE_PATH_SIZE], other[FIXTURE_PATH_SIZE],
	container[FIXTURE_PATH_SIZE], altered[FIXTURE_PATH_SIZE];
static const char *files[2]; /* of the group */

/* Makes the record of these files as one group. */
static void make_record(const char *const *paths, size_t count)
{
	struct digest members[4];
	struct evidence_path path = {.group = members, .group_count = count};
	EVIDENCE_RECORD_AUTO struct evidence_record *made = NULL;
	struct cms_signer signer;
	struct sha256 imprint;
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};
	for (size_t i = 0; i < count; i++) {
		struct zip_sum sum;
		assert_int_equal(zip_file_sum(paths[i], &sum, NULL), 0);
		members[i] = digest_of_sha256(&sum.sha256);
	}
	assert_int_equal(evidence_group_leaf(members, count, &path.leaf), 0);
	memcpy(imprint.bytes, path.leaf.bytes, SHA256_SIZE);
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &signer);
	assert_int_equal(signing.timestamp(signing.timestamp_context, &imprint, &token, NULL), 0);
	assert_int_equal(evidence_record_begin_chain(&made, &path, buf_slice(&token), NULL), 0);
	assert_int_equal(evidence_record_group_size(made), count);
	assert_int_equal(evidence_record_write(made, &der), 0);
	fixture_write(record, buf_slice(&der));
}

static int set_up(void **state)
{
	static const struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};
	fixture_open(&fixture);
	assert_int_equal(fixture_make(&fixture, "archive", &plan, &archive), 0);
	snprintf(record, sizeof record, "%s/record.ers", fixture.directory);
	snprintf(note, sizeof note, "%s/note.txt", fixture.directory);
	snprintf(other, sizeof other, "%s/other.txt", fixture.directory);
	snprintf(container, sizeof container, "%s/all.asice", fixture.directory);
	snprintf(altered, sizeof altered, "%s/altered.asice", fixture.directory);
	fixture_write(note, slice_of("a note\n"));
	fixture_write(other, slice_of("another note\n"));
	files[0] = note;
	files[1] = archive.path;
	make_record(files, 2);
	return 0;
}

static int write_bundle(const char *const *paths, size_t count, struct bundled *ret_bundled)
{
	struct error error = {0};
	struct bundle bundle = {record, paths, count, container};
	int result = bundle_write(&bundle, ret_bundled, &error);
	if (result)
		print_message("%s\n", error.cause);
	return result;
}

static void check(const char *path, int exit_code, struct verify_result *result)
{
	fixture_verify(&path, 1, &fixture.roots, result);
	fixture_expect_exit(result, exit_code);
}

TEST_CASE(its_files_are_checked_as_if_given)
{
	struct bundled bundled;
	struct verify_result result;
	char wanted[FIXTURE_PATH_SIZE + 40];
	assert_int_equal(write_bundle(files, 2, &bundled), 0);
	/* The archive is signed; nothing identifies the author of the note. */
	check(container, 2, &result);
	assert_true(result.trusted);
	assert_int_equal(verify_verdict(&result), VERIFY_EXISTENCE_ONLY);
	assert_int_equal(result.existence_only, 1);
	snprintf(wanted, sizeof wanted, "%s/note.txt", container);
	assert_string_equal(result.existence.path, wanted);
	assert_int_equal(result.checked.records, 1);
	assert_int_equal(result.checked.events, 8);
	assert_non_null(result.records);
	snprintf(wanted, sizeof wanted, "%s/archive.zip", container);
	assert_string_equal(result.records->covers->path, wanted);
	snprintf(wanted, sizeof wanted, "%s/note.txt", container);
	assert_string_equal(result.records->covers->next->path, wanted);
	assert_int_equal(result.records->facts.exists_since_us, bundled.exists_since_us);
	verify_result_free(&result);
}

TEST_CASE(only_what_the_record_covers_goes_in)
{
	struct bundled bundled;
	const char *foreign[] = {note, other}, *one[] = {note}, *twice[] = {note, note};
	const char *more[] = {note, archive.path, other};
	unlink(container);
	assert_int_equal(write_bundle(foreign, 2, &bundled), ERR_INVALID_EVIDENCE);
	assert_int_equal(write_bundle(one, 1, &bundled), ERR_USAGE);
	assert_int_equal(write_bundle(twice, 2, &bundled), ERR_USAGE);
	assert_int_equal(write_bundle(more, 3, &bundled), ERR_INVALID_EVIDENCE);
	assert_int_not_equal(access(container, F_OK), 0);
}

/* Makes a container of any entries. */
static void make_container(const char *const (*entries)[2], size_t count)
{
	struct zip_writer *zip;
	struct zip_sum sum;
	assert_int_equal(zip_create(altered, ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, &zip, NULL), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(zip_add(zip, entries[i][0], slice_of(entries[i][1]), NULL, NULL), 0);
	assert_int_equal(zip_finish(zip, &sum, NULL), 0);
	zip_writer_free(zip);
}

TEST_CASE(every_byte_counts)
{
	struct bundled bundled;
	struct verify_result result;
	BUF_AUTO struct buf whole = {.limit = (size_t)1 << 20};
	const char *small[] = {note, other}, *path = altered;
	make_record(small, 2);
	assert_int_equal(write_bundle(small, 2, &bundled), 0);
	fixture_read(container, &whole);
	/* All bytes but those of the record, which another test alters. */
	const char *der = memmem(whole.data, whole.size, BUNDLE_RECORD_NAME, 20);
	assert_non_null(der);
	size_t from = (size_t)(der - whole.data) + 40, to = whole.size - 400;
	for (size_t at = 0, next; at < whole.size; at = next) {
		bool inside = at > from && at < to;
		next = inside ? at + 61 : stride_next(at);
		whole.data[at] ^= 1;
		fixture_write(altered, buf_slice(&whole));
		whole.data[at] ^= 1;
		fixture_verify(&path, 1, &fixture.roots, &result);
		if (verify_exit_code(&result) != 1)
			fail_msg("byte %zu of %zu: the exit code is %d", at, whole.size,
			         verify_exit_code(&result));
		verify_result_free(&result);
	}
	for (size_t size = 70; size < whole.size; size += 37) {
		fixture_write(altered, slice_make(whole.data, size));
		fixture_verify(&path, 1, &fixture.roots, &result);
		assert_int_not_equal(verify_exit_code(&result), 0);
		verify_result_free(&result);
	}
	buf_add_byte(&whole, 0);
	fixture_write(altered, buf_slice(&whole));
	check(altered, 1, &result);
	verify_result_free(&result);
	make_record(files, 2);
}

TEST_CASE(other_shapes_are_refused)
{
	struct verify_result result;
	static const char *const few[][2] = {
		{"mimetype", "application/vnd.etsi.asic-e+zip"},
		{"a", "x"},
		{BUNDLE_MANIFEST_NAME, "<x/>"},
		{BUNDLE_RECORD_NAME, "x"},
	};
	static const char *const disordered[][2] = {
		{"mimetype", "application/vnd.etsi.asic-e+zip"},
		{"b", "x"},
		{"a", "x"},
		{BUNDLE_MANIFEST_NAME, "<x/>"},
		{BUNDLE_RECORD_NAME, "x"},
	};
	static const char *const no_manifest[][2] = {
		{"mimetype", "application/vnd.etsi.asic-e+zip"},
		{"a", "x"},
		{"b", "x"},
		{"c", "x"},
		{BUNDLE_RECORD_NAME, "x"},
	};
	make_container(few, 4);
	check(altered, 1, &result);
	assert_true(fixture_finds(&result, VERIFY_WRONG, "", "4 entries"));
	verify_result_free(&result);
	make_container(disordered, 5);
	check(altered, 1, &result);
	assert_true(fixture_finds(&result, VERIFY_WRONG, "", "is not allowed at this position"));
	verify_result_free(&result);
	make_container(no_manifest, 5);
	check(altered, 1, &result);
	assert_true(fixture_finds(&result, VERIFY_WRONG, "", "must be the last two entries"));
	verify_result_free(&result);
}

/* Makes a valid container but for the record, which covers these texts in the place of note and
 * other. */
static void make_with_record(const char *const *texts, size_t count)
{
	static const char frame[] =
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<asic:ASiCManifest xmlns:asic=\"http://uri.etsi.org/02918/v1.2.1#\""
		" xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\">\n"
		"<asic:SigReference URI=\"META-INF/evidencerecord001.ers\"/>\n";
	static const char *const names[] = {"note.txt", "other.txt", "third.txt"};
	const char *both[] = {note, other};
	struct zip_writer *zip;
	struct zip_sum sum;
	BUF_AUTO struct buf manifest = {.limit = BUNDLE_MANIFEST_MAX};
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};
	make_record(both, 2);
	fixture_read(record, &der);
	buf_add_text(&manifest, frame);
	assert_int_equal(zip_create(altered, ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, &zip, NULL), 0);
	assert_int_equal(
		zip_add(zip, "mimetype", slice_of("application/vnd.etsi.asic-e+zip"), NULL, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(zip_add(zip, names[i], slice_of(texts[i]), &sum, NULL), 0);
		buf_printf(&manifest,
		           "<asic:DataObjectReference URI=\"%s\"><ds:DigestMethod"
		           " Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"/><ds:DigestValue>",
		           names[i]);
		buf_add_base64(&manifest, slice_make(sum.sha256.bytes, SHA256_SIZE));
		buf_add_text(&manifest, "</ds:DigestValue></asic:DataObjectReference>\n");
	}
	buf_add_text(&manifest, "</asic:ASiCManifest>\n");
	assert_int_equal(zip_add(zip, BUNDLE_MANIFEST_NAME, buf_slice(&manifest), NULL, NULL), 0);
	assert_int_equal(zip_add(zip, BUNDLE_RECORD_NAME, buf_slice(&der), NULL, NULL), 0);
	assert_int_equal(zip_finish(zip, &sum, NULL), 0);
	zip_writer_free(zip);
}

TEST_CASE(a_record_has_to_cover_all)
{
	static const char *const texts[] = {"a note\n", "another note\n", "a third\n"};
	struct verify_result result;
	make_with_record(texts, 3);
	check(altered, 1, &result);
	assert_true(
		fixture_finds(&result, VERIFY_WRONG, "", "of its container does not cover the file"));
	assert_true(fixture_finds(&result, VERIFY_WRONG, "", "the evidence record covers 2 files"));
	verify_result_free(&result);
}

/* A second copy of one file makes up the number. */
TEST_CASE(a_copy_stands_for_no_other_file)
{
	static const char *const right[] = {"a note\n", "another note\n"};
	static const char *const copied[] = {"a note\n", "a note\n"};
	char copy[FIXTURE_PATH_SIZE];
	const char *both[] = {note, other}, *same[] = {note, copy};
	struct bundled bundled;
	struct verify_result result;
	make_with_record(right, 2);
	check(altered, 2, &result); /* nothing is signed */
	assert_false(result.trusted);
	assert_int_equal(verify_verdict(&result), VERIFY_EXISTENCE_ONLY);
	assert_int_equal(result.existence_only, 2);
	verify_result_free(&result);
	make_with_record(copied, 2);
	check(altered, 1, &result);
	assert_true(fixture_finds(&result, VERIFY_WRONG, "", "2 files of the container are identical"));
	verify_result_free(&result);
	snprintf(copy, sizeof copy, "%s/copy.txt", fixture.directory);
	fixture_write(copy, slice_of("a note\n"));
	make_record(both, 2);
	unlink(container);
	assert_int_equal(write_bundle(same, 2, &bundled), ERR_INVALID_EVIDENCE);
	assert_int_not_equal(access(container, F_OK), 0);
	/* A group may contain a file twice. */
	make_record(same, 2);
	assert_int_equal(write_bundle(same, 2, &bundled), 0);
	check(container, 2, &result);
	assert_int_equal(result.existence_only, 2);
	verify_result_free(&result);
}

TEST_CASE(names_are_ordinary_on_every_system)
{
	static const char *const refused[] = {
		"",         ".",        "..",       "a/b",      "a b",      "-rf",     ".hidden",
		"ends.",    "CON",      "con.txt",  "Nul",      "aux.x",    "prn",     "COM1",
		"lpt9.pdf", "Com0.a.b", "META-INF", "meta-inf", "mimetype", "MimeType"};
	static const char *const allowed[] = {"a",       "CON-1",        "COM",       "COM10",
	                                      "console", "a.CON",        "META-INF1", "mimetype.x",
	                                      "x-.y",    "CERT-1-es.pdf"};
	static const char *const cases[][2] = {
		{"mimetype", "application/vnd.etsi.asic-e+zip"},
		{"A", "x"},
		{"a", "y"},
		{BUNDLE_MANIFEST_NAME, "<x/>"},
		{BUNDLE_RECORD_NAME, "x"},
	};
	struct verify_result result;
	struct bundled bundled;
	char upper[FIXTURE_PATH_SIZE];
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (bundle_name_allowed(slice_of(refused[i])))
			fail_msg("\"%s\" is allowed", refused[i]);
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
		if (!bundle_name_allowed(slice_of(allowed[i])))
			fail_msg("\"%s\" is refused", allowed[i]);
	snprintf(upper, sizeof upper, "%s/NOTE.txt", fixture.directory);
	fixture_write(upper, slice_of("in capitals\n"));
	const char *both[] = {note, upper};
	make_record(both, 2);
	assert_int_equal(write_bundle(both, 2, &bundled), ERR_USAGE);
	make_container(cases, 5);
	check(altered, 1, &result);
	assert_true(fixture_finds(&result, VERIFY_WRONG, "", "is not allowed at this position"));
	verify_result_free(&result);
}

/* Two containers hold the same file: each has its own record. */
TEST_CASE(containers_are_checked_each_by_itself)
{
	const char *first[] = {note, other}, *second[] = {note, archive.path};
	const char *paths[] = {container, altered};
	struct bundled bundled;
	struct verify_result result;
	make_record(first, 2);
	assert_int_equal(write_bundle(first, 2, &bundled), 0);
	assert_int_equal(rename(container, altered), 0);
	make_record(second, 2);
	assert_int_equal(write_bundle(second, 2, &bundled), 0);
	fixture_verify(paths, 2, &fixture.roots, &result);
	assert_int_equal(verify_verdict(&result), VERIFY_EXISTENCE_ONLY); /* of all but the archive */
	assert_int_equal(result.existence_only, 3);
	for (const struct verify_record *each = result.records; each; each = each->next) {
		assert_non_null(each->covers->next);
		assert_null(each->covers->next->next);
	}
	verify_result_free(&result);
}

TEST_MAIN(set_up, fixture_tear_down)
