#include "base/base64.h"

#include <openssl/evp.h>

void base64_encode(const void *data, size_t size, char *text)
{
	EVP_EncodeBlock((unsigned char *)text, data, (int)size);
}

void buf_add_base64(struct buf *buf, struct slice bytes)
{
	char *room = buf_extend(buf, BASE64_SIZE(bytes.size));
	if (room)
		base64_encode(bytes.data, bytes.size, room);
}

bool base64_decode(struct slice text, void *data, size_t size_max, size_t *ret_size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t *out = data;
	uint32_t bits = 0;
	int count = 0;
	size_t size = 0;
	size_t given = text.size;
	while (text.size && text.data[text.size - 1] == '=')
		text.size--;
	if (text.size % 4 == 1 || (given > text.size && (given % 4 != 0 || given - text.size > 2)))
		return false;
	for (size_t i = 0; i < text.size; i++) {
		const char *digit = text.data[i] ? strchr(digits, text.data[i]) : NULL;
		if (!digit)
			return false;
		bits = bits << 6 | (uint32_t)(digit - digits);
		count += 6;
		if (count < 8)
			continue;
		if (size == size_max)
			return false;
		count -= 8;
		out[size++] = (uint8_t)(bits >> count);
	}
	*ret_size = size;
	return true;
}
