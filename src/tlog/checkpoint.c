#include "tlog/checkpoint.h"

#include "base/base64.h"
#include "base/utf8.h"
#include "tlog/line.h"

static int refuse(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s", why);
}

int checkpoint_parse(struct slice text, struct checkpoint *ret, struct error *error)
{
	struct slice rest = text, origin = {0}, size = {0}, root = {0}, extension = {0};
	*ret = (struct checkpoint){0};
	if (!line_take(&rest, &origin) || !line_take(&rest, &size) || !line_take(&rest, &root))
		return refuse(error, "a checkpoint must have three lines: origin, size and root");
	if (origin.size < 1 || origin.size > NOTE_NAME_MAX || !utf8_valid(origin) ||
	    utf8_has_control(origin))
		return refuse(error, "the origin of a checkpoint must have 1 to 255 bytes of UTF-8 without"
		                     " control characters");
	if (!line_parse_size(size, &ret->size))
		return refuse(error, "the size of a checkpoint must be a decimal number up to 2^53");
	if (!line_parse_hash(root, &ret->root))
		return refuse(error, "the root of a checkpoint must be base64 of 32 bytes");
	while (rest.size > 0)
		if (!line_take(&rest, &extension) || extension.size == 0)
			return refuse(error, "the extension lines of a checkpoint must not be empty");
	memcpy(ret->origin, origin.data, origin.size);
	return OK;
}

bool checkpoint_parse_size(struct slice text, uint64_t *ret)
{
	return line_parse_size(text, ret);
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
