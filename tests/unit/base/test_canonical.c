#include <math.h>

#include "testing.h"
#include "base/json.h"

static void canonical(struct slice text, struct buf *out)
{
	ARENA_AUTO struct arena arena = {.limit = 10000000};
	struct json *json;
	struct error error = {0};
	if (json_parse(&arena, text, NULL, &json, &error) != 0)
		fail_msg("%s", error.english);
	buf_clear(out);
	json_canonical(json, out);
	assert_int_equal(buf_check(out), 0);
}

static void assert_canonical(const char *text, const char *expected)
{
	BUF_AUTO struct buf out = {.limit = 1000000};
	canonical(slice_of(text), &out);
	assert_string_equal(out.data, expected);
}

/* RFC 8785 sections 3.2.2 and 3.2.4. */
TEST_CASE(test_rfc_sample)
{
	static const uint8_t expected[] = {
		0x7b, 0x22, 0x6c, 0x69, 0x74, 0x65, 0x72, 0x61, 0x6c, 0x73, 0x22, 0x3a, 0x5b, 0x6e, 0x75,
		0x6c, 0x6c, 0x2c, 0x74, 0x72, 0x75, 0x65, 0x2c, 0x66, 0x61, 0x6c, 0x73, 0x65, 0x5d, 0x2c,
		0x22, 0x6e, 0x75, 0x6d, 0x62, 0x65, 0x72, 0x73, 0x22, 0x3a, 0x5b, 0x33, 0x33, 0x33, 0x33,
		0x33, 0x33, 0x33, 0x33, 0x33, 0x2e, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x2c, 0x31,
		0x65, 0x2b, 0x33, 0x30, 0x2c, 0x34, 0x2e, 0x35, 0x2c, 0x30, 0x2e, 0x30, 0x30, 0x32, 0x2c,
		0x31, 0x65, 0x2d, 0x32, 0x37, 0x5d, 0x2c, 0x22, 0x73, 0x74, 0x72, 0x69, 0x6e, 0x67, 0x22,
		0x3a, 0x22, 0xe2, 0x82, 0xac, 0x24, 0x5c, 0x75, 0x30, 0x30, 0x30, 0x66, 0x5c, 0x6e, 0x41,
		0x27, 0x42, 0x5c, 0x22, 0x5c, 0x5c, 0x5c, 0x5c, 0x5c, 0x22, 0x2f, 0x22, 0x7d};
	BUF_AUTO struct buf out = {.limit = 1000};
	canonical(
		slice_of("{\n"
	             "  \"numbers\": [333333333.33333329, 1E30, 4.50, 2e-3, "
	             "0.000000000000000000000000001],\n"
	             "  \"string\": \"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\",\n"
	             "  \"literals\": [null, true, false]\n"
	             "}"),
		&out);
	assert_int_equal(out.size, sizeof expected);
	assert_memory_equal(out.data, expected, sizeof expected);
}

/* RFC 8785 section 3.2.3: a surrogate pair sorts before U+FB33. */
TEST_CASE(test_rfc_sorting)
{
	assert_canonical("{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\","
	                 "\"\\ufb33\":\"Hebrew Letter Dalet With Dagesh\",\"1\":\"One\","
	                 "\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\","
	                 "\"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}",
	                 "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
	                 "\"\xc3\xb6\":\"Latin Small Letter O With Diaeresis\","
	                 "\"\xe2\x82\xac\":\"Euro Sign\",\"\xf0\x9f\x98\x80\":\"Emoji: Grinning Face\","
	                 "\"\xef\xac\xb3\":\"Hebrew Letter Dalet With Dagesh\"}");
}

TEST_CASE(test_sorting)
{
	assert_canonical("{\"b\":1,\"a\":2,\"\":3,\"ab\":4,\"B\":5,\"aa\":6,\"10\":7,\"2\":8}",
	                 "{\"\":3,\"10\":7,\"2\":8,\"B\":5,\"a\":2,\"aa\":6,\"ab\":4,\"b\":1}");
	assert_canonical("{\"abcdefgh2\":1,\"abcdefgh10\":2,\"abcdefgh\":3,\"abcdefgg\":4}",
	                 "{\"abcdefgg\":4,\"abcdefgh\":3,\"abcdefgh10\":2,\"abcdefgh2\":1}");
	assert_canonical("{\"a\\u0000b\":1,\"a\":2,\"a\\u0000\":3}",
	                 "{\"a\":2,\"a\\u0000\":3,\"a\\u0000b\":1}");
	assert_canonical("[{\"z\":{\"y\":1,\"x\":[{\"b\":1,\"a\":1}]},\"a\":[3,1,2]}]",
	                 "[{\"a\":[3,1,2],\"z\":{\"x\":[{\"a\":1,\"b\":1}],\"y\":1}}]");
	/* The borders of the surrogates, in the middle of names too. */
	assert_canonical("{\"x\\uffff\":1,\"x\\ue000\":2,\"x\\udbff\\udfff\":3,\"x\\ud800\\udc00\":4,"
	                 "\"x\\ud7ff\":5,\"x\\ud800\\udc01\":6}",
	                 "{\"x\xed\x9f\xbf\":5,\"x\xf0\x90\x80\x80\":4,\"x\xf0\x90\x80\x81\":6,"
	                 "\"x\xf4\x8f\xbf\xbf\":3,\"x\xee\x80\x80\":2,\"x\xef\xbf\xbf\":1}");
}

TEST_CASE(test_escapes)
{
	assert_canonical("\"\\u0000\\u0001\\u0008\\u0009\\u000a\\u000b\\u000c\\u000d\\u000e\\u001f\"",
	                 "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u000e\\u001f\"");
	assert_canonical("\"\\u0020\\u002f\\/\\u003c\\u007f\\u2028\\u00e9\\\"\\\\\"",
	                 "\" //<\x7f\xe2\x80\xa8\xc3\xa9\\\"\\\\\"");
	/* No normalization. */
	assert_canonical("\"A\\u030a\"", "\"A\xcc\x8a\"");
}

TEST_CASE(test_values)
{
	assert_canonical(" [ ] ", "[]");
	assert_canonical(" { } ", "{}");
	assert_canonical("[-0,-0.0,0e1,1.0,1E2,100e-2,0.10,1e21,123456789012345.6]",
	                 "[0,0,0,1,100,1,0.1,1e+21,123456789012345.6]");
}

/* Compares names by their UTF-16 code units, by converting them. */
static int compare_units(struct slice a, struct slice b)
{
	uint16_t units[2][256];
	size_t counts[2];
	struct slice names[2] = {a, b};
	for (int side = 0; side < 2; side++) {
		size_t count = 0;
		const uint8_t *at = (const uint8_t *)names[side].data;
		const uint8_t *end = at + names[side].size;
		while (at < end) {
			int more = *at < 0x80 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : 3;
			uint32_t point = more ? *at & (0x3fu >> more) : *at;
			for (at++; more > 0; more--)
				point = point << 6 | (*at++ & 0x3f);
			if (point < 0x10000) {
				units[side][count++] = (uint16_t)point;
			} else {
				units[side][count++] = (uint16_t)(0xd800 + ((point - 0x10000) >> 10));
				units[side][count++] = (uint16_t)(0xdc00 + ((point - 0x10000) & 0x3ff));
			}
		}
		counts[side] = count;
	}
	for (size_t i = 0; i < counts[0] && i < counts[1]; i++)
		if (units[0][i] != units[1][i])
			return units[0][i] < units[1][i] ? -1 : 1;
	return (counts[0] > counts[1]) - (counts[0] < counts[1]);
}

static void assert_sorted(const struct json *json)
{
	for (const struct json *child = json->first; child; child = child->next) {
		assert_sorted(child);
		if (json->type == JSON_OBJECT && child->next)
			assert_true(compare_units(child->name, child->next->name) < 0);
	}
}

static bool same_value(const struct json *a, const struct json *b)
{
	if (a->type != b->type || a->count != b->count)
		return false;
	if (a->type == JSON_NUMBER)
		return a->number == b->number;
	if (a->type == JSON_STRING)
		return slice_equal(a->text, b->text);
	if (a->type == JSON_ARRAY) {
		const struct json *other = b->first;
		for (const struct json *child = a->first; child; child = child->next, other = other->next)
			if (!same_value(child, other))
				return false;
		return true;
	}
	for (const struct json *child = a->first; child; child = child->next) {
		const struct json *other = b->first;
		while (other && !slice_equal(other->name, child->name))
			other = other->next;
		if (!other || !same_value(child, other))
			return false;
	}
	return true;
}

static uint64_t random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

static void random_space(uint64_t *seed, struct buf *out)
{
	while (random_next(seed) % 4 == 0)
		buf_add_byte(out, " \t\r\n"[random_next(seed) % 4]);
}

static void random_string(uint64_t *seed, struct buf *out, int unique)
{
	static const char *const parts[] = {"a",
	                                    "b",
	                                    "zz",
	                                    " ",
	                                    "\\n",
	                                    "\\u0000",
	                                    "\\u001F",
	                                    "\\\"",
	                                    "\\\\",
	                                    "\\/",
	                                    "/",
	                                    "\x7f",
	                                    "\xc3\xa9",
	                                    "\\u00e9",
	                                    "\xe2\x82\xac",
	                                    "\\ud83d\\ude00",
	                                    "\xf0\x9f\x98\x80",
	                                    "\\uFFFD",
	                                    "\xee\x80\x80",
	                                    "\\ufb33",
	                                    "\\ud7ff",
	                                    "eight bytes and more of plain text"};
	buf_add_byte(out, '"');
	for (uint64_t count = random_next(seed) % 5; count > 0; count--)
		buf_add_text(out, parts[random_next(seed) % (sizeof parts / sizeof *parts)]);
	if (unique >= 0)
		buf_printf(out, "#%d", unique);
	buf_add_byte(out, '"');
}

static void random_number(uint64_t *seed, struct buf *out)
{
	double number;
	uint64_t bits = random_next(seed) << 33 ^ random_next(seed) << 11 ^ random_next(seed);
	memcpy(&number, &bits, sizeof number);
	switch (random_next(seed) % 4) {
	case 0: buf_printf(out, "%d", (int)(random_next(seed) % 2001) - 1000); break;
	case 1: buf_printf(out, "%.2f", (double)random_next(seed) / 100); break;
	default:
		buf_printf(out, "%.*e", (int)(random_next(seed) % 20), isfinite(number) ? number / 2 : 0.5);
		break;
	}
}

static void random_value(uint64_t *seed, struct buf *out, int depth)
{
	uint64_t kind = random_next(seed) % (depth > 0 ? 8 : 5);
	int count = (int)(random_next(seed) % (random_next(seed) % 8 == 0 ? 40 : 6));
	random_space(seed, out);
	switch (kind) {
	case 0: buf_add_text(out, "null"); break;
	case 1: buf_add_text(out, random_next(seed) % 2 ? "true" : "false"); break;
	case 2: random_string(seed, out, -1); break;
	case 3:
	case 4: random_number(seed, out); break;
	default:
		buf_add_byte(out, kind == 5 ? '[' : '{');
		for (int i = 0; i < count; i++) {
			if (i)
				buf_add_byte(out, ',');
			random_space(seed, out);
			if (kind != 5) {
				random_string(seed, out, i);
				random_space(seed, out);
				buf_add_byte(out, ':');
			}
			random_value(seed, out, depth - 1);
		}
		random_space(seed, out);
		buf_add_byte(out, kind == 5 ? ']' : '}');
	}
	random_space(seed, out);
}

/* From 2^53 to 1e21 a double is written like an integer, and as such it is not taken back. */
static bool has_large_integer(const struct json *json)
{
	if (json->type == JSON_NUMBER)
		return fabs(json->number) > 9007199254740991 && fabs(json->number) < 1e21;
	for (const struct json *child = json->first; child; child = child->next)
		if (has_large_integer(child))
			return true;
	return false;
}

TEST_CASE(test_random_trees)
{
	int checked = 0;
	uint64_t seed = 20260102;
	BUF_AUTO struct buf text = {.limit = 1000000};
	BUF_AUTO struct buf once = {.limit = 1000000};
	BUF_AUTO struct buf twice = {.limit = 1000000};
	for (int i = 0; i < 5000; i++) {
		ARENA_AUTO struct arena arena = {.limit = 10000000};
		struct json *json;
		struct json *again;
		struct error error = {0};
		buf_clear(&text);
		random_value(&seed, &text, 4);
		assert_int_equal(buf_check(&text), 0);
		if (json_parse(&arena, buf_slice(&text), NULL, &json, &error) != 0)
			fail_msg("%s: %s", text.data, error.english);
		buf_clear(&once);
		json_canonical(json, &once);
		if (has_large_integer(json)) {
			assert_int_equal(json_parse(&arena, buf_slice(&once), NULL, &again, &error),
			                 ERR_VALIDATION);
			assert_int_equal(error.message, MSG_BASE_JSON_INTEGER);
			continue;
		}
		assert_int_equal(json_parse(&arena, buf_slice(&once), NULL, &again, &error), 0);
		assert_sorted(again);
		assert_true(same_value(json, again));
		buf_clear(&twice);
		json_canonical(again, &twice);
		assert_string_equal(once.data, twice.data);
		assert_int_equal(once.size, twice.size);
		checked++;
	}
	assert_true(checked > 4000);
}

TEST_MAIN(NULL, NULL)
