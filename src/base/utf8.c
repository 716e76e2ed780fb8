#include "base/utf8.h"

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
	/* The second byte's range is what excludes overlong forms, surrogates and the beyond. */
	uint8_t lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	uint8_t highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
	if (bytes[1] < lowest || bytes[1] > highest)
		return 0;
	for (size_t i = 2; i < size; i++)
		if (!is_continuation(bytes[i]))
			return 0;
	return size;
}

bool utf8_valid(struct slice text)
{
	while (text.size) {
		size_t size = utf8_character(text);
		if (!size)
			return false;
		text = slice_make(text.data + size, text.size - size);
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

void utf8_mend(char *text)
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
