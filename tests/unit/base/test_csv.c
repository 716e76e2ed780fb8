/* Comma-separated values: quoting by RFC 4180, and texts made safe against evaluation as
 * formulas. */
#include "testing.h"
#include "base/csv.h"

static void expect(const char *text, const char *expected)
{
	BUF_AUTO struct buf out = {.limit = 1024};
	struct csv_writer writer = {.out = &out};
	csv_text(&writer, slice_of(text));
	assert_int_equal(buf_check(&out), 0);
	assert_string_equal(out.data ? out.data : "", expected);
}

TEST_CASE(test_quoting)
{
	expect("", "");
	expect("plain ñ €", "plain ñ €");
	expect("a,b", "\"a,b\"");
	expect("a;b", "\"a;b\"");
	expect("say \"it\"", "\"say \"\"it\"\"\"");
	expect("two\r\nlines", "\"two\r\nlines\"");
	expect("two\nlines", "\"two\nlines\"");
	expect(" a", "\" a\"");
	expect("a ", "\"a \"");
}

TEST_CASE(test_no_formulas)
{
	expect("=1+1", "'=1+1");
	expect("+1", "'+1");
	expect("-1", "'-1");
	expect("@SUM(A1)", "'@SUM(A1)");
	expect("\tx", "\"'\tx\"");
	expect("\rx", "\"'\rx\"");
	expect("\nx", "\"'\nx\"");
	expect("  =1", "\"'  =1\"");
	expect("=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"");
	expect("＝1", "'＝1");
	expect("＋1", "'＋1");
	expect("－1", "'－1");
	expect("＠1", "'＠1");
	expect("a=1", "a=1");
	expect("1-2", "1-2");
}

TEST_CASE(test_rows)
{
	BUF_AUTO struct buf out = {.limit = 1024};
	struct csv_writer writer = {.out = &out};
	csv_plain(&writer, slice_of("name"));
	csv_plain(&writer, slice_of("credits"));
	csv_plain(&writer, slice_of(""));
	csv_end_row(&writer);
	csv_text(&writer, slice_of("=x"));
	csv_plain(&writer, slice_of("-5")); /* a number written by the program stays a number */
	csv_text(&writer, slice_of(""));
	csv_end_row(&writer);
	assert_string_equal(out.data, "name,credits,\r\n'=x,-5,\r\n");
}

TEST_MAIN(NULL, NULL)
