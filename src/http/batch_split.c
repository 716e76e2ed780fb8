#include "http/batch_split.h"

#include <inttypes.h>
#include <stdio.h>

/* Places in an array, between two bytes. */
enum {
	BEFORE_ARRAY,
	BEFORE_FIRST, /* after the opening bracket: an item, or the end of an empty array */
	BEFORE_ITEM,  /* after a comma */
	IN_ITEM,
	AFTER_ARRAY,
};

void batch_split_begin(struct batch_split *split, enum batch_format format, size_t item_max,
                       batch_item_function *item, void *context, struct budget *budget,
                       unsigned kind)
{
	*split = (struct batch_split){
		.format = format, .item_max = item_max, .item = item, .context = context};
	buf_init_counted(&split->partial, item_max, budget, kind);
}

void batch_split_free(struct batch_split *split)
{
	buf_free(&split->partial);
}

static bool is_space(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static struct slice skip_space(struct slice text)
{
	size_t i = 0;
	while (i < text.size && is_space(text.data[i]))
		i++;
	return slice_make(text.data + i, text.size - i);
}

/* ---- items ---- */

/* Keeps the beginning of an item until its end arrives. */
static int keep(struct batch_split *split, struct slice part, struct error *error)
{
	if (part.size > split->item_max - split->partial.size) {
		split->is_long = true;
		buf_free(&split->partial);
	}
	if (!split->is_long)
		buf_add_slice(&split->partial, part);
	return buf_check(&split->partial) ? error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL) : 0;
}

/* Passes on the item that ends with `last`. */
static int end_item(struct batch_split *split, struct slice last, struct error *error)
{
	struct slice item = last;
	if (split->is_long || split->partial.size) {
		int result = keep(split, last, error);
		if (result)
			return result;
		item = buf_slice(&split->partial);
	}
	if (split->is_long || item.size > split->item_max)
		item = (struct slice){NULL, 0};
	int result = split->item(split->context, item, error);
	buf_clear(&split->partial);
	split->is_long = false;
	return result;
}

/* ---- lines ---- */

static int feed_lines(struct batch_split *split, struct slice data, struct error *error)
{
	int result = 0;
	while (data.size && !result) {
		const char *end = memchr(data.data, '\n', data.size);
		size_t size = end ? (size_t)(end - data.data) : data.size;
		bool continues = split->is_long || split->partial.size;
		struct slice line = slice_make(data.data, size);
		if (!continues)
			line = skip_space(line); /* a line of white space is no item */
		if (end && (continues || line.size))
			result = end_item(split, line, error);
		else if (line.size)
			result = keep(split, line, error);
		size += end ? 1 : 0;
		data = slice_make(data.data + size, data.size - size);
	}
	return result;
}

/* ---- an array ---- */

static int refuse_array(const struct batch_split *split, size_t at, struct error *error)
{
	char position[24];
	snprintf(position, sizeof position, "%" PRIu64, split->position + at + 1);
	return error_set(error, ERR_VALIDATION, MSG_HTTP_BATCH_ARRAY, position, NULL);
}

/* Returns the position of the byte that ends the item, a comma or the closing bracket of the array,
 * or `data.size`. */
static size_t find_item_end(struct batch_split *split, struct slice data, size_t at)
{
	for (; at < data.size; at++) {
		char byte = data.data[at];
		if (split->in_string) {
			split->in_string = split->escaped || byte != '"';
			split->escaped = !split->escaped && byte == '\\';
		} else if (byte == '"') {
			split->in_string = true;
		} else if (byte == '{' || byte == '[') {
			split->depth++;
		} else if (split->depth == 0 && (byte == ',' || byte == ']')) {
			return at;
		} else if ((byte == '}' || byte == ']') && split->depth > 0) {
			split->depth--;
		}
	}
	return at;
}

/* Reads an item from `*at` to its end, or to the end of the chunk. */
static int feed_item(struct batch_split *split, struct slice data, size_t *at, struct error *error)
{
	size_t end = find_item_end(split, data, *at);
	struct slice part = slice_make(data.data + *at, end - *at);
	*at = end;
	if (end == data.size)
		return keep(split, part, error);
	split->place = data.data[end] == ',' ? BEFORE_ITEM : AFTER_ARRAY;
	*at = end + 1;
	return end_item(split, part, error);
}

/* Reads the byte at `at`, which is not white space and not inside an item. */
static int enter(struct batch_split *split, char byte, size_t at, struct error *error)
{
	if (split->place == BEFORE_ARRAY && byte == '[')
		split->place = BEFORE_FIRST;
	else if (split->place == BEFORE_FIRST && byte == ']')
		split->place = AFTER_ARRAY;
	else if ((split->place == BEFORE_FIRST || split->place == BEFORE_ITEM) && byte != ',' &&
	         byte != ']')
		split->place = IN_ITEM;
	else
		return refuse_array(split, at, error);
	return 0;
}

static int feed_array(struct batch_split *split, struct slice data, struct error *error)
{
	int result = 0;
	for (size_t at = 0; at < data.size && !result;) {
		if (split->place == IN_ITEM) {
			result = feed_item(split, data, &at, error);
		} else {
			if (!is_space(data.data[at]))
				result = enter(split, data.data[at], at, error);
			at += split->place != IN_ITEM;
		}
	}
	split->position += data.size;
	return result;
}

int batch_split_feed(struct batch_split *split, struct slice data, struct error *error)
{
	return split->format == BATCH_LINES ? feed_lines(split, data, error)
	                                    : feed_array(split, data, error);
}

int batch_split_end(struct batch_split *split, struct error *error)
{
	if (split->format == BATCH_ARRAY)
		return split->place == AFTER_ARRAY ? 0 : refuse_array(split, 0, error);
	bool continues = split->is_long || split->partial.size;
	return continues ? end_item(split, (struct slice){"", 0}, error) : 0;
}
