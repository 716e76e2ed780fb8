#include "base/ini.h"

#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct slice trim(struct slice text)
{
	while (text.size && is_space(*text.data))
		text = slice_make(text.data + 1, text.size - 1);
	while (text.size && is_space(text.data[text.size - 1]))
		text.size--;
	return text;
}

/* Returns the text up to a ';' after white space, trimmed. */
static struct slice without_comment(struct slice text)
{
	for (size_t i = 1; i < text.size; i++)
		if (text.data[i] == ';' && is_space(text.data[i - 1]))
			text.size = i;
	return trim(text);
}

static struct slice part(struct slice text, size_t from, size_t to)
{
	return slice_make(text.data + from, to - from);
}

void ini_begin(struct ini_reader *reader, struct slice file)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t size = sizeof mark - 1;
	bool marked = file.size >= size && memcmp(file.data, mark, size) == 0;
	*reader = (struct ini_reader){.rest = marked ? part(file, size, file.size) : file};
}

bool ini_is_utf16(struct slice file)
{
	return file.size >= 2 &&
	       (memcmp(file.data, "\xff\xfe", 2) == 0 || memcmp(file.data, "\xfe\xff", 2) == 0);
}

/* Takes a line from the rest of the file, without its line feed. */
static struct slice take_line(struct ini_reader *reader)
{
	struct slice rest = reader->rest;
	const char *end = memchr(rest.data, '\n', rest.size);
	size_t size = end ? (size_t)(end - rest.data) : rest.size;
	reader->rest = part(rest, end ? size + 1 : size, rest.size);
	reader->number++;
	return part(rest, 0, size);
}

/* Parses "[name]", after which only a comment may follow. */
static void parse_section(struct ini_line *line)
{
	struct slice text = line->text;
	const char *end = memchr(text.data, ']', text.size);
	size_t size = end ? (size_t)(end - text.data) : text.size;
	struct slice after = trim(part(text, end ? size + 1 : size, text.size));
	bool closed = end && (!after.size || *after.data == '#' || *after.data == ';');
	line->kind = closed ? INI_SECTION : end ? INI_TEXT : INI_UNCLOSED;
	if (line->kind != INI_TEXT)
		line->name = trim(part(text, 1, size));
}

static void parse_pair(struct ini_line *line, struct slice whole)
{
	struct slice text = line->text;
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] != '=' && text.data[i] != ':')
			continue;
		line->kind = INI_PAIR;
		line->name = trim(part(text, 0, i));
		/* From the white space on, so that the comment of "key = ; comment" is recognized. */
		line->value = without_comment(part(whole, i + 1, whole.size));
		return;
	}
}

bool ini_next(struct ini_reader *reader, struct ini_line *ret_line)
{
	while (reader->rest.size) {
		struct slice raw = take_line(reader);
		struct slice whole = trim(raw);
		if (!whole.size || *whole.data == ';' || *whole.data == '#')
			continue;
		struct ini_line line = {.kind = INI_TEXT,
		                        .number = reader->number,
		                        .indented = *raw.data == ' ' || *raw.data == '\t'};
		size_t size = raw.size - (raw.data[raw.size - 1] == '\r');
		if (size > INI_LINE_MAX)
			line.kind = INI_LONG;
		else if (memchr(whole.data, '\0', whole.size))
			line.kind = INI_NUL;
		if (line.kind == INI_TEXT) {
			line.text = without_comment(whole);
			if (*line.text.data == '[')
				parse_section(&line);
			else
				parse_pair(&line, whole);
		}
		*ret_line = line;
		return true;
	}
	return false;
}
