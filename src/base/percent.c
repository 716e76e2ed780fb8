#include "base/percent.h"

#include "base/digest.h"

void buf_add_percent(struct buf *buf, struct slice text, const char *keep)
{
	static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
									 "0123456789-._~";
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];
		if (c && (strchr(unreserved, c) || strchr(keep, c)))
			buf_add_byte(buf, c);
		else
			buf_printf(buf, "%%%02X", (unsigned char)c);
	}
}

bool percent_decode_bytes(struct slice text, char *data, size_t size_max, size_t *ret_size)
{
	size_t size = 0;
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];
		if (c == '%') {
			if (text.size - i < 3 || !hex_decode(slice_make(text.data + i + 1, 2), &c, 1))
				return false;
			i += 2;
		}
		if (size == size_max)
			return false;
		data[size++] = c;
	}
	*ret_size = size;
	return true;
}

bool percent_decode(struct slice text, char *data, size_t size_max, size_t *ret_size)
{
	size_t size;

	if (!percent_decode_bytes(text, data, size_max, &size) ||
	    (size > 0 && memchr(data, '\0', size)))
		return false;
	*ret_size = size;
	return true;
}
