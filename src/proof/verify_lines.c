#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "proof/verify_check.h"

#define INPUT_SIZE ((size_t)64 * 1024)
#define OUTPUT_SIZE ((size_t)ARCHIVE_LINE_MAX + 64 * 1024)

struct line_stream {
	struct zip_reader *zip;
	bool plain; /* one entry, not compressed */
	enum archive_stream kind;
	uint32_t file_number; /* of the open file, from 1; 0: none yet */
	const struct zip_entry *entry;
	uint64_t position; /* in the entry */
	bool file_ended;   /* all of its text is in `output` */
	uint64_t line;
	z_stream gzip;
	bool gzip_ready;
	bool broken;
	uint8_t input[INPUT_SIZE];
	char *output;
	size_t start, scanned, end; /* unread text is output[start..end) */
	uint64_t where_line;        /* which was read last, of `entry` */
	char where[ZIP_NAME_MAX + 40];
};

static int open_stream(struct zip_reader *zip, struct line_stream **ret_stream, struct error *error)
{
	struct line_stream *stream = calloc(1, sizeof *stream);
	if (!stream)
		return error_cause(error, ERR_NO_MEMORY, "lines");
	stream->zip = zip;
	stream->file_ended = true;
	stream->output = malloc(OUTPUT_SIZE);
	stream->gzip_ready = inflateInit2(&stream->gzip, 15 + 16) == Z_OK;
	if (!stream->output || !stream->gzip_ready) {
		line_stream_free(stream);
		return error_cause(error, ERR_NO_MEMORY, "lines");
	}
	*ret_stream = stream;
	return 0;
}

int line_stream_open(struct zip_reader *zip, enum archive_stream kind,
                     struct line_stream **ret_stream, struct error *error)
{
	struct line_stream *stream;
	int result = open_stream(zip, &stream, error);
	if (result)
		return result;
	stream->kind = kind;
	*ret_stream = stream;
	return 0;
}

int line_stream_open_plain(struct zip_reader *zip, const struct zip_entry *entry,
                           struct line_stream **ret_stream, struct error *error)
{
	struct line_stream *stream;
	int result = open_stream(zip, &stream, error);
	if (result)
		return result;
	stream->plain = true;
	stream->entry = entry;
	stream->file_ended = false;
	*ret_stream = stream;
	return 0;
}

/* 1 when there is another file, else 0. */
static int next_file(struct line_stream *stream)
{
	char path[ZIP_NAME_MAX + 1];
	if (stream->plain)
		return 0;
	archive_stream_path(stream->kind, stream->file_number + 1, path);
	const struct zip_entry *entry = zip_find(stream->zip, path);
	if (!entry)
		return 0;
	stream->file_number++;
	stream->entry = entry;
	stream->position = 0;
	stream->line = 0;
	stream->file_ended = false;
	stream->gzip.avail_in = 0;
	inflateReset(&stream->gzip);
	return 1;
}

static int read_input(struct line_stream *stream, void *to, size_t size_max, size_t *ret_size,
                      struct error *error)
{
	uint64_t left = stream->entry->size - stream->position;
	size_t size = left < size_max ? (size_t)left : size_max;
	int result = zip_read(stream->zip, stream->entry, stream->position, to, size, error);
	if (result < 0)
		return result;
	stream->position += size;
	*ret_size = size;
	return 0;
}

static int fill_gzip(struct line_stream *stream, struct error *error)
{
	z_stream *gzip = &stream->gzip;
	if (gzip->avail_in == 0) {
		size_t size;
		int status = read_input(stream, stream->input, INPUT_SIZE, &size, error);
		if (status < 0)
			return status;
		if (size == 0)
			return error_cause(error, ERR_INVALID_EVIDENCE,
			                   "the gzip data ends before its end mark");
		gzip->next_in = stream->input;
		gzip->avail_in = (uInt)size;
	}
	gzip->next_out = (Bytef *)stream->output + stream->end;
	gzip->avail_out = (uInt)(OUTPUT_SIZE - stream->end);
	int outcome = inflate(gzip, Z_NO_FLUSH);
	stream->end = OUTPUT_SIZE - gzip->avail_out;
	if (outcome == Z_MEM_ERROR)
		return error_cause(error, ERR_NO_MEMORY, "gzip");
	if (outcome == Z_STREAM_END) {
		stream->file_ended = true;
		if (gzip->avail_in > 0 || stream->position < stream->entry->size)
			return error_cause(error, ERR_INVALID_EVIDENCE, "there are bytes behind the gzip data");
	} else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
		return error_cause(error, ERR_INVALID_EVIDENCE, "the gzip data is damaged (%s)",
		                   gzip->msg ? gzip->msg : "unknown reason");
	}
	return 0;
}

static int fill(struct line_stream *stream, struct error *error)
{
	memmove(stream->output, stream->output + stream->start, stream->end - stream->start);
	stream->end -= stream->start;
	stream->scanned -= stream->start;
	stream->start = 0;
	if (stream->end > ARCHIVE_LINE_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the line is longer than %d bytes",
		                   ARCHIVE_LINE_MAX);
	if (!stream->plain)
		return fill_gzip(stream, error);
	size_t size;
	int result =
		read_input(stream, stream->output + stream->end, OUTPUT_SIZE - stream->end, &size, error);
	if (result < 0)
		return result;
	stream->end += size;
	stream->file_ended = stream->position == stream->entry->size;
	return 0;
}

static int next(struct line_stream *stream, struct slice *ret_line, struct error *error)
{
	for (;;) {
		char *from = stream->output + stream->scanned;
		char *newline = memchr(from, '\n', stream->end - stream->scanned);
		if (newline) {
			size_t end = (size_t)(newline - stream->output);
			*ret_line = slice_make(stream->output + stream->start, end - stream->start);
			stream->start = stream->scanned = end + 1;
			return 1;
		}
		stream->scanned = stream->end;
		if (stream->file_ended) {
			if (stream->end > stream->start)
				return error_cause(error, ERR_INVALID_EVIDENCE, "the last line has no end");
			if (!next_file(stream))
				return 0;
			stream->line = 1;
		}
		int result = fill(stream, error);
		if (result < 0)
			return result;
	}
}

int line_stream_next(struct line_stream *stream, struct slice *ret_line, struct error *error)
{
	if (stream->broken)
		return 0;
	stream->line++;
	int result = next(stream, ret_line, error);
	stream->broken = result <= 0;
	stream->where_line = result == 0 ? stream->line - 1 : stream->line;
	return result;
}

const char *line_stream_where(struct line_stream *stream)
{
	if (stream->line == 0)
		return ""; /* nothing was read yet */
	if (stream->entry)
		snprintf(stream->where, sizeof stream->where, "%.*s line %llu",
		         (int)stream->entry->name.size, stream->entry->name.data,
		         (unsigned long long)stream->where_line);
	else
		snprintf(stream->where, sizeof stream->where, "%s", archive_stream_text(stream->kind));
	return stream->where;
}

void line_stream_free(struct line_stream *stream)
{
	if (!stream)
		return;
	if (stream->gzip_ready)
		inflateEnd(&stream->gzip);
	free(stream->output);
	free(stream);
}
