/* The JSON parser keeps its limits, and the canonical form of an accepted text is stable: parsing
 * and writing it again gives the same bytes. */
#include "base/json.h"
#include "base/utf8.h"
#include "fuzz.h"

#define ARENA_LIMIT ((size_t)64 * 1024 * 1024)

static int parse(struct arena *arena, struct slice text, struct json **ret_json,
                 struct error *error)
{
	const struct json_limits limits = {.depth_max = 64, .value_max = 100000};
	error_clear(error);
	int result = json_parse(arena, text, &limits, ret_json, error);
	require(result == error->code, "the error has the returned code");
	require(!result || result == ERR_VALIDATION, "memory suffices");
	require(utf8_valid(slice_of(error->english)) && utf8_valid(slice_of(error->spanish)),
	        "messages are UTF-8");
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_AUTO struct arena arena = {.limit = ARENA_LIMIT};
	BUF_AUTO struct buf once = {.limit = ARENA_LIMIT};
	BUF_AUTO struct buf twice = {.limit = ARENA_LIMIT};
	struct json *json = NULL;
	struct error error;
	if (parse(&arena, slice_make(data, size), &json, &error) != 0) {
		require(error.message != MSG_NONE, "a rejected text has a message");
		return 0;
	}
	json_canonical(json, &once);
	require(buf_check(&once) == 0, "the canonical form fits");
	require(utf8_valid(buf_slice(&once)), "the canonical form is UTF-8");
	if (parse(&arena, buf_slice(&once), &json, &error) != 0) {
		/* A double from 2^53 to 1e21 is written as an integer, which the parser rejects. */
		require(error.message == MSG_BASE_JSON_INTEGER, "the canonical form is accepted");
		return 0;
	}
	json_canonical(json, &twice);
	require(slice_equal(buf_slice(&once), buf_slice(&twice)), "the canonical form is stable");
	return 0;
}
