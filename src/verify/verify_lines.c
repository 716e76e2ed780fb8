/* Streams of lines that are divided into several compressed files. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "verify/stream_text.h"
#include "verify/verify_check.h"

#define OUTPUT_SIZE ((size_t)ARCHIVE_LINE_MAX + TEXT_BLOCK_SIZE)

struct line_stream {
	enum archive_stream kind;
	struct stream_text *text;
	const struct zip_entry *entry; /* the open file; NULL: none yet */
	uint32_t file_number;          /* its number, as in text_block */
	bool plain;                    /* an uncompressed entry, without a limit of lines */
	bool file_ended;               /* its whole text is in `output` */
	uint64_t line;
	bool broken;
	char *output;
	size_t start, scanned, end; /* unread text is output[start..end) */
	uint64_t where_line;        /* the line of `entry` that was read last */
	char where[ZIP_NAME_MAX + 40];
};

static int open_stream(struct zip_reader *zip, enum archive_stream kind,
                       const struct zip_entry *entry, bool ahead, struct line_stream **ret_stream,
                       struct error *error)
{
	struct line_stream *stream = calloc(1, sizeof *stream);
	if (!stream)
		return error_cause(error, ERR_NO_MEMORY, "lines");
	stream->kind = kind;
	stream->plain = entry;
	stream->output = malloc(OUTPUT_SIZE);
	int result = stream->output ? stream_text_open(zip, kind, entry, ahead, &stream->text, error)
	                            : error_cause(error, ERR_NO_MEMORY, "lines");
	if (result) {
		line_stream_free(stream);
		return result;
	}
	*ret_stream = stream;
	return 0;
}

int line_stream_open(struct zip_reader *zip, enum archive_stream kind, bool ahead,
                     struct line_stream **ret_stream, struct error *error)
{
	return open_stream(zip, kind, NULL, ahead, ret_stream, error);
}

int line_stream_open_plain(struct zip_reader *zip, const struct zip_entry *entry,
                           struct line_stream **ret_stream, struct error *error)
{
	return open_stream(zip, 0, entry, false, ret_stream, error);
}

/* Checks the number of lines of a file. All files except the last one are full, which makes their
 * division unique. `line` is the next line. */
static int check_count(const struct line_stream *stream, bool last, struct error *error)
{
	if (stream->plain || !stream->entry)
		return 0;
	if (last ? stream->line == 1 : stream->line != ARCHIVE_LINES_PER_FILE + 1)
		return finding_fail(error, FINDING_LINES_DIVIDED, ARCHIVE_LINES_PER_FILE,
		                    ARCHIVE_LINES_PER_FILE);
	return 0;
}

/* Returns 1 with more text, 0 after the last file. */
static int fill(struct line_stream *stream, struct error *error)
{
	assert(stream->start <= stream->scanned && stream->scanned <= stream->end);
	memmove(stream->output, stream->output + stream->start, stream->end - stream->start);
	stream->end -= stream->start;
	stream->scanned -= stream->start;
	stream->start = 0;
	if (stream->end > ARCHIVE_LINE_MAX)
		return finding_fail(error, FINDING_LINES_TOO_LONG, ARCHIVE_LINE_MAX);
	const struct text_block *block = stream_text_next(stream->text);
	bool next_file = block && (!stream->entry || stream->file_number != block->number);
	int result = !block || next_file ? check_count(stream, !block, error) : 0;
	if (!block || result)
		return result;
	if (next_file)
		stream->line = 1;
	stream->entry = block->entry;
	stream->file_number = block->number;
	assert(block->size <= TEXT_BLOCK_SIZE && block->size <= OUTPUT_SIZE - stream->end);
	memcpy(stream->output + stream->end, block->bytes, block->size);
	stream->end += block->size;
	stream->file_ended = block->ends_file;
	if (block->status < 0 && error)
		*error = block->error;
	return block->status < 0 ? block->status : 1;
}

static int next(struct line_stream *stream, struct slice *ret_line, struct error *error)
{
	for (;;) {
		char *from = stream->output + stream->scanned;
		char *newline = memchr(from, '\n', stream->end - stream->scanned);
		if (newline && !stream->plain && stream->line > ARCHIVE_LINES_PER_FILE)
			return finding_fail(error, FINDING_LINES_DIVIDED, ARCHIVE_LINES_PER_FILE,
			                    ARCHIVE_LINES_PER_FILE);
		if (newline) {
			size_t end = (size_t)(newline - stream->output);
			*ret_line = slice_make(stream->output + stream->start, end - stream->start);
			stream->start = stream->scanned = end + 1;
			return 1;
		}
		stream->scanned = stream->end;
		if (stream->file_ended && stream->end > stream->start)
			return finding_fail(error, FINDING_LINES_NO_END);
		int result = fill(stream, error);
		if (result <= 0)
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
		return ""; /* no line was read yet */
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
	stream_text_free(stream->text);
	free(stream->output);
	free(stream);
}
