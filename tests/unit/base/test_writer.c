#include "testing.h"
#include "base/clock.h"
#include "base/json.h"

TEST_CASE(test_document)
{
	BUF_AUTO struct buf buf = {.limit = 1000};
	struct json_writer writer = {.out = &buf};
	json_begin_object(&writer, NULL);
	json_begin_array(&writer, "a");
	json_end_array(&writer);
	json_begin_array(&writer, "b");
	json_integer(&writer, NULL, -5);
	json_begin_object(&writer, NULL);
	json_end_object(&writer);
	json_begin_object(&writer, NULL);
	json_boolean(&writer, "x", true);
	json_end_object(&writer);
	json_boolean(&writer, NULL, false);
	json_end_array(&writer);
	json_text(&writer, "c", "t\n");
	json_text(&writer, "d", NULL);
	json_slice(&writer, "e", slice_make("s\0", 2));
	json_null(&writer, "f");
	json_number(&writer, "g", 1.5);
	json_hex(&writer, "h", "\x00\xff", 2);
	json_time(&writer, "i", INT64_C(1767323045678901));
	json_time(&writer, "j", TIME_NONE);
	json_raw(&writer, "k", slice_of("[1]"));
	json_integer(&writer, "l", INT64_MAX);
	json_end_object(&writer);
	assert_int_equal(buf_check(&buf), 0);
	assert_string_equal(buf.data,
	                    "{\"a\":[],\"b\":[-5,{},{\"x\":true},false],\"c\":\"t\\n\",\"d\":null,"
	                    "\"e\":\"s\\u0000\",\"f\":null,\"g\":1.5,\"h\":\"00ff\","
	                    "\"i\":\"2026-01-02T03:04:05.678901Z\",\"j\":null,\"k\":[1],"
	                    "\"l\":9223372036854775807}");
}

TEST_CASE(test_failure_sticks)
{
	BUF_AUTO struct buf buf = {.limit = 10};
	struct json_writer writer = {.out = &buf};
	json_begin_object(&writer, NULL);
	json_text(&writer, "name", "longer than that");
	json_end_object(&writer);
	assert_int_equal(buf_check(&buf), ERR_NO_MEMORY);
}

TEST_MAIN(NULL, NULL)
