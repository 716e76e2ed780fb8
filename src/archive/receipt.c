#include "archive/receipt.h"

#include "archive/archive_lines.h"
#include "base/json.h"

#define VALUES_MAX ((uint32_t)1 << 20)
#define CAUSE_MAX 384

struct reader {
	struct arena *arena;
	struct receipt *items;
	size_t count;
	struct error *error;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct slice trim(struct slice text)
{
	while (text.size > 0 && is_blank(text.data[0]))
		text = slice_make(text.data + 1, text.size - 1);
	while (text.size > 0 && is_blank(text.data[text.size - 1]))
		text.size--;
	return text;
}

static int parse(struct reader *reader, struct slice text, struct json **ret_json)
{
	const struct json_limits limits = {.value_max = VALUES_MAX};
	struct error detail = {0};
	int result = json_parse(reader->arena, text, &limits, ret_json, &detail);
	if (result == ERR_VALIDATION)
		result = error_cause(reader->error, ERR_INVALID_EVIDENCE, "receipt %zu is not JSON: %s",
		                     reader->count + 1, error_message(&detail, LANGUAGE_ENGLISH));
	return result;
}

/* Allocates space for the largest number of receipts that the text can contain, before any is
 * added. */
static int make_room(struct reader *reader, size_t room)
{
	if (room == 0)
		return error_cause(reader->error, ERR_INVALID_EVIDENCE, "the file contains no receipt");
	if (room > RECEIPTS_MAX)
		return error_cause(reader->error, ERR_INVALID_EVIDENCE,
		                   "the file contains more than %d receipts", RECEIPTS_MAX);
	reader->items = arena_alloc(reader->arena, room * sizeof *reader->items);
	return reader->items ? 0 : ERR_NO_MEMORY;
}

static int add(struct reader *reader, const struct json *json)
{
	struct receipt *item = &reader->items[reader->count];
	struct error detail = {0};
	int result =
		archive_read_receipt(reader->arena, json, &item->event, &item->chain_hash, &detail);
	if (result == ERR_INVALID_EVIDENCE)
		return error_cause(reader->error, result,
		                   "receipt %zu is not a response to a registration: %.*s",
		                   reader->count + 1, CAUSE_MAX, detail.cause);
	reader->count += !result;
	return result;
}

static int read_value(struct reader *reader, const struct json *json)
{
	if (json->type != JSON_ARRAY) {
		int result = make_room(reader, 1);
		return result < 0 ? result : add(reader, json);
	}
	int result = make_room(reader, json->count);
	for (const struct json *item = json->first; item && !result; item = item->next)
		result = add(reader, item);
	return result;
}

/* Returns the next line that is not empty; false: none. */
static bool next_line(struct slice *rest, struct slice *ret_line)
{
	while (rest->size > 0) {
		const char *end = memchr(rest->data, '\n', rest->size);
		size_t size = end ? (size_t)(end - rest->data) : rest->size;
		*ret_line = trim(slice_make(rest->data, size));
		size_t used = end ? size + 1 : size;
		*rest = slice_make(rest->data + used, rest->size - used);
		if (ret_line->size > 0)
			return true;
	}
	return false;
}

static int read_lines(struct reader *reader, struct slice text)
{
	size_t lines = 0;
	struct slice rest = text, line;
	while (next_line(&rest, &line))
		lines++;
	int result = make_room(reader, lines);
	for (rest = text; !result && next_line(&rest, &line);) {
		struct json *json;
		result = parse(reader, line, &json);
		if (!result)
			result = add(reader, json);
	}
	return result;
}

int receipts_read(struct arena *arena, struct slice text, struct receipt **ret_receipts,
                  size_t *ret_count, struct error *error)
{
	struct reader reader = {.arena = arena, .error = error};
	struct json *json;
	int result = 0;
	text = trim(text);
	if (text.size > RECEIPT_TEXT_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the file is too large for receipts");
	/* The text is one value over several lines, or one value per line. */
	if (text.size == 0)
		result = make_room(&reader, 0);
	else if ((result = parse(&reader, text, &json)) == 0)
		result = read_value(&reader, json);
	else if (result == ERR_INVALID_EVIDENCE && text.data[0] == '{' &&
	         memchr(text.data, '\n', text.size))
		result = read_lines(&reader, text);
	if (result < 0)
		return result;
	*ret_receipts = reader.items;
	*ret_count = reader.count;
	return 0;
}
