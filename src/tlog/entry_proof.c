#include "tlog/entry_proof.h"

#include "base/base64.h"
#include "tlog/line.h"

#define FIRST_LINE "c2sp.org/tlog-proof@v1"
#define EXTRA "extra "
#define INDEX "index "

void entry_proof_write(const struct entry_proof *proof, struct buf *out)
{
	buf_add_text(out, FIRST_LINE "\n");
	if (proof->extra.size > 0) {
		buf_add_text(out, EXTRA);
		buf_add_slice(out, proof->extra);
		buf_add_byte(out, '\n');
	}
	buf_add_text(out, INDEX);
	buf_add_unsigned(out, proof->index);
	buf_add_byte(out, '\n');
	for (size_t i = 0; i < proof->path.count; i++) {
		buf_add_base64(out, slice_make(proof->path.hashes[i].bytes, SHA256_SIZE));
		buf_add_byte(out, '\n');
	}
	buf_add_byte(out, '\n');
	buf_add_slice(out, proof->checkpoint);
}

static bool take_start(struct slice *line, const char *start)
{
	size_t size = strlen(start);
	if (line->size < size || memcmp(line->data, start, size) != 0)
		return false;
	*line = slice_make(line->data + size, line->size - size);
	return true;
}

static int refuse(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s", why);
}

int entry_proof_parse(struct slice text, struct entry_proof *ret, struct error *error)
{
	struct slice rest = text, line;
	struct entry_proof proof = {0};
	if (!line_take(&rest, &line) || !slice_is(line, FIRST_LINE))
		return refuse(error, "the first line must be " FIRST_LINE);
	bool found = line_take(&rest, &line);
	if (found && take_start(&line, EXTRA)) {
		proof.extra = line;
		found = line_take(&rest, &line);
	}
	if (!found)
		return refuse(error, "the text ends early");
	if (!take_start(&line, INDEX) || !line_parse_size(line, &proof.index))
		return refuse(error, "the line of the index is not valid");
	for (; line_take(&rest, &line) && line.size > 0; proof.path.count++)
		if (proof.path.count == MERKLE_PATH_MAX ||
		    !line_parse_hash(line, &proof.path.hashes[proof.path.count]))
			return refuse(error, "a hash of the path is not valid, or there are too many");
	if (line.size > 0 || rest.size == 0)
		return refuse(error, "the checkpoint is missing");
	proof.checkpoint = rest;
	*ret = proof;
	return OK;
}
