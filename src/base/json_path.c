#include "base/json_path.h"

#include <ctype.h>
#include <stdio.h>

#include "base/utf8.h"

#define ELLIPSIS "…"
#define NAME_SHOWN 40 /* maximum shown bytes of a name */
#define PART_SIZE (NAME_SHOWN * 6 + 16)

static bool is_plain(struct slice name)
{
	for (size_t i = 0; i < name.size; i++) {
		unsigned char c = (unsigned char)name.data[i];
		if (c < 0x80 && !isalnum(c) && c != '_' && c != '-' && c != '$')
			return false;
	}
	return name.size > 0 && !utf8_has_control(name);
}

/* Appends a character of a quoted name; a control character as an escape. */
static size_t print_character(char *out, struct slice character)
{
	unsigned char c = (unsigned char)character.data[0];
	if (utf8_has_control(character))
		/* The code points U+0080 to U+009F are C2 and the same byte. */
		return (size_t)sprintf(out, "\\u%04x",
		                       character.size > 1 ? (unsigned char)character.data[1] : c);
	size_t size = 0;
	if (c == '"' || c == '\\')
		out[size++] = '\\';
	memcpy(out + size, character.data, character.size);
	return size + character.size;
}

static size_t print_quoted(char *out, struct slice name)
{
	size_t size = 2;
	memcpy(out, "[\"", 2);
	while (name.size) {
		size_t character = utf8_character(name);
		character = character ? character : 1;
		size += print_character(out + size, slice_make(name.data, character));
		name = slice_make(name.data + character, name.size - character);
	}
	return size;
}

static size_t print_name(char out[PART_SIZE], struct slice name)
{
	struct slice shown = utf8_cut(name, NAME_SHOWN);
	const char *cut = shown.size < name.size ? ELLIPSIS : "";
	if (is_plain(shown))
		return (size_t)snprintf(out, PART_SIZE, "%.*s%s", (int)shown.size, shown.data, cut);
	size_t size = print_quoted(out, shown);
	return size + (size_t)snprintf(out + size, PART_SIZE - size, "%s\"]", cut);
}

bool json_path_prepend(char path[JSON_PATH_SIZE], const struct slice *name, uint32_t index)
{
	char part[PART_SIZE];
	size_t size = name ? print_name(part, *name)
	                   : (size_t)snprintf(part, sizeof part, "[%u]", (unsigned)index);
	size_t rest = strlen(path);
	bool dotted = rest > 0 && path[0] != '[';
	/* An ellipsis with its dot must fit afterwards. */
	bool fits = size + dotted + rest + 1 + sizeof ELLIPSIS <= JSON_PATH_SIZE;
	const char *text = fits ? part : ELLIPSIS;
	size = fits ? size : sizeof ELLIPSIS - 1;
	memmove(path + size + dotted, path, rest + 1);
	memcpy(path, text, size);
	if (dotted)
		path[size] = '.';
	return fits;
}
