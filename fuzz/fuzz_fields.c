/* Forms, cookies and paths from untrusted clients. Parsed values are UTF-8 without NUL, and a value
 * in form encoding is parsed back unchanged. */
#include "base/percent.h"
#include "base/utf8.h"
#include "console/fields.h"
#include "fuzz.h"

#define ARENA_LIMIT ((size_t)64 * 1024 * 1024)

static void check_text(struct slice text)
{
	require(utf8_valid(text), "text is UTF-8");
	require(!text.size || !memchr(text.data, '\0', text.size), "text has no NUL");
	require(text.data[text.size] == '\0', "text is terminated");
}

static void read_again(struct arena *arena, const struct fields *fields)
{
	BUF_AUTO struct buf text = {.limit = ARENA_LIMIT};
	struct fields *again = arena_alloc(arena, sizeof *again);
	for (size_t i = 0; i < fields->count; i++) {
		buf_add_percent(&text, fields->items[i].name, "");
		buf_add_byte(&text, '=');
		buf_add_percent(&text, fields->items[i].value, "");
		buf_add_byte(&text, '&');
	}
	require(again && fields_read(buf_slice(&text), arena, again, NULL) == 0,
	        "the form can be parsed again");
	require(again->count == fields->count, "the number is the same");
	for (size_t i = 0; i < fields->count; i++)
		require(slice_equal(again->items[i].name, fields->items[i].name) &&
		            slice_equal(again->items[i].value, fields->items[i].value),
		        "the values are the same");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_AUTO struct arena arena = {.limit = ARENA_LIMIT};
	struct slice text = slice_make(data, size), path;
	struct fields *fields = arena_alloc(&arena, sizeof *fields);
	int result = fields_read(text, &arena, fields, NULL);
	require(!result || result == ERR_VALIDATION, "a form is accepted or rejected");
	for (size_t i = 0; !result && i < fields->count; i++) {
		check_text(fields->items[i].name);
		check_text(fields->items[i].value);
		require(fields_join(fields, fields->items[i].name, &arena), "values can be joined");
	}
	if (!result)
		read_again(&arena, fields);
	if (path_decode(text, &arena, &path))
		check_text(path);
	struct slice cookie = cookie_find(text, "a");
	require(!cookie.size ||
	            (cookie.data >= text.data && cookie.data + cookie.size <= text.data + size),
	        "a cookie points into its header");
	return 0;
}
