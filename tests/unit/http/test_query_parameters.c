#include "testing.h"
#include "base/clock.h"
#include "http/query_parameters.h"

static const char *const names[] = {"from", "limit", "cursor", NULL};
static struct arena arena;
static struct error error;
static struct query query;

static int parse(const char *text)
{
	arena_reset(&arena);
	error_clear(&error);
	return query_parse(slice_of(text), names, &arena, &query, &error);
}

TEST_CASE(test_parse)
{
	struct slice value;
	int64_t number = 50, time_us = TIME_NONE;
	assert_int_equal(parse(""), 0);
	assert_false(query_get(&query, "limit", &value));
	assert_int_equal(query_integer(&query, "limit", 1, 500, &number, &error), 0);
	assert_int_equal(number, 50);
	/* A plus sign in an offset is not decoded as a space. */
	assert_int_equal(parse("from=2026-01-01T01:00:00+01:00&limit=500"), 0);
	assert_int_equal(query_time(&query, "from", &time_us, &error), 0);
	assert_int_equal(time_us, INT64_C(1767225600000000));
	assert_int_equal(query_integer(&query, "limit", 1, 500, &number, &error), 0);
	assert_int_equal(number, 500);
	assert_int_equal(parse("li%6dit=7"), 0);
	assert_int_equal(query_integer(&query, "limit", 1, 500, &number, &error), 0);
	assert_int_equal(number, 7);
}

TEST_CASE(test_refused)
{
	static const char *const bad[] = {"nope=1",    "limit=1&limit=1",   "limit=%", "limit=%00",
	                                  "limit=%ff", "limit=1&l%69mit=2", "=1"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(parse(bad[i]), ERR_VALIDATION);
	static const char *const numbers[] = {
		"limit=",   "limit=0",   "limit=501", "limit=-1",
		"limit=+1", "limit=1.0", "limit=01",  "limit=9999999999999999999"};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		int64_t number = 50;
		assert_int_equal(parse(numbers[i]), 0);
		assert_int_equal(query_integer(&query, "limit", 1, 500, &number, &error), ERR_VALIDATION);
		assert_int_equal(number, 50);
		assert_non_null(strstr(error.english, "'limit'"));
	}
}

TEST_CASE(test_cursor)
{
	struct sha256 secret = sha256_of("secret", 6), other = sha256_of("other", 5);
	static const int64_t positions[] = {0, 1, 255, INT64_C(1) << 40, INT64_MAX};
	for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
		char text[CURSOR_SIZE];
		int64_t position = -1;
		cursor_make(&secret, slice_of("events\n7"), positions[i], text);
		assert_int_equal(
			cursor_open(&secret, slice_of("events\n7"), slice_of(text), &position, &error), 0);
		assert_int_equal(position, positions[i]);
		assert_int_equal(
			cursor_open(&secret, slice_of("events\n8"), slice_of(text), &position, &error),
			ERR_VALIDATION);
		assert_int_equal(
			cursor_open(&other, slice_of("events\n7"), slice_of(text), &position, &error),
			ERR_VALIDATION);
		for (size_t at = 0; text[at]; at++) {
			char kept = text[at];
			text[at] = kept == 'A' ? 'B' : 'A';
			assert_int_equal(
				cursor_open(&secret, slice_of("events\n7"), slice_of(text), &position, &error),
				ERR_VALIDATION);
			text[at] = kept;
		}
	}
	int64_t position = 5;
	assert_int_equal(cursor_open(&secret, slice_of("x"), slice_of(""), &position, &error),
	                 ERR_VALIDATION);
	assert_int_equal(cursor_open(&secret, slice_of("x"),
	                             slice_of("!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"), &position, &error),
	                 ERR_VALIDATION);
	assert_int_equal(position, 5);
}

int main(void)
{
	arena_init(&arena, 1 << 20);
	int failed = tests_run(NULL, NULL, NULL, NULL);
	arena_free(&arena);
	return failed;
}
