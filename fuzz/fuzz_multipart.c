/* A form, parsed as a whole and in chunks: both find the same parts, or both reject it. The first
 * byte is the chunk size. */
#include "base/utf8.h"
#include "fuzz.h"
#include "http/multipart.h"

#define LIMIT ((size_t)4 * 1024 * 1024)

static int begin(void *context, struct slice name, struct slice file_name, struct error *error)
{
	struct buf *found = context;
	require(utf8_valid(name) && utf8_valid(file_name), "names are UTF-8");
	buf_add_text(found, "\nbegin ");
	buf_add_slice(found, name);
	buf_add_text(found, file_name.data ? " file " : " field ");
	buf_add_slice(found, file_name);
	buf_add_byte(found, '\n');
	return 0;
}

static int data_of(void *context, struct slice data, struct error *error)
{
	require(data.size > 0, "data is not empty");
	buf_add_slice(context, data);
	return 0;
}

static int end(void *context, struct error *error)
{
	buf_add_text(context, "\nend\n");
	return 0;
}

static int parse(struct slice body, size_t piece, struct buf *found)
{
	ARENA_AUTO struct arena arena = {.limit = LIMIT};
	struct multipart multipart;
	struct multipart_sink sink = {begin, data_of, end, found};
	struct error error = {0};
	int result = multipart_begin(&multipart, slice_of("multipart/form-data; boundary=B"), &arena,
	                             &sink, &error);
	require(!result, "the boundary is valid");
	while (body.size && !result) {
		size_t size = body.size < piece ? body.size : piece;
		result = multipart_feed(&multipart, slice_make(body.data, size), &error);
		body = slice_make(body.data + size, body.size - size);
	}
	return result ? result : multipart_end(&multipart, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > LIMIT / 4)
		return 0;
	BUF_AUTO struct buf whole = {.limit = LIMIT};
	BUF_AUTO struct buf pieces = {.limit = LIMIT};
	struct slice body = slice_make(data + 1, size - 1);
	int result = parse(body, size, &whole);
	require(parse(body, (size_t)data[0] % 16 + 1, &pieces) == result,
	        "the result does not depend on chunks");
	require(!result || result == ERR_VALIDATION, "memory suffices");
	require(result || slice_equal(buf_slice(&whole), buf_slice(&pieces)), "the parts are the same");
	return 0;
}
