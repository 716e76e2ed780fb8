#include "base/csv.h"

#include <string.h>

static void separate(struct csv_writer *writer)
{
	if (writer->begun)
		buf_add_byte(writer->out, ',');
	writer->begun = true;
}

/* Some spreadsheets skip leading spaces before a formula. */
static bool looks_like_formula(struct slice text)
{
	static const char *const signs[] = {"=",  "+",  "-",  "@",  "\t", "\r",
	                                    "\n", "＝", "＋", "－", "＠"};
	while (text.size && text.data[0] == ' ')
		text = slice_make(text.data + 1, text.size - 1);
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
		size_t size = strlen(signs[i]);
		if (text.size >= size && memcmp(text.data, signs[i], size) == 0)
			return true;
	}
	return false;
}

/* Some readers also treat semicolons and tabs as separators. */
static bool needs_quotes(struct slice text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] && strchr(",;\"\r\n\t", text.data[i]))
			return true;
	return text.size && (text.data[0] == ' ' || text.data[text.size - 1] == ' ');
}

void csv_text(struct csv_writer *writer, struct slice text)
{
	bool quoted = needs_quotes(text);
	separate(writer);
	if (quoted)
		buf_add_byte(writer->out, '"');
	if (looks_like_formula(text))
		buf_add_byte(writer->out, '\'');
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == '"')
			buf_add_byte(writer->out, '"');
		buf_add_byte(writer->out, text.data[i]);
	}
	if (quoted)
		buf_add_byte(writer->out, '"');
}

void csv_plain(struct csv_writer *writer, struct slice text)
{
	separate(writer);
	buf_add_slice(writer->out, text);
}

void csv_end_row(struct csv_writer *writer)
{
	buf_add_text(writer->out, "\r\n");
	writer->begun = false;
}
