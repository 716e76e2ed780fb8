#include "testing.h"
#include "cli/command.h"

static void assert_printed(const char *document, const char *columns, const char *expected)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	BUF_AUTO struct buf text = {.limit = 1 << 20};
	struct json *json;
	assert_int_equal(json_parse(&arena, slice_of(document), NULL, &json, NULL), OK);
	output_print(json, columns, &text);
	assert_int_equal(buf_check(&text), OK);
	assert_string_equal(text.data, expected);
}

TEST_CASE(test_members_are_aligned)
{
	assert_printed(
		"{\"id\":\"a\",\"long_name\":null,\"on\":true,\"n\":-5,"
		"\"versions\":[{\"v\":1},{\"v\":2}],\"none\":[],\"texts\":[\"x\"],\"o\":{\"k\":1.5}}",
		NULL,
		"id         a\n"
		"long name  -\n"
		"on         yes\n"
		"n          -5\n"
		"versions:\n  v  1\n\n  v  2\n"
		"none: none\n"
		"texts:\n  x\n"
		"o:\n  k  1.5\n");
}

TEST_CASE(test_lists_are_tables)
{
	assert_printed("{\"data\":[{\"id\":\"a\",\"name\":\"Núñez\"},{\"id\":\"bcd\",\"name\":\"x\","
	               "\"other\":1}],\"has_more\":false}",
	               "id name other",
	               "ID   NAME   OTHER\n"
	               "a    Núñez  -\n"
	               "bcd  x      1\n");
	assert_printed("{\"data\":[],\"has_more\":false}", "id", "none\n");
	assert_printed("{\"data\":[{\"id\":\"a\"}],\"has_more\":true}", "id",
	               "ID\na\nMore follow: --after a\n");
	assert_printed("{\"data\":[{\"number\":7}],\"has_more\":true}", "number kind",
	               "NUMBER  KIND\n7       -\nMore follow: --before 7\n");
}

TEST_CASE(test_terminals_get_no_orders)
{
	assert_printed("{\"a\":\"x\\u001b[31my\\u009bz\\u007f\",\"b\":\"one\\ntwo\"}", NULL,
	               "a  x?[31my?z?\nb  one\n   two\n");
}

TEST_MAIN(NULL, NULL)
