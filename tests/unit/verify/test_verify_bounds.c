/* Files that anybody can make to keep a verifier busy: the amount that is read depends on the valid
 * content, not on the amount that follows it. */
#include <zlib.h>

#include "testing.h"
#include "archive/zip.h"
#include "verify/verify_check.h"
#include "test_archive_fixture.h"

#define CONTENT_MAX ((size_t)64 << 20)
#define LINES 20000

static struct fixture fixture;
static struct fixture_archive whole;

static int set_up(void **state)
{
	static const struct fixture_plan plan = {MODE_LIVE, 7, 2, 7, 2, false, 0, FAULT_NONE};
	fixture_open(&fixture);
	return fixture_make(&fixture, "whole", &plan, &whole);
}

static void unpack(const struct buf *packed, struct buf *out)
{
	z_stream stream = {.next_in = (Bytef *)packed->data, .avail_in = (uInt)packed->size};
	char *to = buf_extend(out, 65536);
	assert_non_null(to);
	stream.next_out = (Bytef *)to;
	stream.avail_out = 65536;
	assert_int_equal(inflateInit2(&stream, 31), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	out->size = stream.total_out;
	inflateEnd(&stream);
}

static void pack(const struct buf *text, struct buf *out)
{
	z_stream stream = {.next_in = (Bytef *)text->data, .avail_in = (uInt)text->size};
	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	size_t room = deflateBound(&stream, text->size);
	char *to = buf_extend(out, room);
	assert_non_null(to);
	stream.next_out = (Bytef *)to;
	stream.avail_out = (uInt)room;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	out->size = stream.total_out;
	deflateEnd(&stream);
}

/* Adds `line`, or for NULL the first line again, `count` times after the first line of a stream. */
static void lengthen(struct buf *content, const char *line, int count)
{
	BUF_AUTO struct buf text = {.limit = CONTENT_MAX};
	BUF_AUTO struct buf longer = {.limit = CONTENT_MAX};
	unpack(content, &text);
	const char *second = (const char *)memchr(text.data, '\n', text.size) + 1;
	struct slice first = slice_make(text.data, (size_t)(second - text.data));
	buf_add_slice(&longer, first);
	for (int i = 0; i < count; i++)
		buf_add_slice(&longer, line ? slice_of(line) : first);
	buf_add(&longer, second, text.size - first.size);
	assert_int_equal(buf_check(&longer), 0);
	buf_clear(content);
	pack(&longer, content);
}

/* Makes the archive with one longer stream; its digests and its signature are not corrected. */
static void make_long(const char *stream, const char *line, int count, char path[FIXTURE_PATH_SIZE])
{
	struct zip_reader *reader;
	struct zip_writer *writer;
	struct zip_sum sum;
	snprintf(path, FIXTURE_PATH_SIZE, "%s/long.zip", fixture.directory);
	assert_int_equal(zip_open(whole.path, &reader, NULL), 0);
	assert_int_equal(zip_create(path, ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, &writer, NULL), 0);
	for (uint32_t i = 0; i < zip_count(reader); i++) {
		const struct zip_entry *entry = zip_at(reader, i);
		BUF_AUTO struct buf content = {.limit = CONTENT_MAX};
		char name[ZIP_NAME_MAX + 1];
		snprintf(name, sizeof name, "%.*s", (int)entry->name.size, entry->name.data);
		assert_int_equal(zip_entry_load(reader, entry, CONTENT_MAX, &content, NULL), 0);
		if (strncmp(name, stream, strlen(stream)) == 0)
			lengthen(&content, line, count);
		assert_int_equal(zip_add(writer, name, buf_slice(&content), &sum, NULL), 0);
	}
	assert_int_equal(zip_finish(writer, &sum, NULL), 0);
	zip_writer_free(writer);
	zip_reader_free(reader);
}

/* As for an archive that is verified together with another one. */
static struct input outline(const char *path)
{
	struct verify_result result = {0};
	struct input inputs[2] = {verify_make_input(path, path),
	                          verify_make_input(whole.path, whole.path)};
	struct run run = {.result = &result, .inputs = inputs, .input_count = 2};
	arena_init(&result.arena, 1 << 20);
	arena_init(&run.arena, 1 << 20);
	for (size_t i = 0; i < 2; i++) {
		struct stat facts;
		assert_int_equal(stat(inputs[i].file, &facts), 0);
		inputs[i].kind = INPUT_ARCHIVE;
		inputs[i].identity = zip_identity(&facts);
	}
	assert_int_equal(verify_points_plan(&run), 0);
	verify_points_free(&run);
	arena_free(&run.arena);
	arena_free(&result.arena);
	return inputs[0];
}

TEST_CASE(segments_are_outlined_as_far_as_they_are_right)
{
	static const char *const lines[] = {"\n", "x\n", "{}\n", NULL};
	char path[FIXTURE_PATH_SIZE];
	struct input found = outline(whole.path);
	assert_int_equal(found.outline_lines, 4);
	assert_int_equal(found.hashes_from, 0);
	assert_int_equal(found.hashes_to, 7);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		make_long("seals/", lines[i], LINES, path);
		found = outline(path);
		assert_int_equal(found.outline_lines, 2);
		assert_int_equal(found.hashes_to, 2);
	}
}

/* Faults of an archive are reported up to a limit, and the search for a round ends there. */
TEST_CASE(rounds_are_read_until_too_many_are_wrong)
{
	static const char *const lines[] = {"\n", "x\n", "{}\n", NULL};
	char path[FIXTURE_PATH_SIZE];
	const char *const paths[] = {path};
	struct verify_result result;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		make_long("rounds/", lines[i], LINES, path);
		fixture_verify(paths, 1, &fixture.roots, &result);
		assert_int_equal(verify_exit_code(&result), 1);
		assert_true(result.wrong < 200);
		assert_true(result.checked.timestamps < 200);
		verify_result_free(&result);
	}
}

TEST_MAIN(set_up, fixture_tear_down)
