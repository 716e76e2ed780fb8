/* Evidence is made with each call failing in turn: memory, files, OpenSSL. The fault is reported,
 * nothing is left over, and evidence that is reported as made is complete. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include "failing.h"
#include "archive/archive.h"
#include "archive/zip.h"
#include "report/pdf_check.h"
#include "report/pdf_sign.h"
#include "report/report.h"
#include "stride.h"
#include "test_archive_fixture.h"
#include "test_report_facts.h"
#include "test_report_tools.h"

#define ALL (FAILING_MEMORY | FAILING_FILES | FAILING_OPENSSL)
#define CONTENT "what was declared"

static struct fixture fixture;
static char directory[FIXTURE_PATH_SIZE];
static char path[FIXTURE_PATH_SIZE + 16];
static char signed_path[FIXTURE_PATH_SIZE + 16];
static struct sample sample;

static int set_up(void **state)
{
	fixture_open(&fixture);
	snprintf(directory, sizeof directory, "%s/made", fixture.directory);
	snprintf(path, sizeof path, "%s/made.zip", directory);
	snprintf(signed_path, sizeof signed_path, "%s/signed.pdf", directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	return 0;
}

static int files_made(void)
{
	DIR *files = opendir(directory);
	int count = 0;
	assert_non_null(files);
	for (struct dirent *file; (file = readdir(files));)
		count += file->d_name[0] != '.';
	closedir(files);
	return count;
}

static void remove_files(void)
{
	DIR *files = opendir(directory);
	assert_non_null(files);
	for (struct dirent *file; (file = readdir(files));)
		if (file->d_name[0] != '.')
			unlinkat(dirfd(files), file->d_name, 0);
	closedir(files);
}

/* A fault of the machine, never of the input, and never a refusal of the interface. */
static bool is_fault(int result)
{
	return result == ERR_NO_MEMORY || result == ERR_IO || result == ERR_NO_SPACE;
}

/* `make` makes `count` files when nothing fails, and none when it returns an error. */
static void make_in_turn(int (*make)(struct error *error), int count, int calls_min)
{
	int at = 1, wrong = 0;
	for (;; STRIDE(at)) {
		struct error error = {0};
		failing_arm(ALL, at);
		int result = make(&error);
		const char *failed = failing_disarm();
		int left = files_made();
		remove_files();
		if (!failed) {
			assert_int_equal(result, 0);
			assert_int_equal(left, count);
			break;
		}
		bool good = result ? is_fault(result) && left == 0 : left == count;
		if (!good)
			print_error("call %d, %s: result %d (%s), %d files\n", at, failed, result, error.cause,
			            left);
		wrong += !good;
	}
	assert_true(at > calls_min);
	assert_int_equal(wrong, 0);
}

/* A function that makes files calls `name` at least that often, and each failure is reported. */
static void is_reached(int (*make)(struct error *error), const char *name, int count_min)
{
	int count = 0, wrong = 0;
	for (int at = 1;; at++) {
		struct error error = {0};
		failing_arm(FAILING_FILES, at);
		int result = make(&error);
		const char *failed = failing_disarm();
		remove_files();
		if (!failed)
			break;
		bool is_it = strcmp(failed, name) == 0;
		count += is_it;
		wrong += is_it && result != ERR_IO;
	}
	if (count < count_min || wrong)
		fail_msg("%s: %d calls, %d passed over", name, count, wrong);
}

static int make_parts(struct error *error)
{
	struct part_writer *writer;
	const struct part_facts *parts;
	size_t count;
	struct part_entry entry = {1, slice_of("evt_1"), sha256_of(CONTENT, strlen(CONTENT)), false};
	int result =
		part_writer_begin(directory, FIXTURE_CERTIFICATION, FIXTURE_CHANNEL, 0, 4, &writer, error);
	if (result)
		return result;
	/* Two entries per part. */
	for (; entry.sequence <= 3 && !result; entry.sequence++)
		result = part_writer_add(writer, &entry, slice_of(CONTENT), error);
	if (!result)
		result = part_writer_finish(writer, &parts, &count, error);
	part_writer_free(writer);
	return result;
}

TEST_CASE(content_parts)
{
	make_in_turn(make_parts, 2, 30);
}

/* The directory, or the index, does not fit into memory and is moved to the disk as it grows. */
#define LARGE_ENTRIES 1200
#define LARGE_BYTES ((size_t)5 << 19)

static int make_large_zip(struct error *error)
{
	struct zip_writer *writer;
	struct zip_sum sum;
	static char content[LARGE_BYTES];
	int result = zip_create(path, ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, &writer, error);
	if (result)
		return result;
	for (int i = 0; i < LARGE_ENTRIES && !result; i++) {
		char name[64];
		snprintf(name, sizeof name, "entry-%037d", i);
		result = zip_add(writer, name, slice_of(CONTENT), NULL, error);
	}
	if (!result)
		result = zip_entry_begin(writer, "large", error);
	for (size_t at = 0; at < sizeof content && !result; at += 100000)
		result =
			zip_entry_write(writer, content + at,
		                    sizeof content - at < 100000 ? sizeof content - at : 100000, error);
	if (!result)
		result = zip_entry_end(writer, NULL, error);
	if (!result)
		result = zip_add(writer, "larger", slice_make(content, sizeof content), NULL, error);
	if (!result)
		result = zip_finish(writer, &sum, error);
	zip_writer_free(writer);
	return result;
}

TEST_CASE(a_large_zip)
{
	make_in_turn(make_large_zip, 1, 60);
	failing_errno = ENOSPC;
	make_in_turn(make_large_zip, 1, 60);
	failing_errno = EIO;
	is_reached(make_large_zip, "sync_file_range", 5);
	is_reached(make_large_zip, "open64", 2); /* its own, and that of its directory */
}

static int make_large_part(struct error *error)
{
	struct part_writer *writer;
	const struct part_facts *parts;
	size_t count;
	struct part_entry entry = {1, slice_of("evt_1"), sha256_of(CONTENT, strlen(CONTENT)), false};
	int result =
		part_writer_begin(directory, FIXTURE_CERTIFICATION, FIXTURE_CHANNEL, 0, 0, &writer, error);
	if (result)
		return result;
	for (; entry.sequence <= LARGE_ENTRIES && !result; entry.sequence++)
		result = part_writer_add(writer, &entry, slice_of(CONTENT), error);
	if (!result)
		result = part_writer_finish(writer, &parts, &count, error);
	part_writer_free(writer);
	return result;
}

TEST_CASE(a_large_part)
{
	make_in_turn(make_large_part, 1, 30);
	failing_errno = ENOSPC;
	make_in_turn(make_large_part, 1, 30);
	failing_errno = EIO;
	is_reached(make_large_part, "open64",
	           3); /* its own, that of its index and that of its directory */
}

static int add_all(struct archive *archive, struct slice config, struct error *error)
{
	struct event_facts event = {.channel_id = FIXTURE_CHANNEL,
	                            .declaration = {.client_ref = slice_of("ref"),
	                                            .hash_algorithm = HASH_SHA256,
	                                            .hash = {1},
	                                            .modality = MODALITY_CONTENT,
	                                            .occurred_at_us = TIME_NONE},
	                            .config_version = 1,
	                            .event_id = slice_of("evt_1"),
	                            .received_at_us = 1,
	                            .sequence = 2,
	                            .chain = MODE_LIVE};
	struct sha256 hash = sha256_of("h", 1);
	struct seal_document seal = {.segment_id = "seg_1",
	                             .channel_id = FIXTURE_CHANNEL,
	                             .chain = "live",
	                             .first_sequence = 1,
	                             .last_sequence = 2,
	                             .clock = {true, 1, "ntp_adjtime"}};
	struct tree_proof proof = {.count = 1};
	struct archive_segment segment = {seal, &proof, "rnd_1"};
	struct archive_object object = {OBJECT_CERTIFICATE, slice_of("certificate")};
	struct sha256 named = sha256_of("certificate", 11);
	struct archive_token token = {.authority = "An authority",
	                              .kind = AUTHORITY_DEVELOPMENT,
	                              .request = slice_of("request"),
	                              .token = slice_of("token"),
	                              .gen_time_us = 1,
	                              .certificates = &named,
	                              .certificate_count = 1};
	struct archive_round round = {"rnd_1", hash, {token, token}, 2};
	int result = archive_add_config(archive, 1, config, error);
	if (!result)
		result = archive_add_event(archive, &event, error);
	if (!result)
		result = archive_add_leaf(archive, 1, &hash, error);
	if (!result)
		result = archive_add_segment(archive, &segment, error);
	if (!result)
		result = archive_add_round(archive, &round, error);
	if (!result)
		result = archive_add_object(archive, &object, error);
	return result;
}

static int make_archive(struct error *error)
{
	struct cms_signer signer;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &signer);
	struct archive_facts facts = {.certification_id = FIXTURE_CERTIFICATION,
	                              .verification_code = FIXTURE_CODE,
	                              .channel_id = FIXTURE_CHANNEL,
	                              .mode = MODE_LIVE,
	                              .genesis.created_at_us = 1,
	                              .issued_at_us = fixture.base_us,
	                              .requested_from_us = TIME_NONE,
	                              .requested_to_us = TIME_NONE,
	                              .requested_first = 2,
	                              .requested_last = 2,
	                              .first_sequence = 2,
	                              .last_sequence = 2,
	                              .service_name = "A service",
	                              .service_prefix = "SVC",
	                              .verification_url = "https://example.org/v"};
	struct archive *archive;
	struct zip_sum sum;
	int result = archive_begin(path, &facts, &archive, error);
	if (result)
		return result;
	result = add_all(archive, slice_of("{}"), error);
	if (!result)
		result = archive_finish(archive, &signing, &sum, error);
	archive_free(archive);
	return result;
}

TEST_CASE(an_archive)
{
	make_in_turn(make_archive, 1, 50);
}

static int make_report(struct error *error)
{
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file < 0)
		return ERR_IO;
	int result = report_render(&sample.facts, LANGUAGE_SPANISH, file, error);
	close(file);
	if (result)
		unlink(path); /* the caller owns the file */
	return result;
}

TEST_CASE(a_report)
{
	sample_ordinary(&sample, 3);
	make_in_turn(make_report, 1, 10);
}

static int sign_report(struct error *error)
{
	struct cms_signer signer;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &signer);
	struct pdf_signed made;
	char base[FIXTURE_PATH_SIZE];
	snprintf(base, sizeof base, "%s/base.pdf", fixture.directory);
	return pdf_sign(base, signed_path, fixture.base_us, &signing, NULL, &made, error);
}

TEST_CASE(a_signature_of_a_report)
{
	char base[FIXTURE_PATH_SIZE];
	snprintf(base, sizeof base, "%s/base.pdf", fixture.directory);
	sample_ordinary(&sample, 1);
	assert_int_equal(tools_render(&sample.facts, LANGUAGE_ENGLISH, base, NULL), 0);
	make_in_turn(sign_report, 1, 50);
}

TEST_MAIN(set_up, fixture_tear_down)
