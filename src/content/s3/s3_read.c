/* Downloads in blocks. Each block is a range request, which is retried individually. It is bound to
 * the ETag of the first one, so that the versions of a replaced object are never mixed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "content/s3/s3.h"

#define ETAG_MAX 136

struct s3_reader {
	struct content_reader base;
	char name[CONTENT_NAME_MAX];
	char etag[ETAG_MAX]; /* empty: the service sends none */
	uint64_t size;       /* size of the object */
	uint64_t next;       /* offset after the block */
	char *block;
	size_t room;
	size_t filled;
	size_t given;
};

static bool take(void *context, struct slice part)
{
	struct s3_reader *reader = context;
	if (part.size > reader->room - reader->filled)
		return false;
	memcpy(reader->block + reader->filled, part.data, part.size);
	reader->filled += part.size;
	return true;
}

static void restart(void *context)
{
	struct s3_reader *reader = context;
	reader->filled = reader->given = 0;
}

/* Parses "bytes 0-99/1234". */
static bool read_range(const struct s3_answer *answer, uint64_t *ret_first, uint64_t *ret_last,
                       uint64_t *ret_size)
{
	char text[80];
	int end = 0;
	return s3_header(answer, "Content-Range", text, sizeof text) &&
	       sscanf(text, "bytes %18" SCNu64 "-%18" SCNu64 "/%18" SCNu64 "%n", ret_first, ret_last,
	              ret_size, &end) == 3 &&
	       text[end] == '\0' && end > 0;
}

/* Checks that the answer is the requested block. */
static int check_block(struct s3_reader *reader, const struct s3_answer *answer, bool first_block,
                       struct error *error)
{
	uint64_t first = 0, last = 0, size = 0;
	char etag[ETAG_MAX] = "";
	if (answer->http.status != 206 || !read_range(answer, &first, &last, &size))
		return s3_protocol_error(error, "not the requested range");
	(void)s3_header(answer, "ETag", etag, sizeof etag);
	if (!first_block && (size != reader->size || strcmp(etag, reader->etag) != 0))
		return s3_protocol_error(error, "the object has changed");
	uint64_t left = size > reader->next ? size - reader->next : 0;
	uint64_t expected = left < reader->room ? left : reader->room;
	if (first != reader->next || last < first || last - first + 1 != reader->filled ||
	    reader->filled != expected)
		return s3_protocol_error(error, "not the requested range");
	reader->size = size;
	memcpy(reader->etag, etag, sizeof etag);
	return OK;
}

/* Fetches the block at `next`, of the size `room`. ret_status: status of the answer, if any. */
static int fetch(struct s3_reader *reader, bool first_block, int *ret_status, struct error *error)
{
	S3_ANSWER_AUTO struct s3_answer answer;
	char range[80], match[ETAG_MAX + 16];
	snprintf(range, sizeof range, "Range: bytes=%" PRIu64 "-%" PRIu64, reader->next,
	         reader->next + reader->room - 1);
	snprintf(match, sizeof match, "If-Match: %s", reader->etag);
	struct s3_request request = {.method = "GET",
	                             .name = reader->name,
	                             .headers = {range, *reader->etag ? match : NULL},
	                             .take = take,
	                             .restart = restart,
	                             .context = reader,
	                             .expected_bytes = reader->room};
	int result = s3_send((struct s3_store *)reader->base.store, &request, &answer, error);
	*ret_status = answer.http.status;
	if (!result)
		result = check_block(reader, &answer, first_block, error);
	if (!result)
		reader->next += reader->filled;
	return result;
}

/* The offset is at or beyond the end of the object. */
static int begin_at_end(struct s3_reader *reader, struct error *error)
{
	struct s3_object object;
	int result = s3_head((struct s3_store *)reader->base.store, reader->name, &object, error);
	if (result)
		return result;
	if (object.size > reader->next)
		return s3_protocol_error(error, "an existing range is refused");
	reader->size = reader->next = object.size;
	return OK;
}

static bool make_room(struct s3_reader *reader, size_t size)
{
	char *block = realloc(reader->block, size);
	if (!block)
		return false;
	reader->block = block;
	reader->room = size;
	return true;
}

static int begin(struct s3_reader *reader, struct error *error)
{
	int status = 0;
	if (!make_room(reader, S3_BLOCK_FIRST))
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a reader");
	int result = fetch(reader, true, &status, error);
	if (status == 416 || (result && status == 200 && reader->filled == 0)) {
		error_clear(error);
		result = begin_at_end(reader, error);
		reader->filled = 0;
	}
	return result;
}

int s3_read_begin(struct content_store *base, const char *name, uint64_t offset,
                  struct content_reader **ret_reader, uint64_t *ret_size, struct error *error)
{
	struct s3_reader *reader = calloc(1, sizeof *reader);
	if (!reader)
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a reader");
	reader->base.store = base;
	reader->next = offset;
	snprintf(reader->name, sizeof reader->name, "%s", name);
	int result = begin(reader, error);
	if (result) {
		s3_read_end(&reader->base);
		return result;
	}
	*ret_reader = &reader->base;
	*ret_size = reader->size;
	return OK;
}

/* Fetches the next block; the rest of the object bounds the memory. */
static int fetch_next(struct s3_reader *reader, struct error *error)
{
	uint64_t left = reader->size - reader->next;
	size_t room = left < S3_BLOCK_NEXT ? (size_t)left : S3_BLOCK_NEXT;
	int status = 0;
	if (room != reader->room && !make_room(reader, room))
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a reader");
	int result = fetch(reader, false, &status, error);
	if (status == 412 || result == ERR_NOT_FOUND)
		return error_cause(error, ERR_IO,
		                   "content: the object %s was replaced or deleted while it "
		                   "was read",
		                   reader->name);
	return result;
}

int64_t s3_read(struct content_reader *base, void *data, size_t size, struct error *error)
{
	struct s3_reader *reader = (struct s3_reader *)base;
	if (reader->given == reader->filled) {
		if (reader->next >= reader->size)
			return 0;
		int result = fetch_next(reader, error);
		if (result) {
			reader->filled = reader->given = 0;
			return result;
		}
	}
	size_t left = reader->filled - reader->given;
	size_t got = left < size ? left : size;
	memcpy(data, reader->block + reader->given, got);
	reader->given += got;
	return (int64_t)got;
}

void s3_read_end(struct content_reader *base)
{
	struct s3_reader *reader = (struct s3_reader *)base;
	free(reader->block);
	free(reader);
}
