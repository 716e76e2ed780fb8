#include "testing.h"
#include "base/utf8.h"

/* By the definition: decodes any form, then checks the code point and whether the form is the
 * shortest one. */
static size_t reference(const uint8_t *bytes, size_t size)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	if (size == 0)
		return 0;
	size_t length = bytes[0] < 0x80   ? 1
	                : bytes[0] < 0xc0 ? 0
	                : bytes[0] < 0xe0 ? 2
	                : bytes[0] < 0xf0 ? 3
	                : bytes[0] < 0xf8 ? 4
	                                  : 0;
	if (length < 2 || size < length)
		return length < 2 ? length : 0;
	uint32_t point = bytes[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if (bytes[i] >> 6 != 2)
			return 0;
		point = point << 6 | (bytes[i] & 0x3f);
	}
	if (point < smallest[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	return length;
}

TEST_CASE(test_every_start)
{
	/* All first and second bytes, with the third and fourth at their limits. */
	static const uint8_t borders[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};
	for (unsigned i = 0; i < 65536 * 100; i++) {
		uint8_t bytes[4] = {(uint8_t)i, (uint8_t)(i >> 8), borders[(i >> 16) % 10],
		                    borders[(i >> 16) / 10]};
		for (size_t size = 0; size <= 4; size++)
			if (utf8_character(slice_make(bytes, size)) != reference(bytes, size))
				fail_msg("%02x %02x %02x %02x of %zu", bytes[0], bytes[1], bytes[2], bytes[3],
				         size);
	}
}

TEST_CASE(test_valid_and_cut)
{
	assert_true(utf8_valid(slice_of("")));
	assert_true(utf8_valid(slice_of("a\xc3\xb1\xe2\x82\xac\xf0\x9f\x98\x80z")));
	assert_false(utf8_valid(slice_of("a\xc3")));
	assert_false(utf8_valid(slice_of("\xed\xa0\x80")));
	assert_false(utf8_valid(slice_of("\xc0\x80")));
	struct slice text = slice_of("a\xe2\x82\xac"
	                             "b");
	static const size_t expected[] = {0, 1, 1, 1, 4, 5, 5};
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(utf8_cut(text, i).size, expected[i]);
}

TEST_CASE(test_mended)
{
	static const char *const rows[][2] = {{"", ""},
	                                      {"a\xc3\xb1\xe2\x82\xac", "a\xc3\xb1\xe2\x82\xac"},
	                                      {"caf\xc3", "caf?"},
	                                      {"\xff\xc3\xb1\xe2\x82z", "?\xc3\xb1??z"},
	                                      {"\xed\xa0\x80", "???"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[16];
		strcpy(text, rows[i][0]);
		utf8_replace_invalid(text);
		assert_string_equal(text, rows[i][1]);
	}
}

TEST_CASE(test_shown)
{
	static const char *const rows[][2] = {{"", ""},
	                                      {"123456789", "123456789"},
	                                      {"1234567890", "123456..."},
	                                      {"a\xc3\xb1\xe2\x82\xac", "a\xc3\xb1\xe2\x82\xac"},
	                                      {"12345\xc3\xb1xxx", "12345..."},
	                                      {"a\r\n\x7f\xc2\x85z", "a????z"},
	                                      {"\xff\xc3\xb1\xe2\x82", "?\xc3\xb1??"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[10];
		utf8_show(slice_of(rows[i][0]), text, sizeof text);
		assert_string_equal(text, rows[i][1]);
	}
	char text[10];
	utf8_show(slice_make("a\0b", 3), text, sizeof text);
	assert_string_equal(text, "a?b");
	assert_true(utf8_has_control(slice_make("a\0b", 3)));
	assert_true(utf8_has_control(slice_of("\xc3\xb1\xc2\x9f")));
	assert_false(utf8_has_control(slice_of("a \xc2\xa0\xc3\x85")));
}

/* Each byte at each position of an otherwise printable text. */
TEST_CASE(test_every_place)
{
	char text[20];
	for (int byte = 0; byte < 256; byte++)
		for (size_t at = 0; at < sizeof text; at++) {
			memset(text, at % 2 ? ' ' : '~', sizeof text);
			text[at] = (char)byte;
			struct slice slice = slice_make(text, sizeof text);
			assert_int_equal(utf8_valid(slice), byte < 0x80);
			assert_int_equal(utf8_has_control(slice), byte < 0x20 || byte == 0x7f);
		}
}

TEST_MAIN(NULL, NULL)
