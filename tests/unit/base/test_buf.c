#include "testing.h"
#include "base/buf.h"
#include "base/error.h"

static void assert_text(const struct buf *buf, const char *expected)
{
	assert_int_equal(buf_check(buf), 0);
	assert_string_equal(buf->data, expected);
	assert_int_equal(buf->size, strlen(expected));
}

TEST_CASE(test_builds)
{
	BUF_AUTO struct buf buf;
	buf_init(&buf, 1000);
	assert_true(slice_is(buf_slice(&buf), ""));
	buf_add(&buf, "ab", 2);
	buf_add_byte(&buf, 'c');
	buf_add_text(&buf, "de");
	buf_add_slice(&buf, slice_of("f "));
	buf_add_unsigned(&buf, 0);
	buf_add_byte(&buf, ' ');
	buf_add_unsigned(&buf, UINT64_MAX);
	buf_add_byte(&buf, ' ');
	buf_add_signed(&buf, INT64_MIN);
	buf_add_byte(&buf, ' ');
	buf_add_signed(&buf, 42);
	buf_add_byte(&buf, ' ');
	buf_add_hex(&buf, "\x00\xff\x1a", 3);
	buf_printf(&buf, " %d-%s", 7, "x");
	assert_text(&buf, "abcdef 0 18446744073709551615 -9223372036854775808 42 00ff1a 7-x");
	buf_clear(&buf);
	assert_text(&buf, "");
	memcpy(buf_extend(&buf, 3), "xyz", 3);
	assert_text(&buf, "xyz");
}

TEST_CASE(test_holds_exactly_the_limit)
{
	BUF_AUTO struct buf buf;
	buf_init(&buf, 100);
	for (int i = 0; i < 100; i++)
		buf_add_byte(&buf, 'x');
	assert_int_equal(buf_check(&buf), 0);
	assert_int_equal(buf.size, 100);
	assert_true(buf.capacity <= 101);
	buf_add(&buf, "", 0);
	assert_int_equal(buf_check(&buf), 0);
	buf_add_byte(&buf, 'y');
	assert_int_equal(buf_check(&buf), ERR_NO_MEMORY);
	assert_int_equal(buf.size, 100);
}

TEST_CASE(test_failure_sticks)
{
	BUF_AUTO struct buf buf;
	buf_init(&buf, 4);
	buf_add_text(&buf, "abc");
	buf_add_text(&buf, "de");
	buf_add_text(&buf, "f");
	assert_int_equal(buf_check(&buf), ERR_NO_MEMORY);
	assert_string_equal(buf.data, "abc");
	assert_null(buf_extend(&buf, 0));
	assert_null(buf_take(&buf));
	buf_clear(&buf);
	buf_printf(&buf, "%d", 12345);
	assert_int_equal(buf_check(&buf), ERR_NO_MEMORY);
	buf_clear(&buf);
	buf_add_hex(&buf, "abc", 3);
	assert_int_equal(buf_check(&buf), ERR_NO_MEMORY);
	buf_clear(&buf);
	buf_add_text(&buf, "abcd");
	assert_text(&buf, "abcd");
}

TEST_CASE(test_sizes_do_not_wrap)
{
	BUF_AUTO struct buf buf;
	buf_init(&buf, SIZE_MAX);
	buf_add_text(&buf, "abc");
	assert_null(buf_extend(&buf, SIZE_MAX));
	assert_int_equal(buf_check(&buf), ERR_NO_MEMORY);
	buf_clear(&buf);
	assert_null(buf_extend(&buf, SIZE_MAX - 3));
	assert_int_equal(buf_check(&buf), ERR_NO_MEMORY);
}

TEST_CASE(test_take_and_free)
{
	struct buf buf = {0};
	buf_free(&buf);
	buf_free(NULL);
	buf_add_byte(&buf, 'x');
	assert_int_equal(buf_check(&buf), ERR_NO_MEMORY);
	buf_init(&buf, 10);
	char *empty = buf_take(&buf);
	assert_string_equal(empty, "");
	buf_add_text(&buf, "text");
	char *text = buf_take(&buf);
	assert_string_equal(text, "text");
	assert_int_equal(buf.size, 0);
	assert_null(buf.data);
	buf_add_text(&buf, "more");
	assert_text(&buf, "more");
	buf_free(&buf);
	free(text);
	free(empty);
}

TEST_MAIN(NULL, NULL)
