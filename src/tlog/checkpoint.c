#include "tlog/checkpoint.h"

#include "base/base64.h"

#define ROOT_TEXT_SIZE BASE64_SIZE(SHA256_SIZE)

static int refuse(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s", why);
}

/* Takes the next line; false: there is none with an end. */
static bool take_line(struct slice *rest, struct slice *ret)
{
	const char *end = rest->size > 0 ? memchr(rest->data, '\n', rest->size) : NULL;
	if (!end)
		return false;
	*ret = slice_make(rest->data, (size_t)(end - rest->data));
	*rest = slice_make(end + 1, rest->size - ret->size - 1);
	return true;
}

static bool parse_size(struct slice text, uint64_t *ret)
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

/* Decodes the one form in which a hash is written. */
static bool parse_hash(struct slice text, struct sha256 *ret)
{
	size_t size;
	char canonical[ROOT_TEXT_SIZE + 1];
	if (text.size != ROOT_TEXT_SIZE || !base64_decode(text, ret->bytes, sizeof ret->bytes, &size) ||
	    size != SHA256_SIZE)
		return false;
	base64_encode(ret->bytes, SHA256_SIZE, canonical);
	return slice_is(text, canonical);
}

int checkpoint_parse(struct slice text, struct checkpoint *ret, struct error *error)
{
	struct slice rest = text, origin = {0}, size = {0}, root = {0}, extension = {0};
	*ret = (struct checkpoint){0};
	if (!take_line(&rest, &origin) || !take_line(&rest, &size) || !take_line(&rest, &root))
		return refuse(error, "a checkpoint must have three lines: origin, size and root");
	if (origin.size < 1 || origin.size > NOTE_NAME_MAX || memchr(origin.data, '\0', origin.size))
		return refuse(error, "the origin of a checkpoint must have 1 to 255 bytes");
	if (!parse_size(size, &ret->size))
		return refuse(error, "the size of a checkpoint must be a decimal number up to 2^53");
	if (!parse_hash(root, &ret->root))
		return refuse(error, "the root of a checkpoint must be base64 of 32 bytes");
	while (rest.size > 0)
		if (!take_line(&rest, &extension) || extension.size == 0)
			return refuse(error, "the extension lines of a checkpoint must not be empty");
	memcpy(ret->origin, origin.data, origin.size);
	return OK;
}

void checkpoint_write(const struct checkpoint *checkpoint, struct buf *out)
{
	buf_add_text(out, checkpoint->origin);
	buf_add_byte(out, '\n');
	buf_add_unsigned(out, checkpoint->size);
	buf_add_byte(out, '\n');
	buf_add_base64(out, slice_make(checkpoint->root.bytes, SHA256_SIZE));
	buf_add_byte(out, '\n');
}
