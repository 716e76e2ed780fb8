#include "archive/gzip.h"

#include <stdlib.h>
#include <zlib.h>

#include "archive/gzip_codec.h"

/* Lines are collected into blocks, because a library call costs more than a line. */
#define TEXT_SIZE ((size_t)64 * 1024)
#define CHUNK_SIZE ((size_t)64 * 1024)
#define FORMAT (15 + 16) /* largest window, gzip format */
#define MEMORY 8

struct gzip_writer {
	gzip_sink *sink;
	void *context;
	const struct gzip_codec *codec;
	void *state; /* state of the codec */
	size_t size; /* size of the buffered text */
	uint8_t text[TEXT_SIZE];
	uint8_t chunk[CHUNK_SIZE];
};

/* ---- zlib ---- */

struct zlib {
	z_stream stream;
	bool end;
};

static void *make(void)
{
	struct zlib *zlib = calloc(1, sizeof *zlib);
	/* Level 1 is fast enough for a million lines in seconds, and hashes hardly compress anyway. */
	if (zlib &&
	    deflateInit2(&zlib->stream, 1, Z_DEFLATED, FORMAT, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(zlib);
		return NULL;
	}
	return zlib;
}

static void give(void *state, struct slice text, bool end)
{
	struct zlib *zlib = state;
	zlib->stream.next_in = (z_const Bytef *)text.data;
	zlib->stream.avail_in = (uInt)text.size;
	zlib->end = end;
}

static bool take(void *state, uint8_t *chunk, size_t size, size_t *ret_size)
{
	struct zlib *zlib = state;
	zlib->stream.next_out = chunk;
	zlib->stream.avail_out = (uInt)size;
	int outcome = deflate(&zlib->stream, zlib->end ? Z_FINISH : Z_NO_FLUSH);
	*ret_size = size - zlib->stream.avail_out;
	return zlib->stream.avail_out == 0 && outcome != Z_STREAM_END;
}

static void reset(void *state)
{
	struct zlib *zlib = state;
	deflateReset(&zlib->stream);
}

static void end(void *state)
{
	struct zlib *zlib = state;
	deflateEnd(&zlib->stream);
	free(zlib);
}

static uint32_t crc(uint32_t before, const void *data, size_t size)
{
	return (uint32_t)crc32_z(before, data, size);
}

static const struct gzip_codec by_zlib = {make, give, take, reset, end, crc};

/* ---- a writer ---- */

static const struct gzip_codec *fastest(void)
{
	const struct gzip_codec *isal = gzip_isal();
	return isal ? isal : &by_zlib;
}

int gzip_writer_make(enum gzip_by by, gzip_sink *sink, void *context,
                     struct gzip_writer **ret_writer, struct error *error)
{
	struct gzip_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return error_cause(error, ERR_NO_MEMORY, "gzip");
	writer->sink = sink;
	writer->context = context;
	writer->codec = by == GZIP_BY_ZLIB ? &by_zlib : fastest();
	writer->state = writer->codec->make();
	if (!writer->state) {
		free(writer);
		return error_cause(error, ERR_NO_MEMORY, "gzip");
	}
	*ret_writer = writer;
	return OK;
}

/* Compresses the buffered text. */
static int compress_buffer(struct gzip_writer *writer, bool last, struct error *error)
{
	writer->codec->give(writer->state, slice_make(writer->text, writer->size), last);
	writer->size = 0;
	int result = OK;
	for (bool more = true; more && !result;) {
		size_t size;
		more = writer->codec->take(writer->state, writer->chunk, CHUNK_SIZE, &size);
		if (size > 0)
			result = writer->sink(writer->context, writer->chunk, size, error);
	}
	return result;
}

int gzip_write(struct gzip_writer *writer, struct slice text, struct error *error)
{
	int result = OK;
	while (text.size > 0 && !result) {
		size_t room = TEXT_SIZE - writer->size;
		size_t step = text.size < room ? text.size : room;
		memcpy(writer->text + writer->size, text.data, step);
		writer->size += step;
		text = slice_make(text.data + step, text.size - step);
		if (writer->size == TEXT_SIZE)
			result = compress_buffer(writer, false, error);
	}
	return result;
}

int gzip_end(struct gzip_writer *writer, struct error *error)
{
	int result = compress_buffer(writer, true, error);
	writer->codec->reset(writer->state);
	return result;
}

void gzip_writer_free(struct gzip_writer *writer)
{
	if (!writer)
		return;
	writer->codec->free(writer->state);
	free(writer);
}

uint32_t gzip_crc32(uint32_t before, const void *data, size_t size)
{
	return fastest()->crc32(before, data, size);
}
