#include "testing.h"
#include "base/json_reader.h"

static struct arena arena;

static int set_up(void **state)
{
	arena_init(&arena, 1 << 16);
	return 0;
}

static int tear_down(void **state)
{
	arena_free(&arena);
	return 0;
}

static struct json_reader reader_of(const char *text, struct error *error)
{
	return json_reader_parse(&arena, slice_of(text), NULL, error);
}

#define HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

TEST_CASE(test_members)
{
	struct json_reader reader = reader_of(
		"{\"text\":\"a\\u00e9\",\"none\":null,\"number\":7,\"yes\":true,\"no\":false,"
		"\"hash\":\"" HEX "\",\"bytes\":\"AAEC\",\"time\":\"2026-01-02T03:04:05.000006Z\","
		"\"inner\":{\"v\":1}}",
		NULL);
	assert_string_equal(json_take_text(&reader, "text"), "a\xc3\xa9");
	assert_string_equal(json_take_text_or_null(&reader, "text"), "a\xc3\xa9");
	assert_null(json_take_text_or_null(&reader, "none"));
	assert_int_equal(json_take_integer(&reader, "number", 7), 7);
	json_require_integer(&reader, "number", 7);
	assert_true(json_take_boolean(&reader, "yes"));
	assert_false(json_take_boolean(&reader, "no"));
	struct sha256 hash = json_take_hash(&reader, "hash");
	assert_int_equal(hash.bytes[31], 31);
	assert_true(sha256_equal(json_take_hash_or_null(&reader, "hash"), &hash));
	assert_null(json_take_hash_or_null(&reader, "none"));
	struct slice bytes = json_take_base64(&reader, "bytes", 3);
	assert_int_equal(bytes.size, 3);
	assert_memory_equal(bytes.data, "\0\1\2", 3);
	assert_int_equal(json_take_time(&reader, "time") % US_PER_SECOND, 6);
	assert_true(json_take_time_or_null(&reader, "none") == TIME_NONE);
	struct json_reader inner = json_take_object(&reader, "inner");
	json_require_integer(&inner, "v", 1);
	assert_int_equal(inner.result, 0);
	assert_int_equal(reader.result, 0);
	assert_int_equal(json_take(&reader, "inner", JSON_OBJECT)->count, 1);
}

/* Each reader function against a member of another type. */
TEST_CASE(test_refused)
{
	static const char *const texts[] = {
		"{}",           "{\"x\":null}",         "{\"x\":[]}",      "{\"x\":6}",
		"{\"x\":1.5}",  "{\"x\":\"a\\u0000\"}", "{\"x\":\"abc\"}", "{\"x\":\"AAECAw==\"}",
		"{\"x\":\"\"}",
	};
	enum { TAKES = 9 };
	static const char refused[][TAKES + 1] = {
		/* text, integer from 7, exactly 7, boolean, hash, time, base64 of 3, object, array */
		"111111111", "111111111", "111111110", "111111111", "111111111",
		"111111111", "011111111", "011111111", "011111111",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		for (int take = 0; take < TAKES; take++) {
			struct error error = {0};
			struct json_reader reader = reader_of(texts[i], &error);
			assert_int_equal(reader.result, 0);
			switch (take) {
			case 0: json_take_text(&reader, "x"); break;
			case 1: json_take_integer(&reader, "x", 7); break;
			case 2: json_require_integer(&reader, "x", 7); break;
			case 3: json_take_boolean(&reader, "x"); break;
			case 4: json_take_hash(&reader, "x"); break;
			case 5: json_take_time(&reader, "x"); break;
			case 6: json_take_base64(&reader, "x", 3); break;
			case 7: json_take_object(&reader, "x"); break;
			default: json_take(&reader, "x", JSON_ARRAY); break;
			}
			assert_int_equal(reader.result, refused[i][take] == '1' ? ERR_INVALID_EVIDENCE : 0);
			if (reader.result)
				assert_string_equal(error.cause,
				                    "member 'x' is missing or its value is not allowed");
		}
}

TEST_CASE(test_first_failure_stays)
{
	struct error error = {0};
	struct json_reader reader = reader_of("{\"a\":1,\"b\":\"text\"}", &error);
	json_refuse(&reader, "first");
	assert_string_equal(json_take_text(&reader, "a"), "");
	assert_string_equal(json_take_text(&reader, "b"), "");
	assert_int_equal(json_take_integer(&reader, "a", 1), 1);
	assert_false(json_is_null(&reader, "a"));
	assert_int_equal(json_take_slice(&reader, "b").size, 0);
	struct json_reader inner = json_take_object(&reader, "inner");
	assert_int_equal(inner.result, ERR_INVALID_EVIDENCE);
	assert_int_equal(reader.result, ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "'first'"));
}

TEST_CASE(test_no_object)
{
	struct error error = {0};
	assert_int_equal(reader_of("[1]", &error).result, ERR_INVALID_EVIDENCE);
	assert_string_equal(error.cause, "it is not a JSON object");
	assert_int_equal(json_reader_of(&arena, NULL, NULL).result, ERR_INVALID_EVIDENCE);
	assert_int_equal(reader_of("{", &error).result, ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "it is not JSON: "));
}

/* A lack of memory is not reported as a fault of the document. */
TEST_CASE(test_no_memory)
{
	static const char text[] = "{\"text\":\"a\",\"hash\":\"" HEX "\",\"bytes\":\"AAEC\"}";
	int taken = 0;
	for (size_t limit = 0; taken < 4; limit += 16) {
		ARENA_AUTO struct arena small;
		arena_init(&small, limit);
		struct json_reader reader = json_reader_parse(&small, slice_of(text), NULL, NULL);
		taken = !reader.result;
		json_take_text(&reader, "text");
		taken += !reader.result;
		json_take_hash_or_null(&reader, "hash");
		taken += !reader.result;
		json_take_base64(&reader, "bytes", 3);
		taken += !reader.result;
		assert_int_equal(reader.result, taken < 4 ? ERR_NO_MEMORY : 0);
		assert_true(limit < 1 << 16);
	}
}

TEST_MAIN(set_up, tear_down)
