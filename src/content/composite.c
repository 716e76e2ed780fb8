#include "content/composite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "content/content_driver.h"

#define PIECES_MAX (CONTENT_PIECES_SIZE / 2)
#define SKIP_MAX ((uint64_t)256 << 10) /* shorter gaps are read and discarded */
#define SKIP_CHUNK ((size_t)16 << 10)

struct piece {
	bool is_shared;
	uint64_t offset, size; /* range in its object */
};

struct source {
	char name[CONTENT_NAME_MAX];
	struct content_reader *reader; /* NULL: not started */
	uint64_t at;
};

struct pieces_reader {
	struct content_reader base;
	struct content_store *store; /* store of both objects */
	struct source own, shared;
	size_t count, next; /* number of pieces; the current piece */
	uint64_t used;      /* bytes used of the current piece */
	struct piece pieces[];
};

/* ---- list of pieces ---- */

static bool read_number(const char **at, uint64_t *ret)
{
	const char *text = *at;
	uint64_t value = 0;
	while (*text >= '0' && *text <= '9') {
		if (value > (uint64_t)INT64_MAX / 16)
			return false;
		value = value * 10 + (uint64_t)(*text++ - '0');
	}
	bool any = text != *at;
	*at = text;
	*ret = value;
	return any;
}

/* Returns false if the text is not a valid list of pieces. */
static bool read_pieces(const char *text, struct piece pieces[PIECES_MAX], size_t *ret_count,
                        uint64_t *ret_size)
{
	uint64_t own = 0, size = 0;
	size_t count = 0;
	for (const char *at = text; *at; count++) {
		if (count == PIECES_MAX)
			return false;
		struct piece *piece = &pieces[count];
		*piece = (struct piece){.is_shared = *at == '@', .offset = own};
		if (piece->is_shared) {
			at++;
			if (!read_number(&at, &piece->offset))
				return false;
		}
		if (*at++ != '+' || !read_number(&at, &piece->size) || piece->size == 0)
			return false;
		own += piece->is_shared ? 0 : piece->size;
		size += piece->size;
		if (piece->offset > INT64_MAX / 2 || own > INT64_MAX / 2 || size > INT64_MAX / 2)
			return false;
	}
	*ret_count = count;
	*ret_size = size;
	return count > 0;
}

/* ---- reading ---- */

static int skip(struct source *source, uint64_t size, struct error *error)
{
	char chunk[SKIP_CHUNK];
	while (size > 0) {
		int64_t got =
			content_read(source->reader, chunk, size < sizeof chunk ? size : sizeof chunk, error);
		if (got <= 0)
			return got < 0
			           ? (int)got
			           : error_cause(error, ERR_CORRUPT, "object %s is too short", source->name);
		size -= (uint64_t)got;
		source->at += (uint64_t)got;
	}
	return OK;
}

static int begin_at(struct pieces_reader *reader, struct source *source, uint64_t offset,
                    uint64_t *ret_size, struct error *error)
{
	*ret_size = UINT64_MAX; /* the size was checked at the start */
	if (source->reader && source->at <= offset && offset - source->at <= SKIP_MAX)
		return skip(source, offset - source->at, error);
	content_read_end(source->reader);
	source->reader = NULL;
	int result =
		content_read_begin(reader->store, source->name, offset, &source->reader, ret_size, error);
	if (result == ERR_NOT_FOUND)
		return error_cause(error, ERR_CORRUPT, "object %s is missing", source->name);
	source->at = offset;
	return result;
}

static int64_t read_piece(struct content_reader *base, void *data, size_t size, struct error *error)
{
	struct pieces_reader *reader = (struct pieces_reader *)base;
	if (reader->next == reader->count || size == 0)
		return 0;
	const struct piece *piece = &reader->pieces[reader->next];
	struct source *source = piece->is_shared ? &reader->shared : &reader->own;
	assert(reader->next < reader->count && reader->used <= piece->size);
	uint64_t offset = piece->offset + reader->used, left = piece->size - reader->used;
	int result = OK;
	uint64_t whole = 0;
	if (!source->reader || source->at != offset)
		result = begin_at(reader, source, offset, &whole, error);
	int64_t got = result;
	if (!result)
		got = content_read(source->reader, data, size < left ? size : (size_t)left, error);
	if (!result && got == 0)
		got = error_cause(error, ERR_CORRUPT, "object %s is too short", source->name);
	if (got < 0)
		return got;
	source->at += (uint64_t)got;
	reader->used += (uint64_t)got;
	if (reader->used == piece->size) {
		reader->next++;
		reader->used = 0;
	}
	return got;
}

static void end_pieces(struct content_reader *base)
{
	struct pieces_reader *reader = (struct pieces_reader *)base;
	content_read_end(reader->own.reader);
	content_read_end(reader->shared.reader);
	free(reader);
}

static const struct content_driver pieces_driver = {.read = read_piece, .read_end = end_pieces};
static struct content_store pieces_store = {&pieces_driver};

static void go_to(struct pieces_reader *reader, uint64_t offset)
{
	while (reader->next < reader->count && offset >= reader->pieces[reader->next].size)
		offset -= reader->pieces[reader->next++].size;
	reader->used = reader->next < reader->count ? offset : 0;
}

/* Finds the first unread byte of an object and the end of its last piece. */
static bool find_extent(const struct pieces_reader *reader, bool is_shared, uint64_t *ret_first,
                        uint64_t *ret_end)
{
	bool any = false;
	*ret_end = 0;
	for (size_t i = reader->next; i < reader->count; i++) {
		const struct piece *piece = &reader->pieces[i];
		if (piece->is_shared != is_shared)
			continue;
		if (!any)
			*ret_first = piece->offset + (i == reader->next ? reader->used : 0);
		any = true;
		if (piece->offset + piece->size > *ret_end)
			*ret_end = piece->offset + piece->size;
	}
	return any;
}

/* Opens both objects before any byte is sent, because a missing object cannot be reported after the
 * response header. */
static int begin_source(struct pieces_reader *reader, bool is_shared, struct error *error)
{
	struct source *source = is_shared ? &reader->shared : &reader->own;
	uint64_t first = 0, end = 0, size = 0;
	if (!find_extent(reader, is_shared, &first, &end))
		return OK;
	int result = begin_at(reader, source, first, &size, error);
	return !result && size < end
	           ? error_cause(error, ERR_CORRUPT, "object %s is too short", source->name)
	           : result;
}

static int begin_pieces(struct content_store *store, const struct content_parts *parts,
                        uint64_t offset, struct content_reader **ret_reader, uint64_t *ret_size,
                        struct error *error)
{
	struct piece pieces[PIECES_MAX];
	size_t count = 0;
	uint64_t size = 0;
	if (!read_pieces(parts->pieces, pieces, &count, &size))
		return error_cause(error, ERR_CORRUPT,
		                   "the stored form of %s is not a valid list of pieces", parts->object);
	if (!content_name_valid(parts->object) || !content_name_valid(parts->shared))
		return error_cause(error, ERR_INTERNAL, "not the name of a content object");
	struct pieces_reader *reader = calloc(1, sizeof *reader + count * sizeof *reader->pieces);
	if (!reader)
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a reader");
	reader->base.store = &pieces_store;
	reader->store = store;
	memcpy(reader->own.name, parts->object, strlen(parts->object) + 1);
	memcpy(reader->shared.name, parts->shared, strlen(parts->shared) + 1);
	memcpy(reader->pieces, pieces, count * sizeof *pieces);
	reader->count = count;
	go_to(reader, offset);
	int result = begin_source(reader, false, error);
	if (!result)
		result = begin_source(reader, true, error);
	if (result) {
		end_pieces(&reader->base);
		return result;
	}
	*ret_reader = &reader->base;
	*ret_size = size;
	return OK;
}

int content_parts_read(struct content_store *store, const struct content_parts *parts,
                       uint64_t offset, struct content_reader **ret_reader, uint64_t *ret_size,
                       struct error *error)
{
	return parts->shared && *parts->shared
	           ? begin_pieces(store, parts, offset, ret_reader, ret_size, error)
	           : content_read_begin(store, parts->object, offset, ret_reader, ret_size, error);
}
