/* The source text of the elements of an array. */
#include "testing.h"
#include "base/json.h"
#include "tools/json_items.h"

static char found[1024];

static int take(void *context, struct slice item)
{
	int *left = context;
	snprintf(found + strlen(found), sizeof found - strlen(found), "%.*s|", (int)item.size,
	         item.data);
	return left && --*left == 0 ? 7 : 0;
}

static const char *items(const char *text)
{
	ARENA_AUTO struct arena arena;
	struct json *json;
	arena_init(&arena, 1 << 20);
	assert_int_equal(json_parse(&arena, slice_of(text), NULL, &json, NULL), 0);
	found[0] = '\0';
	assert_int_equal(json_items(slice_of(text), "data", take, NULL), 0);
	return found;
}

TEST_CASE(elements_are_passed_byte_by_byte)
{
	assert_string_equal(items("{\"data\":[]}"), "");
	assert_string_equal(items("{\"data\":[1]}"), "1|");
	assert_string_equal(items(" { \"a\" : { \"data\" : [ 9 ] } , \"data\" : [ 1 , -2.50e1 ,\n"
	                          "true,null, \"x\" ] , \"b\" : [ 8 ] } "),
	                    "1|-2.50e1|true|null|\"x\"|");
	assert_string_equal(items("{\"data\":[{\"a\":\"]}\\\"\\\\\",\"b\":[[1],{}]},[ ],\"],\"]}"),
	                    "{\"a\":\"]}\\\"\\\\\",\"b\":[[1],{}]}|[ ]|\"],\"|");
	assert_string_equal(items("{\"a\":\"data\",\"b\\\"\":1,\"c\":\"{\",\"data\":[\"\\\\\",2]}"),
	                    "\"\\\\\"|2|");
}

TEST_CASE(what_has_no_such_array_has_no_elements)
{
	assert_string_equal(items("{}"), "");
	assert_string_equal(items("[1,2]"), "");
	assert_string_equal(items("\"data\""), "");
	assert_string_equal(items("{\"data\":{\"data\":[1]}}"), "");
	assert_string_equal(items("{\"data\":1,\"x\":[1]}"), "");
}

TEST_CASE(a_result_stops)
{
	int left = 2;
	const char *text = "{\"data\":[1,2,3]}";
	found[0] = '\0';
	assert_int_equal(json_items(slice_of(text), "data", take, &left), 7);
	assert_string_equal(found, "1|2|");
}

TEST_MAIN(NULL, NULL)
