/* The text of a stream is the same whichever thread decompresses it and however the file is
 * damaged, and a reader may stop anywhere. */
#include <zlib.h>

#include "testing.h"
#include "failing.h"
#include "archive/zip.h"
#include "verify/stream_text.h"
#include "verify/verify_check.h"
#include "scratch.h"
#include "stride.h"

#define LINE_SIZE_MAX 58
#define LARGE_TEXT ((size_t)3 << 20) /* a full file of such lines */
#define PACKED_MAX (LARGE_TEXT * 2)
#define FILES_MAX 8

static char directory[SCRATCH_MAX];
static char path[SCRATCH_MAX + 16];
static char *text; /* lines that hardly compress */
static size_t text_size;
static uint64_t random_state = 11;

static uint32_t random_number(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(random_state >> 32);
}

static int start(void **state)
{
	scratch_make(directory);
	snprintf(path, sizeof path, "%s/text.zip", directory);
	text = malloc(LARGE_TEXT);
	for (int line = 0; line < ARCHIVE_LINES_PER_FILE; line++) {
		size_t size = 1 + random_number() % LINE_SIZE_MAX;
		for (size_t i = 0; i < size; i++) {
			char byte = (char)random_number();
			text[text_size++] = byte == '\n' ? ' ' : byte;
		}
		text[text_size++] = '\n';
	}
	return 0;
}

static int stop(void **state)
{
	free(text);
	scratch_remove(directory);
	return 0;
}

/* ---- an archive of only such files ---- */

struct file {
	uint8_t *bytes;
	size_t size;
};

static struct file files[FILES_MAX];
static size_t file_count;

static void add_packed(const void *data, size_t size)
{
	struct file *file = &files[file_count++];
	file->bytes = malloc(size + 1);
	memcpy(file->bytes, data, size);
	file->size = size;
}

static void add_file(struct slice content)
{
	static uint8_t *packed_whole; /* the whole text is added hundreds of times: compressed once */
	static size_t packed_whole_size;
	bool is_whole = content.data == text && content.size == text_size;
	if (is_whole && packed_whole) {
		add_packed(packed_whole, packed_whole_size);
		return;
	}
	uint8_t *packed = malloc(PACKED_MAX);
	z_stream stream = {.next_in = (Bytef *)content.data,
	                   .avail_in = (uInt)content.size,
	                   .next_out = packed,
	                   .avail_out = PACKED_MAX};
	assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	add_packed(packed, stream.total_out);
	if (is_whole) {
		packed_whole_size = stream.total_out;
		packed_whole = packed;
	}
	deflateEnd(&stream);
	if (!is_whole)
		free(packed);
}

static void store(void)
{
	struct zip_writer *writer;
	struct zip_sum sum;
	assert_int_equal(zip_create(path, ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, &writer, NULL), 0);
	for (size_t i = 0; i < file_count; i++) {
		char name[ZIP_NAME_MAX + 1];
		archive_stream_path(STREAM_EVENTS, (uint32_t)i + 1, name);
		assert_int_equal(
			zip_add(writer, name, slice_make((char *)files[i].bytes, files[i].size), NULL, NULL),
			0);
	}
	assert_int_equal(zip_finish(writer, &sum, NULL), 0);
	zip_writer_free(writer);
}

static void forget(void)
{
	while (file_count > 0)
		free(files[--file_count].bytes);
}

/* ---- reading ---- */

struct told {
	struct sha256 lines; /* all of them, with their positions */
	uint64_t count;
	int result;
	char where[ZIP_NAME_MAX + 40];
	char cause[ERROR_CAUSE_MAX];
};

/* At most `count_max` lines, after which the reader stops. */
static struct told read_all(bool ahead, uint64_t count_max)
{
	struct told told = {0};
	struct zip_reader *zip;
	struct line_stream *stream;
	struct slice line;
	struct error error = {0};
	struct digest_stream *digest = digest_begin();
	assert_non_null(digest);
	assert_int_equal(zip_open(path, &zip, NULL), 0);
	assert_int_equal(line_stream_open(zip, STREAM_EVENTS, ahead, &stream, NULL), 0);
	while (told.count < count_max && (told.result = line_stream_next(stream, &line, &error)) == 1) {
		const char *where = line_stream_where(stream);
		digest_add(digest, line.data, line.size);
		digest_add(digest, where, strlen(where) + 1);
		told.count++;
	}
	snprintf(told.where, sizeof told.where, "%s", line_stream_where(stream));
	snprintf(told.cause, sizeof told.cause, "%s", error.cause);
	if (told.count < count_max)
		assert_int_equal(line_stream_next(stream, &line, NULL), 0);
	told.lines = digest_end(digest);
	line_stream_free(stream);
	zip_reader_free(zip);
	return told;
}

static struct told same_for_both(uint64_t count_max)
{
	store();
	struct told alone = read_all(false, count_max), ahead = read_all(true, count_max);
	assert_true(sha256_equal(&alone.lines, &ahead.lines));
	assert_int_equal(alone.count, ahead.count);
	assert_int_equal(alone.result, ahead.result);
	assert_string_equal(alone.where, ahead.where);
	assert_string_equal(alone.cause, ahead.cause);
	return alone;
}

static uint64_t lines_in(struct slice content)
{
	uint64_t count = 0;
	for (size_t i = 0; i < content.size; i++)
		count += content.data[i] == '\n';
	return count;
}

static struct slice whole(void)
{
	return slice_make(text, text_size);
}

/* ---- tests ---- */

TEST_CASE(whole_streams)
{
	const struct slice few =
		slice_make(text, (size_t)((char *)memchr(text, '\n', 1000) - text) + 1);
	const uint64_t all = lines_in(whole());
	add_file(whole());
	assert_true(files[0].size > (size_t)2 << 20);
	struct told told = same_for_both(UINT64_MAX);
	assert_true(told.count == all && told.result == 0);
	/* Several: only the last one may be shorter, and none is empty. */
	add_file(whole());
	add_file(few);
	told = same_for_both(UINT64_MAX);
	assert_true(told.count == 2 * all + 1 && told.result == 0);
	add_file(few);
	told = same_for_both(UINT64_MAX);
	assert_true(told.count == 2 * all + 1 && told.result == ERR_INVALID_EVIDENCE);
	forget();
	add_file(whole());
	add_file(slice_of(""));
	told = same_for_both(UINT64_MAX);
	assert_true(told.count == all && told.result == ERR_INVALID_EVIDENCE);
	forget();
	add_file(slice_of(""));
	told = same_for_both(UINT64_MAX);
	assert_true(told.count == 0 && told.result == ERR_INVALID_EVIDENCE);
	forget();
	told = same_for_both(UINT64_MAX);
	assert_true(told.count == 0 && told.result == 0);
	add_file(slice_of("\n\n\n"));
	told = same_for_both(UINT64_MAX);
	assert_true(told.count == 3 && told.result == 0);
	forget();
}

/* The large file, or the one after it. */
TEST_CASE(damaged)
{
	for (int behind = 0; behind < 2; behind++) {
		struct told good = {0};
		for (int i = -1; i < 40; i = i < 0 ? 0 : (int)stride_next((size_t)i)) {
			if (behind)
				add_file(whole());
			add_file(whole());
			if (i < 0) {
				good = same_for_both(UINT64_MAX);
				forget();
				continue;
			}
			struct file *file = &files[file_count - 1];
			size_t at = i < 12         ? (size_t)i
			            : i >= 40 - 12 ? file->size - (size_t)(40 - i)
			                           : random_number() % file->size;
			file->bytes[at] ^= (uint8_t)(1 << random_number() % 8);
			struct told told = same_for_both(UINT64_MAX);
			/* Some bits have no meaning: those of the time and of the padding to a byte. */
			if (!told.result)
				assert_true(sha256_equal(&told.lines, &good.lines));
			assert_true(!told.result || told.result == ERR_INVALID_EVIDENCE);
			if (told.result)
				assert_true(told.cause[0]);
			forget();
		}
	}
}

TEST_CASE(cut_off)
{
	for (int i = 0; i < 24; STRIDE(i)) {
		add_file(whole());
		size_t size = files[0].size;
		files[0].size = i < 12 ? size - (size_t)i - 1 : random_number() % size;
		struct told told = same_for_both(UINT64_MAX);
		assert_int_equal(told.result, ERR_INVALID_EVIDENCE);
		assert_non_null(strstr(told.cause, "gzip data is truncated"));
		/* Data after it is not read. */
		add_file(whole());
		struct told again = same_for_both(UINT64_MAX);
		assert_int_equal(again.result, ERR_INVALID_EVIDENCE);
		assert_int_equal(again.count, told.count);
		forget();
	}
}

TEST_CASE(bytes_behind)
{
	for (int i = 0; i < 3; i++) {
		/* One byte, another member, much data. */
		add_file(whole());
		add_file(i == 1 ? slice_of("x\n") : slice_make(text, i ? text_size : 1));
		struct file *first = &files[0], *second = &files[1];
		size_t more = i ? second->size : 1;
		first->bytes = realloc(first->bytes, first->size + more);
		memcpy(first->bytes + first->size, second->bytes, more);
		first->size += more;
		free(files[--file_count].bytes);
		struct told told = same_for_both(UINT64_MAX);
		assert_int_equal(told.result, ERR_INVALID_EVIDENCE);
		assert_non_null(strstr(told.cause, "after the gzip data"));
		forget();
	}
}

TEST_CASE(lines_of_no_shape)
{
	/* Without an end; the text of the next file is not appended to it. */
	add_file(slice_make(text, text_size - 1));
	add_file(whole());
	struct told told = same_for_both(UINT64_MAX);
	assert_int_equal(told.result, ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(told.cause, "does not end with a line feed"));
	assert_int_equal(told.count, lines_in(whole()) - 1);
	forget();
	/* Too long, at the beginning, in the middle and at the end. */
	char *copy = malloc(text_size);
	for (size_t part = 0; part < 3; part++) {
		const size_t size = (size_t)ARCHIVE_LINE_MAX + 200000;
		size_t from = part * ((text_size - size) / 2);
		memcpy(copy, text, text_size);
		for (size_t i = from; i < from + size; i++)
			copy[i] = copy[i] == '\n' ? ' ' : copy[i];
		add_file(slice_make(copy, text_size));
		told = same_for_both(UINT64_MAX);
		assert_int_equal(told.result, ERR_INVALID_EVIDENCE);
		assert_non_null(strstr(told.cause, "is longer than"));
		forget();
	}
	free(copy);
}

/* The reader stops after that many lines. */
TEST_CASE(left_in_the_middle)
{
	const uint64_t all = lines_in(whole());
	add_file(whole());
	add_file(whole());
	store();
	static const uint64_t counts[] = {0, 1, 2, 200, 300, 1000, 3000, 9000};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		assert_int_equal(same_for_both(counts[i]).count, counts[i]);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(same_for_both(all - 1 + i).count, all - 1 + i);
	for (int i = 0; i < 100; STRIDE(i)) {
		uint64_t count = random_number() % (2 * all);
		assert_int_equal(read_all(true, count).count, count);
	}
	forget();
}

/* Without a thread, or without memory for one, it works in the caller's thread. */
TEST_CASE(no_thread)
{
	add_file(whole());
	store();
	const struct told told = read_all(false, UINT64_MAX);
	struct zip_reader *zip;
	for (int at = 1; at <= 8; at++) {
		uint64_t count = 0;
		int result;
		struct line_stream *stream;
		struct slice line;
		assert_int_equal(zip_open(path, &zip, NULL), 0);
		failing_arm(FAILING_SYSTEM | FAILING_MEMORY, at);
		result = line_stream_open(zip, STREAM_EVENTS, true, &stream, NULL);
		if (!result) {
			while ((result = line_stream_next(stream, &line, NULL)) == 1)
				count++;
			line_stream_free(stream);
			assert_int_equal(result, 0);
			assert_int_equal(count, told.count);
		} else {
			assert_int_equal(result, ERR_NO_MEMORY);
		}
		const char *failed = failing_disarm();
		if (failed && strcmp(failed, "pthread_create") == 0)
			assert_int_equal(result, 0);
		zip_reader_free(zip);
	}
	forget();
}

TEST_MAIN(start, stop)
