#include "tools/json_items.h"

static bool is_space(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static size_t skip_spaces(struct slice text, size_t at)
{
	while (at < text.size && is_space(text.data[at]))
		at++;
	return at;
}

/* Returns the end of the string that begins at `at`. */
static size_t skip_string(struct slice text, size_t at)
{
	for (at++; at < text.size && text.data[at] != '"'; at++)
		at += text.data[at] == '\\';
	return at + 1;
}

/* Returns the end of the value that begins at `at`. */
static size_t skip_value(struct slice text, size_t at)
{
	unsigned depth = 0;
	for (; at < text.size; at++) {
		char byte = text.data[at];
		if (byte == '"') {
			at = skip_string(text, at) - 1;
		} else if (byte == '{' || byte == '[') {
			depth++;
			continue;
		} else if (depth == 0 && (byte == ',' || byte == '}' || byte == ']' || is_space(byte))) {
			return at;
		} else if (byte == '}' || byte == ']') {
			depth--;
		} else if (depth == 0) {
			continue; /* in a number or a word */
		}
		if (depth == 0)
			return at + 1;
	}
	return at;
}

static int take_items(struct slice text, size_t at, int (*take)(void *context, struct slice item),
                      void *context)
{
	at = skip_spaces(text, at + 1);
	while (at < text.size && text.data[at] != ']') {
		size_t end = skip_value(text, at);
		int result = take(context, slice_make(text.data + at, end - at));
		if (result)
			return result;
		at = skip_spaces(text, end);
		if (at < text.size && text.data[at] == ',')
			at = skip_spaces(text, at + 1);
	}
	return 0;
}

int json_items(struct slice text, const char *member, int (*take)(void *context, struct slice item),
               void *context)
{
	size_t at = skip_spaces(text, 0);
	if (at >= text.size || text.data[at] != '{')
		return 0;
	at = skip_spaces(text, at + 1);
	while (at < text.size && text.data[at] == '"') {
		size_t end = skip_string(text, at);
		struct slice name = slice_make(text.data + at + 1, end - at - 2);
		at = skip_spaces(text, skip_spaces(text, end) + 1);
		if (slice_is(name, member) && at < text.size && text.data[at] == '[')
			return take_items(text, at, take, context);
		at = skip_spaces(text, skip_value(text, at));
		if (at < text.size && text.data[at] == ',')
			at = skip_spaces(text, at + 1);
	}
	return 0;
}
