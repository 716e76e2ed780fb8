#include "testing.h"
#include "base/ini.h"

/* Renders the lines of a file: "number kind name|value", or the text, with '>' for indented lines.
 */
static void render(struct slice file, struct buf *out)
{
	static const char kinds[] = {[INI_SECTION] = 's',  [INI_PAIR] = 'p', [INI_TEXT] = 't',
	                             [INI_UNCLOSED] = 'u', [INI_LONG] = 'l', [INI_NUL] = 'n'};
	struct ini_reader reader;
	struct ini_line line;
	ini_begin(&reader, file);
	while (ini_next(&reader, &line)) {
		buf_printf(out, "%u%s%c ", line.number, line.indented ? ">" : "", kinds[line.kind]);
		if (line.kind == INI_TEXT)
			buf_add_slice(out, line.text);
		buf_add_slice(out, line.name);
		if (line.kind == INI_PAIR)
			buf_add_byte(out, '|');
		buf_add_slice(out, line.value);
		buf_add_byte(out, '\n');
	}
}

static void assert_lines(const char *file, const char *expected)
{
	BUF_AUTO struct buf text;
	buf_init(&text, 1 << 20);
	render(slice_of(file), &text);
	assert_string_equal(text.data ? text.data : "", expected);
}

TEST_CASE(test_sections_and_pairs)
{
	assert_lines("", "");
	assert_lines("\n\r\n \t \n", "");
	assert_lines("[a]\nb = 1\nc=2\nd : 3\ne:4", "1s a\n2p b|1\n3p c|2\n4p d|3\n5p e|4\n");
	assert_lines("[ a b ]\n", "1s a b\n");
	assert_lines("b = c = d\nb = c : d\nb : c = d\n", "1p b|c = d\n2p b|c : d\n3p b|c = d\n");
	assert_lines("b =\nb=   \n= x\n", "1p b|\n2p b|\n3p |x\n");
	assert_lines("b = \"x y\"\n", "1p b|\"x y\"\n");
	assert_lines("b\n[a\n[a] b = 1\n", "1t b\n2u a\n3t [a] b = 1\n");
}

TEST_CASE(test_comments)
{
	assert_lines("# x\n; y\n  # z\n\t; z\n", "");
	assert_lines("b = 1 ; c\nb = 1\t;c\nb = ;c\n", "1p b|1\n2p b|1\n3p b|\n");
	assert_lines("b = x;y\nb =; c\nb = 1 #x\n", "1p b|x;y\n2p b|; c\n3p b|1 #x\n");
	assert_lines("[a] ; c\n[a] # c\n[a]# c\n", "1s a\n2s a\n3s a\n");
	assert_lines("b ;= 1\n", "1t b\n");
}

TEST_CASE(test_line_ends_and_indentation)
{
	assert_lines("[a]\r\nb = 1\r\n  c\r\n", "1s a\n2p b|1\n3>t c\n");
	assert_lines("\xef\xbb\xbf[a]\nb=1\n", "1s a\n2p b|1\n");
	assert_lines("\xef\xbb\xbf; c\n\tb = 1 \t\n", "2>p b|1\n");
	assert_lines("  https://a.example,\n  x ; y\n", "1>p https|//a.example,\n2>t x\n");
	assert_true(ini_is_utf16(slice_of("\xff\xfe[")));
	assert_true(ini_is_utf16(slice_of("\xfe\xff")));
	assert_false(ini_is_utf16(slice_of("\xff")));
	assert_false(ini_is_utf16(slice_of("[a]")));
}

TEST_CASE(test_limits)
{
	static char file[3 * INI_LINE_MAX];
	BUF_AUTO struct buf text;
	buf_init(&text, 1 << 20);
	memset(file, 'x', INI_LINE_MAX);
	memcpy(file, "b=", 2);
	memcpy(file + INI_LINE_MAX, "\r\nc=1\n", 7);
	render(slice_of(file), &text);
	assert_int_equal(text.size, strlen("1p b|\n2p c|1\n") + INI_LINE_MAX - 2);
	memcpy(file + INI_LINE_MAX, "x\nc=1\n", 7);
	assert_lines(file, "1l \n2p c|1\n");
	*file = '#';
	assert_lines(file, "2p c|1\n");
	buf_clear(&text);
	render(slice_make("a\0b\nc=1", 7), &text);
	assert_string_equal(text.data, "1n \n2p c|1\n");
}

TEST_MAIN(NULL, NULL)
