/* The readers of evidence archives. The input is a whole archive or part ("PK…"), one document (a
 * letter, then the text), a stream of gzip lines ('z', then the gzip file), or a signature ('p',
 * the SHA-256 of the signed data, then the CMS). Every accepted document is written again and must
 * then read the same. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "archive/archive_scan.h"
#include "verify/verify_check.h"

#define TEXT_MAX ((size_t)32 << 20)

static int verify_bytes(const uint8_t *data, size_t size, bool one_more)
{
	char path[64];
	int fd = memfd_create("archive", MFD_CLOEXEC);
	require(fd >= 0 && write(fd, data, size) == (ssize_t)size &&
	            (!one_more || write(fd, "", 1) == 1),
	        "memory suffices");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	const char *one = path;
	struct verify_result result;
	require(verify_paths(&one, 1, NULL, NULL, &result, NULL) == 0, "the check runs");
	int code = verify_exit_code(&result);
	require(code == 0 || result.first != NULL, "an invalid file has a finding");
	verify_result_free(&result);
	close(fd);
	return code;
}

static int read_log_document(struct arena *arena, char kind, struct slice text, struct buf *out)
{
	struct archive_checkpoint checkpoint;
	struct archive_log_place place;
	int result = ERR_INVALID_EVIDENCE;
	if (kind == 'k' && (result = archive_read_checkpoint(arena, text, &checkpoint, NULL)) == 0)
		archive_checkpoint_line(&checkpoint, out);
	if (kind == 'o' && (result = archive_read_log_place(arena, text, &place, NULL)) == 0)
		archive_log_line(&place, out);
	return result;
}

static int read_document(struct arena *arena, char kind, struct slice text, struct buf *out)
{
	struct event_facts event;
	struct archive_segment segment;
	struct archive_round round;
	struct archive_manifest manifest;
	struct config_facts config;
	struct part_entry entry;
	struct part_head head;
	struct sha256 hash;
	struct genesis_facts genesis;
	int64_t number;
	int result = ERR_INVALID_EVIDENCE;
	switch (kind) {
	case 'e':
		if ((result = archive_read_event(arena, text, &event, NULL)) == 0)
			event_record(&event, out);
		break;
	case 'l':
		if ((result = archive_read_leaf(arena, text, &number, &hash, NULL)) == 0)
			archive_leaf_line(number, &hash, out);
		break;
	case 's':
		if ((result = archive_read_segment(arena, text, &segment, NULL)) == 0)
			archive_segment_line(&segment, out);
		break;
	case 'r':
	case 't': /* 'r': version 1, 't': version 2 */
		number = kind == 'r' ? 1 : 2;
		if ((result = archive_read_round(arena, text, number, &round, NULL)) == 0)
			archive_round_line(&round, number, out);
		break;
	case 'm':
		if ((result = archive_read_manifest(arena, text, &manifest, NULL)) == 0)
			archive_manifest_write(&manifest, out);
		break;
	case 'g':
		if ((result = archive_read_genesis(arena, text, &genesis, NULL)) == 0)
			genesis_document(&genesis, out);
		break;
	case 'c':
		if ((result = archive_read_config(arena, text, &config, NULL)) == 0)
			config_document(&config, out);
		break;
	case 'i':
		if ((result = archive_read_part_line(arena, text, &entry, NULL)) == 0)
			part_index_line(&entry, out);
		break;
	case 'h':
		if ((result = archive_read_part_head(arena, text, &head, NULL)) == 0)
			part_head_write(&head, out);
		break;
	default: result = read_log_document(arena, kind, text, out);
	}
	return result;
}

/* Checks that a line accepted by the fast reader has its canonical form. */
static void fuzz_scan(struct arena *arena, char kind, struct slice text)
{
	BUF_AUTO struct buf again = {.limit = TEXT_MAX};
	struct event_facts event;
	struct part_entry entry;
	bool scanned = false;
	if (kind == 'e' && (scanned = archive_scan_event(arena, text, &event)))
		event_record(&event, &again);
	if (kind == 'i' && (scanned = archive_scan_part_line(text, &entry)))
		part_index_line(&entry, &again);
	if (scanned && buf_check(&again) == 0)
		require(slice_equal(buf_slice(&again), text), "the line has its canonical form");
}

static void fuzz_document(char kind, struct slice text)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)256 << 20};
	BUF_AUTO struct buf once = {.limit = TEXT_MAX};
	BUF_AUTO struct buf twice = {.limit = TEXT_MAX};
	fuzz_scan(&arena, kind, text);
	int result = read_document(&arena, kind, text, &once);
	require(!result || result == ERR_INVALID_EVIDENCE, "a document is accepted or rejected");
	if (result || buf_check(&once) < 0)
		return;
	require(read_document(&arena, kind, buf_slice(&once), &twice) == 0,
	        "the document can be read again");
	require(slice_equal(buf_slice(&once), buf_slice(&twice)), "the document is the same");
}

static void fuzz_lines(struct slice gzip)
{
	char path[] = "/tmp/constancia-fuzz-XXXXXX", name[ZIP_NAME_MAX + 1];
	int fd = mkstemp(path);
	require(fd >= 0, "a file can be created");
	close(fd);
	struct zip_writer *writer;
	struct zip_reader *zip;
	struct zip_sum sum;
	struct line_stream *stream;
	struct slice line;
	int result;
	archive_stream_path(STREAM_EVENTS, 1, name);
	require(zip_create(path, ZIP_BYTES_MAX, 1, &writer, NULL) == 0 &&
	            zip_add(writer, name, gzip, NULL, NULL) == 0 && zip_finish(writer, &sum, NULL) == 0,
	        "the file can be written");
	zip_writer_free(writer);
	require(zip_open(path, &zip, NULL) == 0, "the written ZIP file has the shape");
	require(line_stream_open(zip, STREAM_EVENTS, false, &stream, NULL) == 0, "memory suffices");
	while ((result = line_stream_next(stream, &line, NULL)) == 1)
		require(line.size <= ARCHIVE_LINE_MAX + 65536 && !memchr(line.data, '\n', line.size),
		        "a line has no line feed");
	require(!result || result == ERR_INVALID_EVIDENCE, "lines end or are damaged");
	require(line_stream_next(stream, &line, NULL) == 0, "no line follows the end");
	line_stream_free(stream);
	zip_reader_free(zip);
	unlink(path);
}

static int verify_cms(struct slice cms, const struct sha256 *digest)
{
	struct trust_roots roots = {0};
	struct cms_paths paths = {0};
	struct cms_facts facts;
	enum level level;
	char cause[LEVEL_CAUSE_SIZE];
	buf_init(&paths.signer, CMS_PATH_SIZE_MAX);
	buf_init(&paths.authority, CMS_PATH_SIZE_MAX);
	int result = verify_signature(cms, digest, &roots, &paths, &facts, &level, cause, NULL);
	buf_free(&paths.signer);
	buf_free(&paths.authority);
	return result;
}

static void fuzz_signature(const uint8_t *data, size_t size)
{
	BUF_AUTO struct buf cms;
	struct sha256 digest;
	memcpy(digest.bytes, data, SHA256_SIZE);
	buf_init(&cms, size + 1);
	buf_add(&cms, data + SHA256_SIZE, size - SHA256_SIZE);
	int result = verify_cms(buf_slice(&cms), &digest);
	require(!result || result == ERR_INVALID_EVIDENCE, "a signature is valid or not");
	buf_add_byte(&cms, '\0');
	require(result || verify_cms(buf_slice(&cms), &digest) == ERR_INVALID_EVIDENCE,
	        "no byte can be added");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 2 && memcmp(data, "PK", 2) == 0) {
		if (verify_bytes(data, size, false) == 0)
			require(verify_bytes(data, size, true) == 1, "no byte can be added");
	} else if (size > 0 && data[0] == 'z') {
		fuzz_lines(slice_make(data + 1, size - 1));
	} else if (size > SHA256_SIZE && data[0] == 'p') {
		fuzz_signature(data + 1, size - 1);
	} else if (size > 0) {
		fuzz_document((char)data[0], slice_make(data + 1, size - 1));
	}
	return 0;
}
