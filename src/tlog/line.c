#include "tlog/line.h"

#include "base/base64.h"

#define HASH_TEXT_SIZE BASE64_SIZE(SHA256_SIZE)

bool line_take(struct slice *rest, struct slice *ret)
{
	const char *end = rest->size > 0 ? memchr(rest->data, '\n', rest->size) : NULL;
	if (!end)
		return false;
	*ret = slice_make(rest->data, (size_t)(end - rest->data));
	*rest = slice_make(end + 1, rest->size - ret->size - 1);
	return true;
}

bool line_parse_size(struct slice text, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		*ret = *ret * 10 + (uint64_t)(text.data[i] - '0');
		if (*ret > MERKLE_SIZE_MAX)
			return false;
	}
	return text.size == 1 || (text.size > 1 && text.data[0] != '0');
}

bool line_parse_hash(struct slice text, struct sha256 *ret)
{
	size_t size;
	char canonical[HASH_TEXT_SIZE + 1];
	if (text.size != HASH_TEXT_SIZE || !base64_decode(text, ret->bytes, sizeof ret->bytes, &size) ||
	    size != SHA256_SIZE)
		return false;
	base64_encode(ret->bytes, SHA256_SIZE, canonical);
	return slice_is(text, canonical);
}
