/* Settings files. Every text of a line points into the file, names and values have no white space
 * around them, and a printed pair is read back unchanged. */
#include "base/ini.h"
#include "fuzz.h"

#define TEXT_MAX ((size_t)64 * 1024)

static bool is_within(struct slice file, struct slice text)
{
	return !text.size || (text.data >= file.data && text.data + text.size <= file.data + file.size);
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_trimmed(struct slice text)
{
	return !text.size || (!is_blank(*text.data) && !is_blank(text.data[text.size - 1]));
}

static void read_again(const struct ini_line *pair)
{
	struct ini_reader reader;
	struct ini_line line;
	BUF_AUTO struct buf text = {.limit = TEXT_MAX};
	buf_add_byte(&text, '\n'); /* a byte order mark is one only at the start of the file */
	buf_add_slice(&text, pair->name);
	buf_add_text(&text, "= ");
	buf_add_slice(&text, pair->value);
	if (text.size > INI_LINE_MAX)
		return;
	ini_begin(&reader, buf_slice(&text));
	require(ini_next(&reader, &line) && line.kind == INI_PAIR, "a pair is read back as one");
	require(slice_equal(line.name, pair->name), "its key is the same");
	/* A value that follows its separator directly may begin with ';'. */
	require(slice_equal(line.value, pair->value) || *pair->value.data == ';',
	        "its value is the same");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice file = slice_make(data, size);
	struct ini_reader reader;
	struct ini_line line;
	unsigned last = 0;
	ini_begin(&reader, file);
	while (ini_next(&reader, &line)) {
		require(line.number > last, "line numbers increase");
		last = line.number;
		require(is_within(file, line.text) && is_within(file, line.name) &&
		            is_within(file, line.value),
		        "texts point into the file");
		require(is_trimmed(line.text) && is_trimmed(line.name) && is_trimmed(line.value),
		        "texts are trimmed");
		require(line.text.size <= INI_LINE_MAX, "lines are limited");
		require(!line.text.size || !memchr(line.text.data, '\0', line.text.size),
		        "texts have no NUL");
		if (line.kind == INI_PAIR && line.name.size)
			read_again(&line);
	}
	(void)ini_is_utf16(file);
	return 0;
}
