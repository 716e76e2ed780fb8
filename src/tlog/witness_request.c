#include "tlog/witness_request.h"

#include "base/base64.h"
#include "tlog/line.h"

#define OLD_START "old "

static int refuse(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s", why);
}

int witness_request_parse(struct slice body, struct witness_request *ret, struct error *error)
{
	struct slice rest = body, line = {0};
	*ret = (struct witness_request){0};
	if (!line_take(&rest, &line) || line.size <= strlen(OLD_START) ||
	    memcmp(line.data, OLD_START, strlen(OLD_START)) != 0 ||
	    !line_parse_size(slice_make(line.data + strlen(OLD_START), line.size - strlen(OLD_START)),
	                     &ret->old_size))
		return refuse(error, "the first line must be old and a size");
	while (line_take(&rest, &line) && line.size > 0) {
		if (ret->path.count == MERKLE_PATH_MAX)
			return refuse(error, "a proof may have 63 hashes at most");
		if (!line_parse_hash(line, &ret->path.hashes[ret->path.count++]))
			return refuse(error, "a hash of the proof must be base64 of 32 bytes");
	}
	if (line.size > 0 || rest.size == 0)
		return refuse(error, "an empty line and the checkpoint must follow the proof");
	ret->checkpoint = rest;
	return OK;
}

void witness_request_write(const struct witness_request *request, struct buf *out)
{
	buf_add_text(out, OLD_START);
	buf_add_unsigned(out, request->old_size);
	buf_add_byte(out, '\n');
	for (size_t i = 0; i < request->path.count; i++) {
		buf_add_base64(out, slice_make(request->path.hashes[i].bytes, SHA256_SIZE));
		buf_add_byte(out, '\n');
	}
	buf_add_byte(out, '\n');
	buf_add_slice(out, request->checkpoint);
}

enum witness_verdict witness_decide(const struct witness_request *request,
                                    const struct checkpoint *checkpoint,
                                    const struct checkpoint *known)
{
	if (request->old_size > checkpoint->size)
		return WITNESS_INVALID_SIZE;
	if (request->old_size != known->size)
		return WITNESS_OTHER_SIZE;
	const struct sha256 empty = merkle_empty_root();
	if (checkpoint->size == 0 && !sha256_equal(&checkpoint->root, &empty))
		return WITNESS_INCONSISTENT;
	return merkle_is_consistent(known->size, &known->root, checkpoint->size, &checkpoint->root,
	                            &request->path)
	           ? WITNESS_COSIGNS
	           : WITNESS_INCONSISTENT;
}
