/* A batch, divided as a whole and in chunks: both find the same items, or both reject it. If the
 * body is a JSON array, its items are the array's elements. The first byte is the chunk size and
 * the format. */
#include "base/json.h"
#include "fuzz.h"
#include "http/batch_split.h"

#define LIMIT ((size_t)4 * 1024 * 1024)
#define ITEM_MAX 64

struct found {
	struct buf text;
	size_t count;
};

static int add_item(void *context, struct slice item, struct error *error)
{
	struct found *found = context;
	require(!item.data || item.size <= ITEM_MAX, "an item is within its limit");
	found->count++;
	buf_add_text(&found->text, item.data ? "\n[" : "\nlong");
	if (item.data)
		buf_add_slice(&found->text, item);
	return found->count == 1000 ? error_set(error, ERR_VALIDATION, MSG_NONE, NULL) : 0;
}

static int divide(enum batch_format format, struct slice body, size_t piece, struct found *found)
{
	struct batch_split split;
	struct error error = {0};
	struct budget budget = {.allowance = LIMIT};
	int result = 0;
	batch_split_begin(&split, format, ITEM_MAX, add_item, found, &budget, 0);
	while (body.size && !result) {
		size_t size = body.size < piece ? body.size : piece;
		result = batch_split_feed(&split, slice_make(body.data, size), &error);
		body = slice_make(body.data + size, body.size - size);
		require(split.partial.size <= ITEM_MAX, "an unfinished item is within its limit");
	}
	if (!result)
		result = batch_split_end(&split, &error);
	batch_split_free(&split);
	require(budget.held == 0, "all memory was freed");
	return result;
}

/* An array that the parser accepts has the items that were found, each of them valid. */
static void compare(struct slice body, int result, const struct found *found)
{
	ARENA_AUTO struct arena arena = {.limit = LIMIT};
	const struct json_limits limits = {.depth_max = 1024};
	struct json *json;
	struct error error = {0};
	if (json_parse(&arena, body, &limits, &json, &error) || json->type != JSON_ARRAY)
		return;
	require(json->count >= 1000 || (!result && found->count == json->count),
	        "an array has its elements");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > LIMIT / 4)
		return 0;
	struct found whole = {.text.limit = LIMIT}, pieces = {.text.limit = LIMIT};
	struct slice body = slice_make(data + 1, size - 1);
	enum batch_format format = data[0] & 1 ? BATCH_ARRAY : BATCH_LINES;
	int result = divide(format, body, size, &whole);
	require(divide(format, body, (size_t)data[0] / 2 % 16 + 1, &pieces) == result,
	        "the result does not depend on chunks");
	require(!result || result == ERR_VALIDATION, "memory suffices");
	require(slice_equal(buf_slice(&whole.text), buf_slice(&pieces.text)), "the items are the same");
	if (format == BATCH_ARRAY)
		compare(body, result, &whole);
	buf_free(&whole.text);
	buf_free(&pieces.text);
	return 0;
}
