#include <math.h>

#include "testing.h"
#include "base/clock.h"
#include "base/json.h"

static struct json *parse(struct arena *arena, const char *text)
{
	struct json *json = NULL;
	struct error error = {0};
	if (json_parse(arena, slice_of(text), NULL, &json, &error) != 0)
		fail_msg("%s: %s", text, error.english);
	return json;
}

TEST_CASE(test_tree)
{
	ARENA_AUTO struct arena arena = {.limit = 100000};
	struct json *json = parse(&arena, " { \"b\" : [ 1 , -2.5e1 , true , false , null ] ,\r\n\t"
	                                  "\"a\":{}, \"\":\"\", \"t\":\"x\\u0000y\" } ");
	assert_int_equal(json->type, JSON_OBJECT);
	assert_int_equal(json->count, 4);
	assert_true(slice_is(json->first->name, "b"));
	struct json *list = json_member(json, "b");
	assert_ptr_equal(list, json->first);
	assert_int_equal(list->type, JSON_ARRAY);
	assert_int_equal(list->count, 5);
	static const enum json_type types[] = {JSON_NUMBER, JSON_NUMBER, JSON_TRUE, JSON_FALSE,
	                                       JSON_NULL};
	size_t at = 0;
	for (struct json *child = list->first; child; child = child->next)
		assert_int_equal(child->type, types[at++]);
	assert_int_equal(at, 5);
	assert_true(list->first->is_integer && list->first->number == 1);
	assert_true(!list->first->next->is_integer && list->first->next->number == -25);
	assert_true(slice_is(list->first->next->text, "-2.5e1"));
	assert_int_equal(json_member(json, "a")->count, 0);
	assert_true(slice_is(json_member(json, "")->text, ""));
	struct slice text;
	assert_true(json_get_text(json, "t", &text));
	assert_true(slice_equal(text, slice_make("x\0y", 3)));
	assert_null(json_member(json, "c"));
	assert_null(json_member(list, "c"));
	assert_null(json_member(NULL, "c"));
}

TEST_CASE(test_getters)
{
	ARENA_AUTO struct arena arena = {.limit = 100000};
	struct json *json = parse(&arena, "{\"i\":-9007199254740991,\"j\":9007199254740991,\"d\":1.0,"
	                                  "\"e\":1e2,\"z\":-0,\"s\":\"1\"}");
	int64_t value = 77;
	assert_true(json_get_integer(json, "i", &value));
	assert_int_equal(value, -9007199254740991);
	assert_true(json_get_integer(json, "j", &value));
	assert_int_equal(value, 9007199254740991);
	assert_true(json_get_integer(json, "z", &value));
	assert_int_equal(value, 0);
	assert_false(signbit(json_member(json, "z")->number));
	value = 77;
	assert_false(json_get_integer(json, "d", &value));
	assert_false(json_get_integer(json, "e", &value));
	assert_false(json_get_integer(json, "s", &value));
	assert_false(json_get_integer(json, "none", &value));
	assert_int_equal(value, 77);
	struct slice text = {0};
	assert_false(json_get_text(json, "i", &text));
	assert_null(text.data);
}

TEST_CASE(test_strings)
{
	static const struct {
		const char *json;
		const char *text;
	} rows[] = {
		{"\"\"", ""},
		{"\"plain\"", "plain"},
		{"\"long enough for the eight byte steps, twice\"",
	     "long enough for the eight byte steps, twice"},
		{"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
		{"\"before\\nafter\\n\"", "before\nafter\n"},
		{"\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"\"\\u007f\\u0080\\u07ff\\u0800\\uffff\\ud800\\udc00\\udbff\\udfff\"",
	     "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
		{"\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 raw\"",
	     "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 raw"},
		{"\"\x7f\"", "\x7f"},
	};
	ARENA_AUTO struct arena arena = {.limit = 100000};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct json *json = parse(&arena, rows[i].json);
		assert_int_equal(json->type, JSON_STRING);
		if (!slice_is(json->text, rows[i].text))
			fail_msg("%s", rows[i].json);
	}
	/* Without escapes the text is not copied. */
	const char *source = "[\"plain\"]";
	assert_ptr_equal(parse(&arena, source)->first->text.data, source + 2);
}

/* A quote, a backslash, a control character and an invalid byte are found at every offset. */
TEST_CASE(test_string_scanning)
{
	ARENA_AUTO struct arena arena = {.limit = 100000};
	for (size_t size = 0; size < 40; size++) {
		for (int byte = 1; byte < 256; byte++) {
			char text[64];
			memset(text, 'a', sizeof text);
			text[0] = '"';
			text[1 + size] = (char)byte;
			memcpy(text + 2 + size, "\"\"", 2);
			size_t whole = size + 3 + (byte == '\\');
			struct json *json = NULL;
			int result = json_parse(&arena, slice_make(text, whole), NULL, &json, NULL);
			bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
			assert_int_equal(result, plain || byte == '\\' ? 0 : ERR_VALIDATION);
			if (!result)
				assert_int_equal(json->text.size, size + 1);
			arena_reset(&arena);
		}
	}
}

struct refusal {
	const char *json;
	enum message message;
	const char *part; /* of the English sentence */
};

static void assert_refused(struct slice text, const struct json_limits *limits,
                           enum message message, const char *part)
{
	ARENA_AUTO struct arena arena = {.limit = 10000000};
	struct error error = {0};
	struct json *json = NULL;
	int result = json_parse(&arena, text, limits, &json, &error);
	if (result != ERR_VALIDATION || error.message != message || !strstr(error.english, part))
		fail_msg("%.*s: %d %s", (int)text.size, text.data, result, error.english);
	assert_int_equal(error.code, ERR_VALIDATION);
	assert_null(json);
	assert_true(error.spanish[0] && strcmp(error.english, error.spanish) != 0);
	assert_int_equal(json_parse(&arena, text, limits, &json, NULL), ERR_VALIDATION);
}

TEST_CASE(test_refused)
{
	static const struct refusal rows[] = {
		{"", MSG_JSON_SYNTAX, "ends too early at byte 1."},
		{"  ", MSG_JSON_SYNTAX, "ends too early at byte 3."},
		{"\xef\xbb\xbf{}", MSG_BASE_JSON_BOM, "byte order mark"},
		{" \xef\xbb\xbf{}", MSG_JSON_SYNTAX, "expected a value at byte 2."},
		{"{} x", MSG_JSON_SYNTAX, "unexpected data after the value at byte 4."},
		{"1 2", MSG_JSON_SYNTAX, "unexpected data after the value at byte 3."},
		{"nul", MSG_JSON_SYNTAX, "expected a value at byte 1."},
		{"True", MSG_JSON_SYNTAX, "expected a value at byte 1."},
		{"NaN", MSG_JSON_SYNTAX, "expected a value at byte 1."},
		{"Infinity", MSG_JSON_SYNTAX, "expected a value at byte 1."},
		{"'a'", MSG_JSON_SYNTAX, "expected a value at byte 1."},
		{"/**/1", MSG_JSON_SYNTAX, "expected a value at byte 1."},
		{"\xc2\xa0"
	     "1",
	     MSG_JSON_SYNTAX, "expected a value at byte 1."},
		{"\v1", MSG_JSON_SYNTAX, "expected a value at byte 1."},
		{"[", MSG_JSON_SYNTAX, "ends too early at byte 2 ([0])."},
		{"[1", MSG_JSON_SYNTAX, "ends too early at byte 3 ([0])."},
		{"[1,", MSG_JSON_SYNTAX, "ends too early at byte 4 ([1])."},
		{"[1,]", MSG_JSON_SYNTAX, "expected a value at byte 4 ([1])."},
		{"[,1]", MSG_JSON_SYNTAX, "expected a value at byte 2 ([0])."},
		{"[1 2]", MSG_JSON_SYNTAX, "expected a comma or closing bracket at byte 4 ([0])."},
		{"[1}", MSG_JSON_SYNTAX, "expected a comma or closing bracket at byte 3 ([0])."},
		{"{\"a\":1]", MSG_JSON_SYNTAX, "expected a comma or closing bracket at byte 7 (a)."},
		{"{", MSG_JSON_SYNTAX, "ends too early at byte 2."},
		{"{a:1}", MSG_JSON_SYNTAX, "expected a member name at byte 2."},
		{"{\"a\" 1}", MSG_JSON_SYNTAX, "expected a colon at byte 6."},
		{"{\"a\":}", MSG_JSON_SYNTAX, "expected a value at byte 6 (a)."},
		{"{\"a\":1,}", MSG_JSON_SYNTAX, "expected a member name at byte 8."},
		{"{1:2}", MSG_JSON_SYNTAX, "expected a member name at byte 2."},
		{"\"a", MSG_JSON_SYNTAX, "ends too early at byte 3."},
		{"\"a\\", MSG_JSON_SYNTAX, "ends too early at byte 4."},
		{"\"a\\\"", MSG_JSON_SYNTAX, "ends too early at byte 5."},
		{"\"a\nb\"", MSG_JSON_SYNTAX, "unescaped control character at byte 3."},
		{"\"\\n\t\"", MSG_JSON_SYNTAX, "unescaped control character at byte 4."},
		{"\"\\x41\"", MSG_JSON_SYNTAX, "unknown escape at byte 3."},
		{"\"\\U0041\"", MSG_JSON_SYNTAX, "unknown escape at byte 3."},
		{"\"\\'\"", MSG_JSON_SYNTAX, "unknown escape at byte 3."},
		{"\"\\u004\"", MSG_JSON_SYNTAX, "expected four hexadecimal digits at byte 4."},
		{"\"\\u", MSG_JSON_SYNTAX, "expected four hexadecimal digits at byte 4."},
		{"\"\\u+041\"", MSG_JSON_SYNTAX, "expected four hexadecimal digits at byte 4."},
		{"\"\\ud800\"", MSG_JSON_SYNTAX, "unpaired surrogate at byte 4."},
		{"\"\\udc00\"", MSG_JSON_SYNTAX, "unpaired surrogate at byte 4."},
		{"\"\\ud800\\u0041\"", MSG_JSON_SYNTAX, "unpaired surrogate at byte 4."},
		{"\"\\ud800\\ud800\"", MSG_JSON_SYNTAX, "unpaired surrogate at byte 4."},
		{"\"\\ud800\\n\"", MSG_JSON_SYNTAX, "unpaired surrogate at byte 4."},
		{"\"\\ud800\\udc0", MSG_JSON_SYNTAX, "unpaired surrogate at byte 4."},
		{"\"\xed\xa0\x80\"", MSG_JSON_SYNTAX, "invalid UTF-8 at byte 2."},
		{"\"ab\xff\"", MSG_JSON_SYNTAX, "invalid UTF-8 at byte 4."},
		{"\"\xc0\xaf\"", MSG_JSON_SYNTAX, "invalid UTF-8 at byte 2."},
		{"\"\xf4\x90\x80\x80\"", MSG_JSON_SYNTAX, "invalid UTF-8 at byte 2."},
		{"\"\xe2\x82\"", MSG_JSON_SYNTAX, "invalid UTF-8 at byte 2."},
		{"\"\xe2\x82", MSG_JSON_SYNTAX, "invalid UTF-8 at byte 2."},
		{"{\"\xff\":1}", MSG_JSON_SYNTAX, "invalid UTF-8 at byte 3."},
		{"-", MSG_JSON_SYNTAX, "ends too early at byte 2."},
		{"-a", MSG_JSON_SYNTAX, "expected a digit at byte 2."},
		{"+1", MSG_JSON_SYNTAX, "expected a value at byte 1."},
		{".5", MSG_JSON_SYNTAX, "expected a value at byte 1."},
		{"5.", MSG_JSON_SYNTAX, "ends too early at byte 3."},
		{"[5.]", MSG_JSON_SYNTAX, "expected a digit at byte 4 ([0])."},
		{"[1e]", MSG_JSON_SYNTAX, "expected a digit at byte 4 ([0])."},
		{"[1e+]", MSG_JSON_SYNTAX, "expected a digit at byte 5 ([0])."},
		{"[012]", MSG_JSON_SYNTAX, "leading zero at byte 2 ([0])."},
		{"[-00]", MSG_JSON_SYNTAX, "leading zero at byte 3 ([0])."},
		{"[0x10]", MSG_JSON_SYNTAX, "expected a comma or closing bracket at byte 3 ([0])."},
		{"9007199254740992", MSG_BASE_JSON_INTEGER, "byte 1 "},
		{"[-9007199254740992]", MSG_BASE_JSON_INTEGER, "byte 2 "},
		{"9007199254740993", MSG_BASE_JSON_INTEGER, "Send it as a string."},
		{"99999999999999999999999999", MSG_BASE_JSON_INTEGER, "byte 1 "},
		{"[0,1e309]", MSG_BASE_JSON_OVERFLOW, "byte 4 "},
		{"-1.8e308", MSG_BASE_JSON_OVERFLOW, "byte 1 "},
		{"{\"a\":1,\"a\":2}", MSG_BASE_JSON_REPEATED,
	     "'a' is repeated in the object that starts at byte 1."},
		{"{\"b\":1,\"a\":2,\"b\":3}", MSG_BASE_JSON_REPEATED, "'b' is repeated"},
		{"[{\"\\u0061\":1,\"a\":2}]", MSG_BASE_JSON_REPEATED, "starts at byte 2."},
		{"{\"\":1,\"\":2}", MSG_BASE_JSON_REPEATED, "'[\"\"]' is repeated"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_refused(slice_of(rows[i].json), NULL, rows[i].message, rows[i].part);
	assert_refused((struct slice){0}, NULL, MSG_JSON_SYNTAX, "ends too early at byte 1.");
	assert_refused(slice_make("1\0", 2), NULL, MSG_JSON_SYNTAX, "unexpected data");
	assert_refused(slice_make("\"\0\"", 3), NULL, MSG_JSON_SYNTAX, "control character");
}

/* A message names the member, whatever its name consists of. */
TEST_CASE(test_path)
{
	static const struct refusal rows[] = {
		{"{\"payload\":{\"items\":[{},{\"name\":\"\\x\"}]}}", MSG_JSON_SYNTAX,
	     "an unknown escape at byte 35 (payload.items[1].name)."},
		{"{\"a\":[1,{\"b\":2},9007199254740993]}", MSG_BASE_JSON_INTEGER, "at byte 17 (a[2]) is"},
		{"{\"a\":{\"n\":1e999}}", MSG_BASE_JSON_OVERFLOW, "at byte 11 (a.n) is"},
		{"{\"a\":[{\"b\":1,\"b\":2}]}", MSG_BASE_JSON_REPEATED,
	     "The member 'a[0].b' is repeated in the object that starts at byte 7."},
		{"{\"a\":{\"b\":1},x", MSG_JSON_SYNTAX, "expected a member name at byte 14."},
		{"{\"a\":{\"b\":1,\"\\u0007\\\"\\u0085 c\":1,\"\\u0007\\\"\\u0085 c\":2}}",
	     MSG_BASE_JSON_REPEATED, "The member 'a[\"\\u0007\\\"\\u0085 c\"]' is repeated"},
		{"{\"a.b\":{\"\":tru}}", MSG_JSON_SYNTAX, "at byte 12 ([\"a.b\"][\"\"])."},
		{"{\"ñ\":[[-]]}", MSG_JSON_SYNTAX, "at byte 10 (ñ[0][0])."},
		{"{\"a123456789b123456789c123456789d12345678ñ\":-}", MSG_JSON_SYNTAX,
	     "(a123456789b123456789c123456789d12345678…)."},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_refused(slice_of(rows[i].json), NULL, rows[i].message, rows[i].part);
}

/* A long path keeps its end. */
TEST_CASE(test_long_path)
{
	BUF_AUTO struct buf buf = {.limit = 100000};
	const struct json_limits limits = {.depth_max = 100};
	char end[64] = "";
	for (int i = 0; i < 60; i++)
		buf_printf(&buf, "{\"%s%d\":", i % 2 ? "\\u0001\\u0001\\u0001\\u0001" : "name", i);
	assert_refused(buf_slice(&buf), &limits, MSG_JSON_SYNTAX, "(…");
	snprintf(end, sizeof end, ".name58[\"\\u0001\\u0001\\u0001\\u000159\"]).");
	assert_refused(buf_slice(&buf), &limits, MSG_JSON_SYNTAX, end);
}

TEST_CASE(test_accepted_numbers)
{
	ARENA_AUTO struct arena arena = {.limit = 100000};
	assert_true(parse(&arena, "1e21")->number == 1e21);
	assert_true(parse(&arena, "9007199254740993.0")->number == 9007199254740992);
	assert_true(parse(&arena, "1E+2")->number == 100);
	assert_true(parse(&arena, "1.7976931348623157e308")->number == 1.7976931348623157e308);
	assert_true(parse(&arena, "1e-400")->number == 0);
	assert_false(signbit(parse(&arena, "-0.0")->number));
}

/* Nests objects and arrays, with `inside` in the innermost one. */
static void nest(struct buf *buf, int depth, const char *inside)
{
	buf_clear(buf);
	for (int i = 0; i < depth; i++)
		buf_add_text(buf, i % 2 ? "{\"a\":" : "[");
	buf_add_text(buf, inside);
	for (int i = depth - 1; i >= 0; i--)
		buf_add_byte(buf, i % 2 ? '}' : ']');
}

TEST_CASE(test_depth)
{
	ARENA_AUTO struct arena arena = {.limit = 10000000};
	BUF_AUTO struct buf buf = {.limit = 10000000};
	struct json *json;
	/* Only containers count for the depth, whatever the innermost one contains. */
	static const char *const scalars[] = {"1", "-0.5e1", "\"a\"", "true", "false", "null"};
	for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
		nest(&buf, 64, scalars[i]);
		assert_int_equal(json_parse(&arena, buf_slice(&buf), NULL, &json, NULL), 0);
		nest(&buf, 65, scalars[i]);
		assert_refused(buf_slice(&buf), NULL, MSG_BASE_JSON_DEPTH, "deeper than 64 levels");
	}
	nest(&buf, 64, "[]");
	assert_refused(buf_slice(&buf), NULL, MSG_BASE_JSON_DEPTH, "deeper than 64 levels");
	nest(&buf, 64, "{}");
	assert_refused(buf_slice(&buf), NULL, MSG_BASE_JSON_DEPTH, "deeper than 64 levels");
	const struct json_limits three = {.depth_max = 3};
	assert_int_equal(json_parse(&arena, slice_of("[[[1]]]"), &three, &json, NULL), 0);
	assert_refused(slice_of("[[ [[1]]]]"), &three, MSG_BASE_JSON_DEPTH,
	               "deeper than 3 levels at byte 5 ([0][0][0]).");
	/* Any depth limit is safe for the stack. */
	const struct json_limits all = {.depth_max = UINT32_MAX};
	nest(&buf, 500000, "1");
	assert_refused(buf_slice(&buf), &all, MSG_BASE_JSON_DEPTH, "deeper than 1024 levels");
}

TEST_CASE(test_value_limit)
{
	ARENA_AUTO struct arena arena = {.limit = 100000};
	struct json *json;
	const struct json_limits limits = {.value_max = 4};
	assert_int_equal(json_parse(&arena, slice_of("[1,2,3]"), &limits, &json, NULL), 0);
	assert_refused(slice_of("[1,2,[3]]"), &limits, MSG_BASE_JSON_VALUES, "more than 4");
}

TEST_CASE(test_memory_limit)
{
	static const char *const texts[] = {
		"[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]",
		"[\"a long string with an escape \\n that has to be copied and does not fit into it\"]",
		("{\"n\":1,\"m\":1,\"l\":1,\"k\":1,\"j\":1,\"i\":1,\"h\":1,\"g\":1,\"f\":1,\"e\":1,\"d\":1,"
	     "\"c\":1,\"b\":1,\"a\":1}"),
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		int result = ERR_NO_MEMORY;
		for (size_t limit = 0; result == ERR_NO_MEMORY; limit += 16) {
			ARENA_AUTO struct arena arena;
			struct json *json = NULL;
			struct error error = {0};
			arena_init(&arena, limit);
			result = json_parse(&arena, slice_of(texts[i]), NULL, &json, &error);
			if (result) {
				assert_null(json);
				assert_int_equal(error.code, ERR_NO_MEMORY);
			}
			assert_true(limit < 10000);
		}
		assert_int_equal(result, 0);
	}
}

TEST_CASE(test_repeated_among_many)
{
	ARENA_AUTO struct arena arena = {.limit = 50000000};
	BUF_AUTO struct buf buf = {.limit = 10000000};
	for (int repeated = 0; repeated < 2; repeated++) {
		for (int count = 2; count < 40; count++) {
			buf_clear(&buf);
			for (int i = 0; i < count; i++)
				buf_printf(&buf, "%s\"%d\":1", i ? "," : "{", (i * 17 + 5) % 41);
			buf_printf(&buf, ",\"%d\":1}", repeated ? ((count / 2) * 17 + 5) % 41 : 99);
			struct json *json;
			int result = json_parse(&arena, buf_slice(&buf), NULL, &json, NULL);
			assert_int_equal(result, repeated ? ERR_VALIDATION : 0);
		}
	}
}

/* The largest payloads, made to be slow: none may take much more than linear time. */
TEST_CASE(test_adversarial)
{
	enum { SIZE = 256 * 1024 };
	ARENA_AUTO struct arena arena = {.limit = 64000000};
	BUF_AUTO struct buf buf;
	BUF_AUTO struct buf out = {.limit = 10000000};
	struct json *json;
	buf_init(&buf, 10000000);
	int64_t start_us = clock_monotonic_us();

	for (int i = 0; buf.size < SIZE; i++) /* short names, unsorted */
		buf_printf(&buf, "%s\"%x\":0", i ? "," : "{", (unsigned)i * 40503u & 0xfffff);
	buf_add_byte(&buf, '}');
	assert_int_equal(json_parse(&arena, buf_slice(&buf), NULL, &json, NULL), 0);
	json_canonical(json, &out);

	buf_clear(&buf);
	arena_reset(&arena);
	for (int i = 999; i > 0; i--) /* long names that differ at the end */
		buf_printf(&buf, "%s\"%0200d\":0", i == 999 ? "{" : ",", i);
	buf_add_byte(&buf, '}');
	assert_int_equal(json_parse(&arena, buf_slice(&buf), NULL, &json, NULL), 0);
	json_canonical(json, &out);
	assert_int_equal(buf_check(&out), 0);

	buf_clear(&buf);
	arena_reset(&arena);
	buf_add_text(&buf, "[0.");
	while (buf.size < SIZE) /* one number */
		buf_add_text(&buf, "4999999999");
	buf_add_text(&buf, "e-9,\"");
	while (buf.size < 2 * SIZE) /* one string of escapes */
		buf_add_text(&buf, "\\u00e9");
	buf_add_text(&buf, "\"]");
	assert_int_equal(json_parse(&arena, buf_slice(&buf), NULL, &json, NULL), 0);
	assert_true(clock_monotonic_us() - start_us < 5 * US_PER_SECOND);
}

TEST_MAIN(NULL, NULL)
