#include "base/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool is_continuation(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

size_t utf8_character(struct slice text)
{
	const uint8_t *bytes = (const uint8_t *)text.data;
	if (text.size == 0)
		return 0;
	uint8_t lead = bytes[0];
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	if (text.size < size)
		return 0;
	/* The range of the second byte excludes overlong forms, surrogates and values above
	 * U+10FFFF. */
	uint8_t lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	uint8_t highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
	if (bytes[1] < lowest || bytes[1] > highest)
		return 0;
	for (size_t i = 2; i < size; i++)
		if (!is_continuation(bytes[i]))
			return 0;
	return size;
}

/* Returns the length of a prefix that consists of U+0020 to U+007E, eight bytes at a time. */
static size_t printable_start(struct slice text)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	size_t at = 0;
	for (; text.size - at >= 8; at += 8) {
		uint64_t word;
		memcpy(&word, text.data + at, 8);
		uint64_t delete = word ^ (ones * 0x7f);
		uint64_t found = ((word - ones * 0x20) & ~word) | ((delete - ones) & ~delete) | word;
		if (found & ones << 7)
			break;
	}
	return at;
}

bool utf8_valid(struct slice text)
{
	for (size_t at = printable_start(text), size; at < text.size; at += size) {
		size = utf8_character(slice_make(text.data + at, text.size - at));
		if (!size)
			return false;
	}
	return true;
}

struct slice utf8_cut(struct slice text, size_t size_max)
{
	if (text.size <= size_max)
		return text;
	size_t size = size_max;
	while (size && is_continuation((uint8_t)text.data[size]))
		size--;
	return slice_make(text.data, size);
}

/* U+0000 to U+001F, and U+007F to U+009F. */
static bool is_control(struct slice character)
{
	uint8_t first = (uint8_t)character.data[0];
	return first < 0x20 || first == 0x7f ||
	       (first == 0xc2 && (uint8_t)character.data[1] < 0xa0 && character.size == 2);
}

bool utf8_has_control(struct slice text)
{
	for (size_t at = printable_start(text), step; at < text.size; at += step) {
		struct slice rest = slice_make(text.data + at, text.size - at);
		step = utf8_character(rest);
		if (step && is_control(slice_make(rest.data, step)))
			return true;
		step += !step;
	}
	return false;
}

void utf8_show(struct slice text, char *out, size_t size)
{
	assert(size > 3); /* "..." and the NUL */
	static const char more[] = "...";
	struct slice shown = utf8_cut(text, size - 1);
	if (shown.size < text.size)
		shown = utf8_cut(text, size - sizeof more);
	size_t used = 0;
	for (size_t at = 0, step; at < shown.size; at += step) {
		struct slice rest = slice_make(shown.data + at, shown.size - at);
		step = utf8_character(rest);
		bool plain = step && !is_control(slice_make(rest.data, step));
		if (plain) {
			memcpy(out + used, rest.data, step);
			used += step;
		} else {
			out[used++] = '?';
			step += !step;
		}
	}
	snprintf(out + used, size - used, "%s", shown.size < text.size ? more : "");
}

void utf8_replace_invalid(char *text)
{
	size_t size = strlen(text);
	for (size_t at = 0, step; at < size; at += step) {
		step = utf8_character(slice_make(text + at, size - at));
		if (step)
			continue;
		text[at] = '?';
		step = 1;
	}
}
