#include "testing.h"
#include "http/batch_split.h"

#define ITEM_MAX 32

struct found {
	struct buf text; /* "item|" for each item */
	size_t count, refuse_at;
};

static int add(void *context, struct slice item, struct error *error)
{
	struct found *found = context;
	if (++found->count == found->refuse_at)
		return error_set(error, ERR_CONFLICT, MSG_NONE, NULL);
	buf_add_slice(&found->text, item.data ? item : slice_of("(long)"));
	buf_add_byte(&found->text, '|');
	return 0;
}

static int divide(enum batch_format format, const char *body, size_t piece, struct found *found,
                  struct error *error)
{
	struct batch_split split;
	struct budget budget = {.allowance = 4096};
	size_t size = strlen(body);
	int result = 0;
	buf_clear(&found->text);
	found->count = 0;
	batch_split_begin(&split, format, ITEM_MAX, add, found, &budget, 0);
	for (size_t at = 0; at < size && !result; at += piece) {
		size_t length = size - at < piece ? size - at : piece;
		result = batch_split_feed(&split, slice_make(body + at, length), error);
	}
	if (!result)
		result = batch_split_end(&split, error);
	batch_split_free(&split);
	assert_int_equal(budget.held, 0);
	return result;
}

/* In chunks of every size. `expected` NULL: the body is refused. */
static void expect(enum batch_format format, const char *body, const char *expected)
{
	struct found found = {.text.limit = 4096};
	for (size_t piece = 1; piece <= strlen(body) + 1; piece++) {
		struct error error = {0};
		int result = divide(format, body, piece, &found, &error);
		assert_int_equal(result, expected ? 0 : ERR_VALIDATION);
		if (expected)
			assert_string_equal(found.text.data ? found.text.data : "", expected);
	}
	buf_free(&found.text);
}

TEST_CASE(lines)
{
	expect(BATCH_LINES, "{}\n{\"a\":1}\n", "{}|{\"a\":1}|");
	expect(BATCH_LINES, "{}\n{\"a\":1}", "{}|{\"a\":1}|");
	expect(BATCH_LINES, "", "");
	expect(BATCH_LINES, "\n \r\n\t\n", "");
	expect(BATCH_LINES, "  a \r\n\n\n b", "a \r|b|");
	expect(BATCH_LINES, "[1,\n2]\n", "[1,|2]|");
}

TEST_CASE(arrays)
{
	expect(BATCH_ARRAY, "[]", "");
	expect(BATCH_ARRAY, " \n[ ] ", "");
	expect(BATCH_ARRAY, "[{},{\"a\":[1,{}]}]", "{}|{\"a\":[1,{}]}|");
	expect(BATCH_ARRAY, "[ 1 , \"],\\\"[\" ,[[]],null\n]\n", "1 |\"],\\\"[\" |[[]]|null\n|");
	expect(BATCH_ARRAY, "[{\"a\\\\\":\"\\\\\"},2]", "{\"a\\\\\":\"\\\\\"}|2|");
}

TEST_CASE(malformed_arrays)
{
	static const char *const bodies[] = {
		"",     " ",    "{}",     "1",    "[",     "[1",   "[1,",
		"[1,]", "[,1]", "[1,,2]", "[1]]", "[1] 2", "[\"]", "[{\"a\":[1,2}]"};
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		expect(BATCH_ARRAY, bodies[i], NULL);
}

/* The position of the fault is counted over all chunks. */
TEST_CASE(position)
{
	struct found found = {.text.limit = 4096};
	for (size_t piece = 1; piece < 8; piece++) {
		struct error error = {0};
		assert_int_equal(divide(BATCH_ARRAY, "[1, 2, ,3]", piece, &found, &error), ERR_VALIDATION);
		assert_non_null(strstr(error.english, "(byte 8)"));
	}
	buf_free(&found.text);
}

/* It is passed without its text, and no more than the limit was held. */
TEST_CASE(long_items)
{
	char body[256];
	for (size_t size = ITEM_MAX - 1; size <= 3 * ITEM_MAX; size++) {
		char expected[256];
		snprintf(body, sizeof body, "%0*d\n2\n%0*d", (int)size, 1, (int)size, 3);
		snprintf(expected, sizeof expected, "%0*d|2|%0*d|", (int)size, 1, (int)size, 3);
		expect(BATCH_LINES, body, size > ITEM_MAX ? "(long)|2|(long)|" : expected);
		snprintf(body, sizeof body, "[%0*d,2,%0*d]", (int)size, 1, (int)size, 3);
		expect(BATCH_ARRAY, body, size > ITEM_MAX ? "(long)|2|(long)|" : expected);
	}
}

TEST_CASE(a_refused_item_ends_it)
{
	struct found found = {.text.limit = 4096, .refuse_at = 2};
	struct error error = {0};
	assert_int_equal(divide(BATCH_LINES, "1\n2\n3\n", 100, &found, &error), ERR_CONFLICT);
	assert_int_equal(divide(BATCH_ARRAY, "[1,2,3]", 100, &found, &error), ERR_CONFLICT);
	assert_string_equal(found.text.data, "1|");
	buf_free(&found.text);
}

TEST_MAIN(NULL, NULL)
