#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "testing.h"
#include "archive/archive_lines.h"
#include "archive/zip_shape.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "stride.h"
#include "test_archive_fixture.h"

static struct fixture fixture;

static int set_up(void **state)
{
	fixture_open(&fixture);
	return 0;
}

/* Verifies the archive and all its parts. */
static void verify_all(const struct fixture_archive *made, const struct trust_roots *roots,
                       struct verify_result *ret_result)
{
	const char *paths[FIXTURE_PARTS_MAX + 1] = {made->path};
	for (size_t i = 0; i < made->part_count; i++)
		paths[i + 1] = made->part_paths[i];
	fixture_verify(paths, made->part_count + 1, roots, ret_result);
}

TEST_CASE(whole_archives_are_valid)
{
	static const struct fixture_plan plans[] = {
		{MODE_LIVE, 1, 1, 1, 5, false, 0, FAULT_NONE},
		{MODE_LIVE, 1, 1, 1, 5, true, 0, FAULT_NONE},
		{MODE_LIVE, 20, 1, 20, 5, false, 0, FAULT_NONE}, /* whole segments */
		{MODE_LIVE, 20, 6, 15, 5, false, 0, FAULT_NONE},
		{MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE}, /* leaves at both ends */
		{MODE_LIVE, 20, 8, 9, 20, true, 0, FAULT_NONE},  /* both in one segment */
		{MODE_LIVE, 20, 20, 20, 1, true, 0, FAULT_NONE},
		{MODE_LIVE, 60, 2, 59, 7, true, 9, FAULT_NONE}, /* several parts */
		{MODE_TEST, 20, 1, 20, 0, true, 6, FAULT_NONE},
		{MODE_TEST, 20, 4, 9, 0, false, 0, FAULT_NONE},
	};
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		char name[32];
		struct fixture_archive made;
		struct verify_result result;
		snprintf(name, sizeof name, "whole-%zu", i);
		fixture_make_good(&fixture, name, &plans[i], &made);
		verify_all(&made, &fixture.roots, &result);
		fixture_expect_exit(&result, 0);
		assert_true(result.trusted);
		assert_int_equal(result.checked.events, plans[i].last - plans[i].first + 1);
		assert_int_equal(result.checked.parts, made.part_count);
		bool test = plans[i].mode == MODE_TEST;
		/* A development authority and no revocation data, or a test archive. */
		assert_int_equal(fixture_warnings(&result), test ? 1 : 2);
		assert_int_equal(fixture_finds(&result, VERIFY_WARNING, "META-INF/",
		                               "the file contains no revocation data"),
		                 !test);
		fixture_expect_finding(&result, VERIFY_WARNING, "",
		                       test ? "without timestamps or probative value"
		                            : "development authority");
		assert_true(test ? result.checked.segments == 0 : result.checked.segments > 0);
		verify_result_free(&result);

		verify_all(&made, NULL, &result);
		fixture_expect_exit(&result, 2);
		assert_false(result.trusted);
		assert_int_equal(verify_verdict(&result), VERIFY_SIGNER_OPEN);
		assert_int_equal(result.unestablished, test ? 1 : 2);
		assert_int_equal(result.wrong + result.unchecked, 0);
		fixture_expect_finding(&result, VERIFY_UNESTABLISHED, "", "the signer was not established");
		verify_result_free(&result);
	}
}

TEST_CASE(other_roots_do_not_vouch)
{
	struct fixture other;
	struct fixture_plan plan = {MODE_LIVE, 5, 1, 5, 5, false, 0, FAULT_NONE};
	struct fixture_archive made;
	struct verify_result result;
	fixture_make_good(&fixture, "roots", &plan, &made);
	fixture_open(&other);
	verify_all(&made, &other.roots, &result);
	fixture_expect_exit(&result, 2);
	assert_false(result.trusted);
	assert_int_equal(verify_verdict(&result), VERIFY_SIGNER_OPEN);
	assert_int_equal(result.unestablished, 2);
	fixture_expect_finding(&result, VERIFY_UNESTABLISHED, "",
	                       "the signer was not established: the certificate in the name of "
	                       "Development report signer");
	fixture_expect_finding(
		&result, VERIFY_UNESTABLISHED, "",
		"the timestamp authority was not established: the certificate in the name "
		"of Development timestamp authority");
	verify_result_free(&result);
	fixture_close(&other);
}

static void expect_sentence(const struct verify_result *result, enum language language,
                            const char *wanted)
{
	BUF_AUTO struct buf sentence = {.limit = 4096};
	assert_int_equal(verify_write_sentence(result, language, &sentence), 0);
	assert_string_equal(sentence.data, wanted);
}

/* The first line is for lay readers; the last one begins with the same word. */
TEST_CASE(the_first_line_says_it_all)
{
	struct fixture other;
	struct fixture_plan live = {MODE_LIVE, 5, 1, 5, 5, false, 0, FAULT_NONE};
	struct fixture_plan test = {MODE_TEST, 5, 1, 5, 0, false, 0, FAULT_NONE};
	struct fixture_plan wrong = {MODE_LIVE, 5, 1, 5, 5, false, 0, FAULT_PATH};
	struct fixture_archive made;
	struct verify_result result;
	struct trust_roots half = {.signers = fixture.roots.signers};
	fixture_open(&other);
	fixture_make_good(&fixture, "told", &live, &made);
	verify_all(&made, &fixture.roots, &result);
	expect_sentence(&result, LANGUAGE_ENGLISH,
	                "VALID: issued by Development report signer (Constancia development, no legal "
	                "value); the times were given by Development timestamp authority (Constancia "
	                "development, no legal value).");
	expect_sentence(&result, LANGUAGE_SPANISH,
	                "VÁLIDO: emitido por Development report signer (Constancia development, no "
	                "legal value); las horas las dio Development timestamp authority (Constancia "
	                "development, no legal value).");
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	verify_print(&result, false, out);
	fclose(out);
	assert_int_equal(strncmp(text, "VALID: issued by Development report signer", 42), 0);
	assert_non_null(strstr(text, "\nVALID: 5 events, "));
	free(text);
	verify_result_free(&result);
	verify_all(&made, NULL, &result);
	expect_sentence(&result, LANGUAGE_ENGLISH,
	                "INTACT, SIGNER NOT ESTABLISHED: nothing was changed since it was signed in "
	                "the name of Development report signer (Constancia development, no legal "
	                "value); anyone can create a certificate in that name, and no trusted root was "
	                "given that vouches for it (--trust).");
	verify_result_free(&result);
	half.timestamps = other.roots.timestamps;
	verify_all(&made, &half, &result);
	expect_sentence(&result, LANGUAGE_ENGLISH,
	                "INTACT, TIMESTAMP AUTHORITY NOT ESTABLISHED: issued by Development report "
	                "signer (Constancia development, no legal value), but the times were given in "
	                "the name of Development timestamp authority (Constancia development, no legal "
	                "value); anyone can create a certificate in that name, and this one does not "
	                "chain to any of the given roots.");
	fixture_expect_exit(&result, 2);
	verify_result_free(&result);
	fixture_make_good(&fixture, "told-test", &test, &made);
	verify_all(&made, &fixture.roots, &result);
	expect_sentence(&result, LANGUAGE_ENGLISH,
	                "VALID: issued by Development report signer (Constancia development, no legal "
	                "value); it is a test, without timestamps or probative value.");
	verify_result_free(&result);
	fixture_make_good(&fixture, "told-wrong", &wrong, &made);
	verify_all(&made, &fixture.roots, &result);
	char wanted[512];
	snprintf(wanted, sizeof wanted,
	         "NOT VALID: %s: seals/seals-000001.ndjson.gz line 1 member path: the events and "
	         "the seal of the segment do not lead to the root of the round.",
	         made.path);
	expect_sentence(&result, LANGUAGE_ENGLISH, wanted);
	verify_result_free(&result);
	fixture_close(&other);
}

/* Signs the archive at `from` again: correctly, but dated `signing_time_us`. */
static void sign_again(const char *from, const char *to, int64_t signing_time_us)
{
	struct cms_signer signer;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &signer);
	struct zip_reader *reader;
	struct zip_writer *writer;
	struct zip_sum sum;
	assert_int_equal(zip_open(from, &reader, NULL), 0);
	assert_int_equal(zip_create(to, ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, &writer, NULL), 0);
	for (uint32_t i = 0; i < zip_count(reader); i++) {
		const struct zip_entry *entry = zip_at(reader, i);
		char name[ZIP_NAME_MAX + 1];
		BUF_AUTO struct buf content = {.limit = 1 << 20};
		snprintf(name, sizeof name, "%.*s", (int)entry->name.size, entry->name.data);
		if (i + 1 == zip_count(reader))
			assert_int_equal(cms_create(&sum.sha256, signing_time_us, &signing, &content, NULL), 0);
		else
			assert_int_equal(zip_entry_load(reader, entry, 1 << 20, &content, NULL), 0);
		assert_int_equal(zip_add(writer, name, buf_slice(&content), &sum, NULL), 0);
	}
	assert_int_equal(zip_finish(writer, &sum, NULL), 0);
	zip_writer_free(writer);
	zip_reader_free(reader);
}

TEST_CASE(the_signing_time_is_the_time_of_issue)
{
	struct fixture_plan plan = {MODE_LIVE, 5, 1, 5, 5, false, 0, FAULT_NONE};
	struct fixture_archive made;
	int64_t before = clock_now_us();
	fixture_make_good(&fixture, "dated", &plan, &made);
	int64_t wrong[] = {TIME_NONE, before - US_PER_SECOND, clock_now_us() + US_PER_SECOND};
	char path[FIXTURE_PATH_SIZE];
	const char *one = path;
	snprintf(path, sizeof path, "%s/dated-again.zip", fixture.directory);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct verify_result result;
		sign_again(made.path, path, wrong[i]);
		fixture_verify(&one, 1, &fixture.roots, &result);
		fixture_expect_exit(&result, 1);
		assert_int_equal(result.wrong, 1);
		fixture_expect_finding(&result, VERIFY_WRONG, "META-INF/signature001.p7s", "signing-time");
		verify_result_free(&result);
	}
}

/* Digests and signature are correct: the owner of the writer could have done it. */
TEST_CASE(faults_are_named_where_they_are)
{
	static const struct {
		enum fixture_fault fault;
		const char *where, *what;
	} cases[] = {
		{FAULT_EVENT_FOREIGN, "seals/seals-000001.ndjson.gz line 2 member seal.chain_hash_last",
	     "not the chain hash of the last event of the segment"},
		{FAULT_RECEIVED_BEFORE,
	     "events/events-000001.ndjson.gz line 2 sequence 3 member received_at", "earlier"},
		{FAULT_CONFIG_HASH, "events/events-000001.ndjson.gz line 2 sequence 3 member config_hash",
	     "not the SHA-256 of the configuration"},
		{FAULT_UNUSED_CONFIG, "manifest.json", "no event refers to version 2"},
		{FAULT_PATH, "seals/seals-000001.ndjson.gz line 1 member path", "do not lead"},
		{FAULT_LEAF, "leaves/leaves-000001.ndjson.gz line 1 member chain_hash",
	     "previous_chain_hash of the first event of the range"},
		{FAULT_LEAF, "seals/seals-000001.ndjson.gz line 1 member path", "do not lead"},
		{FAULT_LEAF_MISSING, "seals/seals-000001.ndjson.gz line 1", "outside the range"},
		{FAULT_PREVIOUS_TOKEN, "line 2 member seal.previous_token_hash",
	     "token of the previous round"},
		{FAULT_PREVIOUS_SEAL, "line 2 member seal.previous_seal_hash",
	     "of the previous seal document"},
		{FAULT_SEGMENT_MISSING, "seals/seals-000001.ndjson.gz line 1 member seal.first_sequence",
	     "does not continue"},
		{FAULT_ROUND_ROOT, "rounds/rounds-000001.ndjson.gz line 1", ""},
		{FAULT_GEN_TIME, "rounds/rounds-000001.ndjson.gz line 1",
	     "differs from the time in the token"},
		{FAULT_SEAL_COUNT, "seals/seals-000001.ndjson.gz line 2", "could be read"},
		{FAULT_LATE_EVENT, "seals/seals-000001.ndjson.gz line 2",
	     "is earlier than the received_at of one of its events"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture_plan plan = {MODE_LIVE, 7, 2, 7, 5, false, 0, cases[i].fault};
		char name[32];
		struct fixture_archive made;
		struct verify_result result;
		snprintf(name, sizeof name, "fault-%zu", i);
		if (cases[i].fault == FAULT_UNUSED_CONFIG)
			plan.last = 3;
		fixture_make_good(&fixture, name, &plan, &made);
		verify_all(&made, &fixture.roots, &result);
		if (!fixture_finds(&result, VERIFY_WRONG, cases[i].where, cases[i].what)) {
			verify_print(&result, false, stderr);
			fail_msg("fault %d was not found at %s", cases[i].fault, cases[i].where);
		}
		fixture_expect_exit(&result, 1);
		verify_result_free(&result);
		if (fixture_agrees(&fixture, made.path, &made, NULL))
			fail_msg("fault %d: the second verifier takes it", cases[i].fault);
	}
}

TEST_CASE(too_many_rounds_are_found)
{
	struct fixture_plan plan = {MODE_LIVE, 30, 16, 30, 5, false, 0, FAULT_ROUND_EXTRA};
	struct fixture_archive made;
	struct verify_result result;
	fixture_make_good(&fixture, "rounds", &plan, &made);
	verify_all(&made, &fixture.roots, &result);
	fixture_expect_exit(&result, 1);
	fixture_expect_finding(&result, VERIFY_WRONG, "rounds/", "more than one round");
	verify_result_free(&result);
}

TEST_CASE(genesis_is_bound_to_event_one)
{
	struct fixture_plan plan = {MODE_LIVE, 5, 1, 5, 5, false, 0, FAULT_GENESIS};
	struct fixture_archive made;
	struct verify_result result;
	fixture_make_good(&fixture, "genesis", &plan, &made);
	verify_all(&made, &fixture.roots, &result);
	fixture_expect_exit(&result, 1);
	fixture_expect_finding(&result, VERIFY_WRONG, "genesis.json", "event 1");
	verify_result_free(&result);
}

/* Flips one bit of a file on disk; a second call restores it. */
static void flip(int fd, uint64_t bit)
{
	uint8_t byte;
	assert_int_equal(pread(fd, &byte, 1, (off_t)(bit / 8)), 1);
	byte ^= (uint8_t)(1u << bit % 8);
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
}

static void expect_flip_found(int fd, uint64_t bit, const char *const *paths, size_t count)
{
	static const struct verify_options options = {.stop_early = true};
	struct verify_result result;
	flip(fd, bit);
	assert_int_equal(verify_paths(paths, count, NULL, &options, &result, NULL), 0);
	if (verify_exit_code(&result) != 1)
		fail_msg("bit %u of byte %llu was flipped and not found", (unsigned)(bit % 8),
		         (unsigned long long)(bit / 8));
	verify_result_free(&result);
	flip(fd, bit);
}

static int end_at_once(void *context, const char *path, uint64_t done, uint64_t total)
{
	return ERR_UNAVAILABLE;
}

/* As a forger would, corrects the CRC-32 of the changed entry in both headers. */
static void repair_crc(int fd, const struct zip_entry *entry, uint64_t record)
{
	uint8_t chunk[4096], header[ZIP_LOCAL_SIZE], central[ZIP_CENTRAL_SIZE];
	struct zip_entry changed = *entry;
	uLong crc = crc32(0, NULL, 0);
	for (uint64_t done = 0; done < entry->size;) {
		size_t size =
			entry->size - done < sizeof chunk ? (size_t)(entry->size - done) : sizeof chunk;
		assert_true(file_read_at(fd, chunk, size, entry->offset + done));
		crc = crc32_z(crc, chunk, size);
		done += size;
	}
	changed.crc = (uint32_t)crc;
	zip_local_header(&changed, header);
	zip_central_header(&changed, central);
	off_t local = (off_t)(entry->offset - entry->name.size - ZIP_LOCAL_SIZE);
	assert_int_equal(pwrite(fd, header, sizeof header, local), sizeof header);
	assert_int_equal(pwrite(fd, central, sizeof central, (off_t)record), sizeof central);
}

TEST_CASE(cut_and_longer_files_are_found)
{
	struct fixture_plan plan = {MODE_TEST, 4, 1, 4, 0, false, 0, FAULT_NONE};
	struct fixture_archive made;
	struct verify_result result;
	fixture_make_good(&fixture, "cut", &plan, &made);
	BUF_AUTO struct buf bytes = {.limit = 1 << 20};
	fixture_read(made.path, &bytes);
	const char *path = made.path;
	for (size_t size = 0; size < bytes.size; size += 97) {
		fixture_write(path, slice_make(bytes.data, size));
		fixture_verify(&path, 1, NULL, &result);
		fixture_expect_exit(&result, size < 4 ? 2 : 1);
		verify_result_free(&result);
	}
	buf_add(&bytes, "", 1);
	fixture_write(path, buf_slice(&bytes));
	fixture_verify(&path, 1, NULL, &result);
	fixture_expect_exit(&result, 1);
	verify_result_free(&result);
}

TEST_CASE(a_part_needs_its_archive)
{
	struct fixture_plan plan = {MODE_LIVE, 20, 3, 14, 5, true, 6, FAULT_NONE};
	struct fixture_archive made;
	struct verify_result result;
	fixture_make_good(&fixture, "alone", &plan, &made);
	assert_int_equal(made.part_count, 3);
	const char *path = made.part_paths[1];
	fixture_verify(&path, 1, &fixture.roots, &result);
	fixture_expect_exit(&result, 2);
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "CERT-2026-0000001");
	assert_false(result.trusted);
	verify_result_free(&result);

	path = made.path;
	fixture_verify(&path, 1, &fixture.roots, &result);
	fixture_expect_exit(&result, 0);
	fixture_expect_finding(&result, VERIFY_WARNING, "content-part-002.zip", "not given");
	verify_result_free(&result);

	const char *both[] = {made.part_paths[2], made.path};
	fixture_verify(both, 2, &fixture.roots, &result);
	fixture_expect_exit(&result, 0);
	assert_int_equal(fixture_warnings(&result),
	                 4); /* two parts, the development authority, no revocation data */
	verify_result_free(&result);
}

TEST_CASE(a_part_of_another_archive_is_found)
{
	struct fixture_plan plan = {MODE_LIVE, 20, 3, 14, 5, true, 6, FAULT_NONE};
	struct fixture_archive made, other;
	struct verify_result result;
	fixture_make_good(&fixture, "mine", &plan, &made);
	plan.part_entries_max = 5;
	fixture_make_good(&fixture, "other", &plan, &other);
	const char *both[] = {made.path, other.part_paths[0]};
	fixture_verify(both, 2, &fixture.roots, &result);
	fixture_expect_exit(&result, 1);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "lists no part with its SHA-256");
	verify_result_free(&result);
}

TEST_CASE(what_cannot_be_read_is_not_called_invalid)
{
	struct verify_result result;
	const char *paths[] = {"/nonexistent", "/", "/dev/zero"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		fixture_verify(&paths[i], 1, NULL, &result);
		fixture_expect_exit(&result, 2);
		verify_result_free(&result);
	}
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/text", fixture.directory);
	fixture_write(path, slice_of("no evidence at all, but a text of some length"));
	const char *one = path;
	fixture_verify(&one, 1, NULL, &result);
	fixture_expect_exit(&result, 2);
	verify_result_free(&result);
	BUF_AUTO struct buf roots = {.limit = 1 << 20};
	assert_int_equal(verify_read_roots(path, &roots, NULL), ERR_IO);
	assert_int_equal(verify_read_roots("/nonexistent", &roots, NULL), ERR_IO);
	assert_int_equal(verify_read_roots("/", &roots, NULL), ERR_IO);
	/* A pipe with no process at the other end. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(120);
	assert_int_equal(verify_read_roots(path, &roots, NULL), ERR_IO);
	fixture_verify(&one, 1, NULL, &result);
	fixture_expect_exit(&result, 2);
	verify_result_free(&result);
	alarm(0);
	assert_int_equal(verify_paths(&one, 0, NULL, NULL, &result, NULL), ERR_USAGE);
}

/* Valid in form, with a text that would fill the memory as a tree. */
TEST_CASE(hostile_documents_are_refused)
{
	static const char *const names[] = {"mimetype",
	                                    "README.txt",
	                                    "LEEME.txt",
	                                    "genesis.json",
	                                    "config/config-000001.json",
	                                    "events/events-000001.ndjson.gz",
	                                    "manifest.json",
	                                    "META-INF/ASiCManifest001.xml",
	                                    "META-INF/signature001.p7s"};
	static const char *const pieces[] = {"[],",          "{\"a\":0},", "[[[[[[[[[[[[[[[[",
	                                     "\"\\u0000\",", "1e5,",       "\n"};
	char path[FIXTURE_PATH_SIZE];
	const char *one = path;
	snprintf(path, sizeof path, "%s/hostile.zip", fixture.directory);
	const size_t count = sizeof pieces / sizeof *pieces;
	for (size_t i = 0; i < count; i++) {
		if (!stride_visits(i, count))
			continue;
		BUF_AUTO struct buf text = {.limit = ARCHIVE_MANIFEST_MAX};
		buf_add_byte(&text, '[');
		while (text.size < ARCHIVE_MANIFEST_MAX - 100)
			buf_add_text(&text, pieces[i]);
		struct zip_writer *zip;
		struct zip_sum sum;
		assert_int_equal(zip_create(path, ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, &zip, NULL), 0);
		for (size_t k = 0; k < sizeof names / sizeof *names; k++)
			assert_int_equal(zip_add(zip, names[k], buf_slice(&text), NULL, NULL), 0);
		assert_int_equal(zip_finish(zip, &sum, NULL), 0);
		zip_writer_free(zip);
		struct verify_result result;
		fixture_verify(&one, 1, NULL, &result);
		fixture_expect_exit(&result, 1);
		fixture_expect_finding(&result, VERIFY_WRONG, "manifest.json", "it is not JSON");
		verify_result_free(&result);
	}
}

TEST_CASE(json_has_its_shape)
{
	struct fixture_plan plan = {MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_PATH};
	struct fixture_archive made;
	struct verify_result result;
	fixture_make_good(&fixture, "json", &plan, &made);
	verify_all(&made, NULL, &result);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	verify_print(&result, true, out);
	fclose(out);
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct json *json;
	assert_int_equal(json_parse(&arena, slice_make(text, size - 1), NULL, &json, NULL), 0);
	assert_int_equal(json_member(json, "valid")->type, JSON_FALSE);
	assert_int_equal(json_member(json, "could_not_check")->type, JSON_FALSE);
	assert_int_equal(json_member(json, "trusted")->type, JSON_FALSE);
	struct json *findings = json_member(json, "findings");
	const struct json *signer = json_member(json, "signers")->first;
	struct slice subject;
	assert_true(json_get_text(signer, "subject", &subject));
	assert_true(slice_is(subject, "CN=Development report signer,"
	                              "O=Constancia development\\, no legal value"));
	assert_true(json_get_text(signer, "issuer", &subject));
	assert_true(json_get_text(signer, "name", &subject));
	assert_true(
		slice_is(subject, "Development report signer (Constancia development, no legal value)"));
	assert_int_equal(json_member(signer, "qualified")->type, JSON_NULL);
	assert_int_equal(json_member(signer, "trusted")->type, JSON_FALSE);
	assert_int_equal(signer->count, 9);
	assert_int_equal(json_member(json, "signers")->count, 1);
	assert_int_equal(json_member(json, "authorities")->count, 1);
	assert_int_equal(findings->count,
	                 4); /* two of them about the signer and the source of the time */
	struct slice where;
	assert_true(json_get_text(findings->first, "path", &where) && slice_is(where, made.path));
	assert_true(json_get_text(findings->first, "where", &where));
	assert_true(slice_is(where, "seals/seals-000001.ndjson.gz line 1 member path"));
	assert_non_null(json_member(findings->first, "what"));
	assert_int_equal(fixture_warnings(&result), 2);
	assert_int_equal(json_member(json, "warnings")->count, result.warnings);
	const struct json *verdict = json_member(json, "verdict");
	assert_int_equal(verdict->count, 3);
	assert_true(json_get_text(verdict, "code", &where) && slice_is(where, "not_valid"));
	assert_true(json_get_text(verdict, "en", &where));
	assert_int_equal(strncmp(where.data, "NOT VALID: ", 11), 0);
	assert_true(json_get_text(verdict, "es", &where));
	assert_int_equal(strncmp(where.data, "NO VÁLIDO: ", 12), 0);
	int64_t events;
	assert_true(json_get_integer(json_member(json, "checked"), "events", &events));
	assert_int_equal(events, 6);
	free(text);
	verify_result_free(&result);
}

TEST_CASE(an_independent_check_agrees)
{
	static const struct fixture_plan plans[] = {
		{MODE_LIVE, 60, 2, 59, 7, true, 20, FAULT_NONE},
		{MODE_LIVE, 20, 1, 20, 5, false, 0, FAULT_NONE},
		{MODE_TEST, 20, 4, 19, 0, true, 0, FAULT_NONE},
		{MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_PATH},
		{MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_EVENT_FOREIGN},
		{MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_ROUND_ROOT},
		{MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_PREVIOUS_TOKEN},
		{MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_PREVIOUS_SEAL},
	};
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		char name[32];
		struct fixture_archive made;
		snprintf(name, sizeof name, "script-%zu", i);
		fixture_make_good(&fixture, name, &plans[i], &made);
		assert_int_equal(fixture_agrees(&fixture, made.path, &made, NULL),
		                 plans[i].fault == FAULT_NONE);
	}
}

TEST_CASE(the_readme_works_as_it_stands)
{
	static const struct {
		struct fixture_plan plan;
		const char *expected[3];
	} cases[] = {
		{{MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE},
	     {"^VALID - .* OK, 0 OPEN, 3 NOTE, 0 WRONG$", "OK     segment .* it is in round",
	      "OK     round .* given on "}},
		{{MODE_TEST, 20, 7, 14, 0, false, 0, FAULT_NONE},
	     {"^TEST, WITHOUT PROBATIVE VALUE - .* OK, 0 OPEN, 0 NOTE, 0 WRONG$"}},
		{{MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_PATH},
	     {"^NOT VALID - ", "^WRONG  segment .* it is in round"}},
		{{MODE_LIVE, 7, 2, 7, 5, false, 0, FAULT_PREVIOUS_SEAL},
	     {"^NOT VALID - ", "^WRONG  segment .* it follows the previous segment"}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture_archive made;
		fixture_make_good(&fixture, "by-hand", &cases[i].plan, &made);
		fixture_follow_readme(&fixture, made.path, cases[i].expected[0]);
		for (size_t k = 1; k < 3 && cases[i].expected[k]; k++)
			fixture_readme_said(&fixture, cases[i].expected[k]);
	}
}

TEST_CASE(every_bit_of_a_part_counts)
{
	struct fixture_plan plan = {MODE_TEST, 4, 1, 4, 0, true, 0, FAULT_NONE};
	struct fixture_archive made;
	fixture_make_good(&fixture, "part-bits", &plan, &made);
	assert_int_equal(made.part_count, 1);
	struct zip_sum sum;
	assert_int_equal(zip_file_sum(made.part_paths[0], &sum, NULL), 0);
	int fd = open(made.part_paths[0], O_RDWR | O_CLOEXEC);
	const char *path = made.part_paths[0];
	for (uint64_t bit = 0; bit < sum.size_bytes * 8; STRIDE(bit))
		expect_flip_found(fd, bit, &path, 1);
	close(fd);
}

TEST_CASE(who_asks_may_end_the_check)
{
	static const struct verify_options options = {.progress = end_at_once};
	struct fixture_plan plan = {MODE_LIVE, 4, 2, 3, 2, false, 0, FAULT_NONE};
	struct fixture_archive made;
	fixture_make_good(&fixture, "ended", &plan, &made);
	const char *path = made.path;
	struct verify_result result;
	assert_int_equal(verify_paths(&path, 1, NULL, &options, &result, NULL), ERR_UNAVAILABLE);
}

TEST_CASE(every_bit_of_an_archive_counts)
{
	struct fixture_plan plan = {MODE_LIVE, 4, 2, 3, 2, false, 0, FAULT_NONE};
	struct fixture_archive made;
	struct verify_result result;
	fixture_make_good(&fixture, "bits", &plan, &made);
	const char *path = made.path;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	for (uint64_t bit = 0; bit < made.sum.size_bytes * 8; STRIDE(bit))
		expect_flip_found(fd, bit, &path, 1);
	close(fd);
	fixture_verify(&path, 1, &fixture.roots, &result); /* and it is unchanged */
	fixture_expect_exit(&result, 0);
	verify_result_free(&result);
}

TEST_CASE(no_byte_rests_on_the_crc_alone)
{
	struct fixture_plan plan = {MODE_LIVE, 4, 2, 3, 2, false, 0, FAULT_NONE};
	struct fixture_archive made;
	fixture_make_good(&fixture, "forged", &plan, &made);
	const char *path = made.path;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct zip_reader *zip;
	assert_int_equal(zip_open(path, &zip, NULL), 0);
	const struct zip_entry *last = zip_at(zip, zip_count(zip) - 1);
	uint64_t record = last->offset + last->size;
	static const struct verify_options options = {.stop_early = true};
	unsigned missed = 0;
	for (uint32_t i = 0; i < zip_count(zip); i++) {
		const struct zip_entry *entry = zip_at(zip, i);
		for (uint64_t byte = 0; byte < entry->size; STRIDE(byte)) {
			struct verify_result result;
			uint64_t bit = (entry->offset + byte) * 8 + byte % 8;
			flip(fd, bit);
			repair_crc(fd, entry, record);
			assert_int_equal(verify_paths(&path, 1, NULL, &options, &result, NULL), 0);
			if (verify_exit_code(&result) != 1) {
				print_error("byte %llu of %.*s\n", (unsigned long long)byte, (int)entry->name.size,
				            entry->name.data);
				missed++;
			}
			verify_result_free(&result);
			flip(fd, bit);
			repair_crc(fd, entry, record);
		}
		record += ZIP_CENTRAL_SIZE + entry->name.size;
	}
	zip_reader_free(zip);
	close(fd);
	assert_int_equal(missed, 0);
}

TEST_CASE(random_bits_of_a_big_archive_count)
{
	enum { FLIPS = 60 };
	struct fixture_plan plan = {MODE_LIVE, 30000, 5000, 29000, 4000, false, 0, FAULT_NONE};
	struct fixture_archive made;
	fixture_make_good(&fixture, "big", &plan, &made);
	const char *path = made.path;
	unsigned seed = (unsigned)test_seed();
	int fd = open(path, O_RDWR | O_CLOEXEC);
	for (int i = 0; i < FLIPS; i++) {
		uint64_t number = (uint64_t)rand_r(&seed) << 31 ^ (uint64_t)rand_r(&seed);
		expect_flip_found(fd, number % (made.sum.size_bytes * 8), &path, 1);
	}
	close(fd);
}

TEST_MAIN(set_up, fixture_tear_down)
