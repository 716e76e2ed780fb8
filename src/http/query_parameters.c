#include "http/query_parameters.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "http/header.h"

static int parameter(struct slice name, struct slice value, struct arena *arena,
                     struct query *query, struct error *error)
{
	struct slice decoded_name, decoded_value;
	int result = header_unescape(name, arena, &decoded_name);
	if (!result)
		result = header_unescape(value, arena, &decoded_value);
	if (result)
		return error_set(error, result, result == ERR_VALIDATION ? MSG_HTTP_QUERY_ESCAPE : MSG_NONE,
		                 NULL);
	for (size_t i = 0; query->names[i]; i++) {
		if (!slice_is(decoded_name, query->names[i]))
			continue;
		if (query->given[i])
			return error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_REPEATED, query->names[i], NULL);
		query->given[i] = true;
		query->values[i] = decoded_value;
		query->sent[i] = value;
		return 0;
	}
	char shown[64];
	utf8_show(decoded_name, shown, sizeof shown);
	return error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_UNKNOWN, shown, NULL);
}

int query_parse(struct slice text, const char *const *names, struct arena *arena,
                struct query *ret_query, struct error *error)
{
	struct query query = {.names = names};
	while (text.size) {
		const char *end = memchr(text.data, '&', text.size);
		struct slice part = slice_make(text.data, end ? (size_t)(end - text.data) : text.size);
		text = slice_make(text.data + part.size + (end ? 1 : 0),
		                  text.size - part.size - (end ? 1 : 0));
		if (!part.size)
			continue;
		const char *equals = memchr(part.data, '=', part.size);
		struct slice name =
			slice_make(part.data, equals ? (size_t)(equals - part.data) : part.size);
		struct slice value = {"", 0};
		if (equals)
			value = slice_make(equals + 1, part.size - name.size - 1);
		int result = parameter(name, value, arena, &query, error);
		if (result)
			return result;
	}
	*ret_query = query;
	return 0;
}

int query_require_values(const struct query *query, struct error *error)
{
	for (size_t i = 0; query->names[i]; i++)
		if (query->given[i] && !query->values[i].size)
			return error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_EMPTY, query->names[i], NULL);
	return 0;
}

bool query_get(const struct query *query, const char *name, struct slice *ret_value)
{
	for (size_t i = 0; query->names[i]; i++) {
		if (strcmp(query->names[i], name) == 0 && query->given[i]) {
			*ret_value = query->values[i];
			return true;
		}
	}
	return false;
}

int query_text(const struct query *query, const char *name, struct arena *arena,
               struct slice *ret_value, struct error *error)
{
	size_t i = 0;
	while (query->names[i] && (!query->given[i] || strcmp(query->names[i], name) != 0))
		i++;
	if (!query->names[i])
		return 0;
	struct slice sent = query->sent[i];
	char *text = arena_copy(arena, sent.data, sent.size);
	for (size_t at = 0; text && at < sent.size; at++)
		if (text[at] == '+')
			text[at] = ' ';
	/* The escapes were validated by query_parse. */
	if (!text || header_unescape(slice_make(text, sent.size), arena, ret_value))
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	return 1;
}

int query_integer(const struct query *query, const char *name, int64_t lowest, int64_t highest,
                  int64_t *ret_value, struct error *error)
{
	struct slice text;
	if (!query_get(query, name, &text))
		return 0;
	char bounds[2][24];
	snprintf(bounds[0], sizeof bounds[0], "%lld", (long long)lowest);
	snprintf(bounds[1], sizeof bounds[1], "%lld", (long long)highest);
	int64_t value = 0;
	bool good = text.size > 0 && text.size <= 18 && (text.data[0] != '0' || text.size == 1);
	for (size_t i = 0; good && i < text.size; i++) {
		good = isdigit((unsigned char)text.data[i]);
		value = value * 10 + (text.data[i] - '0');
	}
	if (!good || value < lowest || value > highest)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_INTEGER, name, bounds[0], bounds[1],
		                 NULL);
	*ret_value = value;
	return 0;
}

int query_time(const struct query *query, const char *name, int64_t *ret_us, struct error *error)
{
	struct slice text;
	return query_get(query, name, &text) ? time_parse(text, name, ret_us, error) : 0;
}

#define POSITION_SIZE 8
#define MAC_SIZE 16
#define RAW_SIZE (POSITION_SIZE + MAC_SIZE) /* 24 bytes encode to exactly 32 characters */
#define DIGITS BASE64_SIZE(RAW_SIZE)

static void cursor_bytes(const struct sha256 *secret, struct slice binding, int64_t position,
                         uint8_t raw[RAW_SIZE])
{
	char text[512];
	int size = snprintf(text, sizeof text, "cursor\n%lld\n%.*s", (long long)position,
	                    (int)binding.size, binding.data);
	assert(size > 0 && (size_t)size < sizeof text); /* bindings have a bounded size */
	struct sha256 mac =
		hmac_sha256(slice_make(secret->bytes, SHA256_SIZE), slice_make(text, (size_t)size));
	for (int i = 0; i < POSITION_SIZE; i++)
		raw[i] = (uint8_t)((uint64_t)position >> (56 - 8 * i));
	memcpy(raw + POSITION_SIZE, mac.bytes, MAC_SIZE);
}

/* Converts to and from the URL-safe alphabet (RFC 4648 section 5). */
static void swap_digits(char *text, size_t size, const char *from, const char *to)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] == from[0])
			text[i] = to[0];
		else if (text[i] == from[1])
			text[i] = to[1];
}

void cursor_make(const struct sha256 *secret, struct slice binding, int64_t position,
                 char text[CURSOR_SIZE])
{
	uint8_t raw[RAW_SIZE];
	cursor_bytes(secret, binding, position, raw);
	base64_encode(raw, RAW_SIZE, text);
	swap_digits(text, DIGITS, "+/", "-_");
}

int cursor_open(const struct sha256 *secret, struct slice binding, struct slice text,
                int64_t *ret_position, struct error *error)
{
	char expected[CURSOR_SIZE], digits[DIGITS];
	uint8_t raw[RAW_SIZE];
	size_t size = 0;
	uint64_t position = 0;
	if (text.size != DIGITS)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_CURSOR, NULL);
	memcpy(digits, text.data, DIGITS);
	swap_digits(digits, DIGITS, "-_", "+/");
	if (!base64_decode(slice_make(digits, DIGITS), raw, RAW_SIZE, &size) || size != RAW_SIZE)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_CURSOR, NULL);
	for (int i = 0; i < POSITION_SIZE; i++)
		position = position << 8 | raw[i];
	cursor_make(secret, binding, (int64_t)position, expected);
	if (position > INT64_MAX || !constant_time_equal(text, slice_of(expected)))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_CURSOR, NULL);
	*ret_position = (int64_t)position;
	return 0;
}
