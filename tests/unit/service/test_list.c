/* The envelope of lists: it is written and read back. */
#include "testing.h"
#include "service/list.h"

static struct json *parse(struct arena *arena, const char *text)
{
	static const struct json_limits limits = {0};
	struct json *json = NULL;
	assert_int_equal(json_parse(arena, slice_of(text), &limits, &json, NULL), OK);
	return json;
}

static void written_as(const char *expected, int items, bool more, bool with_cursor)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	BUF_AUTO struct buf out = {.limit = 1024};
	struct json_writer writer = {.out = &out};
	list_begin(&writer);
	for (int i = 0; i < items; i++)
		json_integer(&writer, NULL, i);
	if (with_cursor)
		list_end_with_cursor(&writer, more ? "abc" : NULL);
	else
		list_end(&writer, more);
	assert_true(slice_is(buf_slice(&out), expected));
	bool read_more = !more;
	const struct json *read = list_read(parse(&arena, expected), &read_more);
	assert_non_null(read);
	assert_int_equal(read->count, items);
	assert_int_equal(read_more, more);
}

TEST_CASE(test_what_is_written_is_read)
{
	written_as("{\"data\":[],\"has_more\":false}", 0, false, false);
	written_as("{\"data\":[0,1],\"has_more\":true}", 2, true, false);
	written_as("{\"data\":[],\"has_more\":false,\"next_cursor\":null}", 0, false, true);
	written_as("{\"data\":[0],\"has_more\":true,\"next_cursor\":\"abc\"}", 1, true, true);
}

TEST_CASE(test_what_is_no_list)
{
	static const char *const texts[] = {"{}", "[]", "{\"data\":{}}", "{\"has_more\":true}"};
	ARENA_AUTO struct arena arena = {.limit = 65536};
	bool more;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_null(list_read(parse(&arena, texts[i]), &more));
}

TEST_MAIN(NULL, NULL)
