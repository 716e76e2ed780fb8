#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive_lines.h"
#include "archive/zip_shape.h"
#include "base/file.h"
#include "base/spool.h"

#define CHUNK_SIZE ((size_t)64 * 1024)

struct part_writer {
	char *directory;
	struct part_head head; /* owns its strings */
	uint64_t bytes_max;
	uint32_t entries_max;
	bool failed;
	bool finished;

	struct zip_writer *zip; /* the open part; NULL between parts */
	struct spool *index;
	struct buf line;

	struct part_facts *parts;
	size_t count;
};

static int no_memory(struct error *error)
{
	return error_cause(error, ERR_NO_MEMORY, "content part");
}

/* Returns the path of a part. The caller frees it. */
static char *part_path(const struct part_writer *writer, const char *name)
{
	char *path;
	return asprintf(&path, "%s/%s", writer->directory, name) < 0 ? NULL : path;
}

int part_writer_begin(const char *directory, const char *certification_id, const char *channel_id,
                      uint64_t bytes_max, uint32_t entries_max, struct part_writer **ret_writer,
                      struct error *error)
{
	struct part_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return no_memory(error);
	writer->bytes_max = bytes_max ? bytes_max : PART_BYTES_MAX;
	writer->entries_max = entries_max ? entries_max : PART_ENTRIES_MAX;
	buf_init(&writer->line, PART_INDEX_LINE_MAX);
	writer->directory = strdup(directory);
	writer->index = spool_make(directory);
	writer->head.certification_id = strdup(certification_id);
	writer->head.channel_id = strdup(channel_id);
	if (!writer->directory || !writer->index || !writer->head.certification_id ||
	    !writer->head.channel_id) {
		part_writer_free(writer);
		return no_memory(error);
	}
	*ret_writer = writer;
	return 0;
}

void part_name(uint32_t number, char name[PART_NAME_SIZE])
{
	snprintf(name, PART_NAME_SIZE, "content-part-%03u.zip", number);
}

static int open_part(struct part_writer *writer, int64_t sequence, struct error *error)
{
	assert(!writer->zip && sequence >= 1);
	if (writer->count >= PART_COUNT_MAX)
		return error_cause(error, ERR_TOO_LARGE, "more than %u content parts", PART_COUNT_MAX);
	struct part_facts *parts =
		reallocarray(writer->parts, writer->count + 1, sizeof *writer->parts);
	if (!parts)
		return no_memory(error);
	writer->parts = parts;
	struct part_facts *part = &parts[writer->count++];
	*part = (struct part_facts){.first_sequence = sequence, .last_sequence = sequence - 1};
	writer->head.number = (uint32_t)writer->count;
	part_name(writer->head.number, part->name);
	char *path = part_path(writer, part->name);
	if (!path)
		return no_memory(error);
	int result = zip_create(path, writer->bytes_max, writer->entries_max, &writer->zip, error);
	free(path);
	if (result < 0)
		return result;
	result = spool_clear(writer->index, error);
	if (result < 0)
		return result;
	buf_clear(&writer->line);
	part_head_write(&writer->head, &writer->line);
	if (buf_check(&writer->line) < 0)
		return no_memory(error);
	return zip_add(writer->zip, PART_HEAD_NAME, buf_slice(&writer->line), NULL, error);
}

static int write_index(void *context, const void *data, size_t size, struct error *error)
{
	return zip_entry_write(context, data, size, error);
}

static int close_part(struct part_writer *writer, struct error *error)
{
	assert(writer->zip);
	assert(writer->count >= 1 && writer->count <= PART_COUNT_MAX);
	struct zip_sum sum;
	int result = zip_entry_begin(writer->zip, PART_INDEX_NAME, error);
	if (!result)
		result = spool_give(writer->index, write_index, writer->zip, error);
	if (!result)
		result = zip_entry_end(writer->zip, NULL, error);
	if (!result)
		result = zip_finish(writer->zip, &sum, error);
	if (result < 0)
		return result;
	zip_writer_free(writer->zip);
	writer->zip = NULL;
	writer->parts[writer->count - 1].size_bytes = sum.size_bytes;
	writer->parts[writer->count - 1].sha256 = sum.sha256;
	return 0;
}

/* Returns whether one more entry of this size fits, together with the index after it. */
static bool fits(const struct part_writer *writer, size_t name_size, uint64_t size)
{
	assert(writer->zip);
	uint64_t index = spool_size(writer->index) + writer->line.size + ZIP_ENTRY_OVERHEAD +
	                 2 * strlen(PART_INDEX_NAME);
	return zip_writer_entries(writer->zip) + 2 <= writer->entries_max &&
	       zip_writer_size(writer->zip) + ZIP_ENTRY_OVERHEAD + 2 * name_size + size + index <=
	           writer->bytes_max;
}

static int index_line(struct part_writer *writer, const struct part_entry *entry,
                      struct error *error)
{
	buf_clear(&writer->line);
	part_index_line(entry, &writer->line);
	buf_add_byte(&writer->line, '\n');
	return buf_check(&writer->line) < 0 ? no_memory(error) : 0;
}

/* Begins the entry, in a new part if necessary. */
static int begin_entry(struct part_writer *writer, const struct part_entry *entry, uint64_t size,
                       struct error *error)
{
	if (writer->failed || writer->finished || entry->sequence < 1 ||
	    (writer->count > 0 && entry->sequence <= writer->parts[writer->count - 1].last_sequence))
		return error_cause(error, ERR_USAGE, "content part: entries out of order");
	char name[ZIP_NAME_MAX + 1];
	part_entry_name(entry, name);
	int result = index_line(writer, entry, error);
	bool is_room = writer->zip && fits(writer, strlen(name), size);
	if (!result && writer->zip && !is_room)
		result = close_part(writer, error);
	if (!result && !is_room)
		result = open_part(writer, entry->sequence, error);
	if (!result && !is_room)
		result = index_line(writer, entry, error);
	if (!result && !is_room && !fits(writer, strlen(name), size))
		result = error_cause(error, ERR_TOO_LARGE,
		                     "the content of event %" PRId64 " is too large for a content part",
		                     entry->sequence);
	return result < 0 ? result : zip_entry_begin(writer->zip, name, error);
}

static int end_entry(struct part_writer *writer, const struct part_entry *entry, uint64_t size,
                     struct error *error)
{
	assert(writer->zip && writer->count >= 1);
	struct zip_sum sum;
	int result = zip_entry_end(writer->zip, &sum, error);
	if (result < 0)
		return result;
	if (sum.size_bytes != size || !sha256_equal(&sum.sha256, &entry->hash))
		return error_cause(error, ERR_CORRUPT,
		                   "the content of event %" PRId64 " does not match its hash",
		                   entry->sequence);
	result = spool_add(writer->index, buf_slice(&writer->line), error);
	if (result < 0)
		return result;
	assert(entry->sequence > writer->parts[writer->count - 1].last_sequence);
	writer->parts[writer->count - 1].last_sequence = entry->sequence;
	return 0;
}

int part_writer_add(struct part_writer *writer, const struct part_entry *entry,
                    struct slice content, struct error *error)
{
	int result = begin_entry(writer, entry, content.size, error);
	if (!result)
		result = zip_entry_write(writer->zip, content.data, content.size, error);
	if (!result)
		result = end_entry(writer, entry, content.size, error);
	writer->failed |= result < 0;
	return result;
}

static int copy_file(struct part_writer *writer, int fd, uint64_t size, struct error *error)
{
	uint8_t chunk[CHUNK_SIZE];
	int result = 0;
	for (uint64_t offset = 0; offset < size && !result;) {
		size_t step = size - offset < sizeof chunk ? (size_t)(size - offset) : sizeof chunk;
		if (!file_read_at(fd, chunk, step, offset))
			return error_cause(error, ERR_IO, "read content: %s", strerror(errno));
		result = zip_entry_write(writer->zip, chunk, step, error);
		offset += step;
	}
	return result;
}

int part_writer_add_file(struct part_writer *writer, const struct part_entry *entry, int fd,
                         struct error *error)
{
	struct stat facts;
	int result = 0;
	if (fstat(fd, &facts) < 0 || !S_ISREG(facts.st_mode))
		result = error_cause(error, ERR_IO, "the content is not a regular file");
	uint64_t size = !result ? (uint64_t)facts.st_size : 0;
	if (!result)
		result = begin_entry(writer, entry, size, error);
	if (!result)
		result = copy_file(writer, fd, size, error);
	if (!result)
		result = end_entry(writer, entry, size, error);
	writer->failed |= result < 0;
	return result;
}

int part_writer_finish(struct part_writer *writer, const struct part_facts **ret_parts,
                       size_t *ret_count, struct error *error)
{
	if (writer->failed)
		return error_cause(error, ERR_USAGE, "content part: finished after a failure");
	int result = writer->zip ? close_part(writer, error) : 0;
	if (result < 0) {
		writer->failed = true;
		return result;
	}
	writer->finished = true;
	*ret_parts = writer->parts;
	*ret_count = writer->count;
	return 0;
}

void part_writer_free(struct part_writer *writer)
{
	if (!writer)
		return;
	zip_writer_free(writer->zip);
	for (size_t i = 0; i < writer->count && !writer->finished; i++) {
		char *path = part_path(writer, writer->parts[i].name);
		if (path)
			unlink(path);
		free(path);
	}
	spool_free(writer->index);
	buf_free(&writer->line);
	free(writer->parts);
	free((char *)writer->head.certification_id);
	free((char *)writer->head.channel_id);
	free(writer->directory);
	free(writer);
}
