#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/gzip.h"
#include "archive/zip_shape.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/spool.h"

#define BUFFER_SIZE ((size_t)128 * 1024)

struct zip_writer {
	int fd;
	char *path;
	bool finished;
	bool failed;
	bool entry_open;
	uint64_t bytes_max;
	uint32_t entries_max;

	uint64_t offset; /* offset of the next byte, including buffered ones */
	size_t buffered;
	uint8_t *buffer;

	struct zip_entry entry; /* the open entry; its name is in name_text */
	char name_text[ZIP_NAME_MAX + 1];
	uint64_t content_start;
	struct digest_stream *digest; /* of the open entry */

	uint32_t entries;
	struct spool *directory;

	/* Write-back was started up to `sent`, and is complete up to `written_back`. */
	uint64_t sent;
	uint64_t written_back;
};

static int write_at(struct zip_writer *writer, const void *data, size_t size, uint64_t offset,
                    struct error *error)
{
	if (file_write_at(writer->fd, slice_make(data, size), offset))
		return 0;
	writer->failed = true;
	return file_fail(error, "writing", writer->path);
}

/* Starts write-back of a large file while it grows. Otherwise its final sync would delay those of
 * other files. One chunk is written back while the next one is produced. */
static int write_back(struct zip_writer *writer, uint64_t end, struct error *error)
{
	if (end - writer->sent < DURABLE_CHUNK)
		return 0;
	bool sent =
		durable_begin_write_out(writer->fd, (off_t)writer->sent, (off_t)(end - writer->sent));
	if (sent && writer->sent > writer->written_back)
		sent = durable_write_out(writer->fd, (off_t)writer->written_back,
		                         (off_t)(writer->sent - writer->written_back));
	if (!sent) {
		writer->failed = true;
		return file_fail(error, "writing out", writer->path);
	}
	writer->written_back = writer->sent;
	writer->sent = end;
	return 0;
}

static int flush(struct zip_writer *writer, struct error *error)
{
	assert(writer->buffered <= BUFFER_SIZE && writer->buffered <= writer->offset);
	size_t size = writer->buffered;
	writer->buffered = 0;
	int result = write_at(writer, writer->buffer, size, writer->offset - size, error);
	return result ? result : write_back(writer, writer->offset, error);
}

static int put(struct zip_writer *writer, const void *data, size_t size, struct error *error)
{
	if (writer->buffered + size > BUFFER_SIZE) {
		int result = flush(writer, error);
		if (result < 0)
			return result;
	}
	int result = 0;
	if (size >= BUFFER_SIZE) {
		result = write_at(writer, data, size, writer->offset, error);
		if (!result)
			result = write_back(writer, writer->offset + size, error);
	} else if (size > 0) {
		memcpy(writer->buffer + writer->buffered, data, size);
		writer->buffered += size;
	}
	assert(writer->buffered <= BUFFER_SIZE);
	writer->offset += size;
	return result;
}

/* Makes the buffer of the central directory, which spills into a file in the same directory. */
static struct spool *make_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *place = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	struct spool *directory = place ? spool_make(place) : NULL;
	free(place);
	return directory;
}

int zip_create(const char *path, uint64_t bytes_max, uint32_t entries_max,
               struct zip_writer **ret_writer, struct error *error)
{
	struct zip_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return error_cause(error, ERR_NO_MEMORY, "zip writer");
	writer->fd = -1;
	writer->bytes_max = bytes_max < ZIP_BYTES_MAX ? bytes_max : ZIP_BYTES_MAX;
	writer->entries_max = entries_max < ZIP_ENTRIES_MAX ? entries_max : ZIP_ENTRIES_MAX;
	writer->path = strdup(path);
	writer->directory = make_directory(path);
	writer->buffer = malloc(BUFFER_SIZE);
	writer->digest = digest_begin();
	if (!writer->path || !writer->directory || !writer->buffer || !writer->digest) {
		zip_writer_free(writer);
		return error_cause(error, ERR_NO_MEMORY, "zip writer");
	}
	writer->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (writer->fd < 0) {
		int result = file_fail(error, "making", path);
		zip_writer_free(writer);
		return result;
	}
	*ret_writer = writer;
	return 0;
}

uint64_t zip_writer_size(const struct zip_writer *writer)
{
	return writer->offset + spool_size(writer->directory) + ZIP_END_SIZE;
}

uint32_t zip_writer_entries(const struct zip_writer *writer)
{
	return writer->entries;
}

static int too_large(struct zip_writer *writer, struct error *error)
{
	writer->failed = true;
	return error_cause(error, ERR_TOO_LARGE,
	                   "%s would exceed its limit of %llu bytes and %u entries", writer->path,
	                   (unsigned long long)writer->bytes_max, writer->entries_max);
}

int zip_entry_begin(struct zip_writer *writer, const char *name, struct error *error)
{
	struct slice text = slice_of(name);
	if (writer->failed || writer->finished || writer->entry_open || !zip_name_allowed(text)) {
		writer->failed = true;
		return error_cause(error, ERR_USAGE, "zip entry %s cannot be opened", name);
	}
	if (writer->entries >= writer->entries_max ||
	    zip_writer_size(writer) + ZIP_ENTRY_OVERHEAD + 2 * text.size > writer->bytes_max)
		return too_large(writer, error);
	assert(text.size < sizeof writer->name_text);
	memcpy(writer->name_text, name, text.size + 1);
	writer->entry = (struct zip_entry){.name = slice_make(writer->name_text, text.size)};
	writer->entry_open = true;
	/* Size and CRC are unknown yet; the header is rewritten at the end of the entry. */
	uint8_t header[ZIP_LOCAL_SIZE] = {0};
	int result = put(writer, header, sizeof header, error);
	if (!result)
		result = put(writer, name, text.size, error);
	writer->content_start = writer->entry.offset = writer->offset;
	return result;
}

int zip_entry_write(struct zip_writer *writer, const void *data, size_t size, struct error *error)
{
	if (writer->failed || !writer->entry_open)
		return error_cause(error, ERR_USAGE, "no zip entry is open");
	if (size > writer->bytes_max ||
	    zip_writer_size(writer) + ZIP_CENTRAL_SIZE + writer->entry.name.size + size >
	        writer->bytes_max)
		return too_large(writer, error);
	writer->entry.crc = gzip_crc32(writer->entry.crc, data, size);
	digest_add(writer->digest, data, size);
	return put(writer, data, size, error);
}

static int patch_header(struct zip_writer *writer, struct error *error)
{
	uint8_t header[ZIP_LOCAL_SIZE];
	zip_local_header(&writer->entry, header);
	uint64_t offset = writer->content_start - writer->entry.name.size - ZIP_LOCAL_SIZE;
	uint64_t buffer_start = writer->offset - writer->buffered;
	assert(offset + sizeof header <= writer->offset);
	if (offset >= buffer_start) {
		memcpy(writer->buffer + (offset - buffer_start), header, sizeof header);
		return 0;
	}
	assert(offset + sizeof header <= buffer_start); /* else a later flush would undo it */
	return write_at(writer, header, sizeof header, offset, error);
}

int zip_entry_end(struct zip_writer *writer, struct zip_sum *ret_sum, struct error *error)
{
	if (writer->failed || !writer->entry_open)
		return error_cause(error, ERR_USAGE, "no zip entry is open");
	writer->entry_open = false;
	assert(writer->offset >= writer->content_start);
	writer->entry.size = writer->offset - writer->content_start;
	assert(writer->entry.size <= UINT32_MAX && writer->content_start <= UINT32_MAX);
	struct sha256 digest = digest_end_and_reset(writer->digest);
	int result = patch_header(writer, error);
	if (result < 0)
		return result;
	uint8_t header[ZIP_CENTRAL_SIZE];
	zip_central_header(&writer->entry, header);
	result = spool_add(writer->directory, slice_make(header, sizeof header), error);
	if (!result)
		result = spool_add(writer->directory, writer->entry.name, error);
	if (result < 0) {
		writer->failed = true;
		return result;
	}
	writer->entries++;
	if (ret_sum)
		*ret_sum = (struct zip_sum){writer->entry.size, digest};
	return 0;
}

int zip_add(struct zip_writer *writer, const char *name, struct slice content,
            struct zip_sum *ret_sum, struct error *error)
{
	int result = zip_entry_begin(writer, name, error);
	if (!result)
		result = zip_entry_write(writer, content.data, content.size, error);
	return result < 0 ? result : zip_entry_end(writer, ret_sum, error);
}

static int put_chunk(void *context, const void *data, size_t size, struct error *error)
{
	return put(context, data, size, error);
}

int zip_finish(struct zip_writer *writer, struct zip_sum *ret_sum, struct error *error)
{
	if (writer->failed || writer->finished || writer->entry_open)
		return error_cause(error, ERR_USAGE, "the zip file cannot be finished");
	uint8_t record[ZIP_END_SIZE];
	assert(writer->entries <= writer->entries_max);
	assert(writer->entries <= UINT16_MAX && writer->offset <= UINT32_MAX);
	zip_end_record(writer->entries, spool_size(writer->directory), writer->offset, record);
	struct zip_sum sum;
	int result = spool_give(writer->directory, put_chunk, writer, error);
	if (!result)
		result = put(writer, record, sizeof record, error);
	if (!result)
		result = flush(writer, error);
	if (!result && !durable_sync_open(writer->fd))
		result = file_fail(error, "syncing", writer->path);
	if (!result)
		result = zip_file_sum(writer->path, &sum, error);
	if (!result && sum.size_bytes != writer->offset)
		result = error_cause(error, ERR_CORRUPT, "%s changed while it was written", writer->path);
	if (result < 0) {
		writer->failed = true;
		return result;
	}
	writer->finished = true;
	*ret_sum = sum;
	return 0;
}

void zip_writer_free(struct zip_writer *writer)
{
	if (!writer)
		return;
	if (writer->fd >= 0) {
		close(writer->fd);
		if (!writer->finished)
			unlink(writer->path);
	}
	digest_cancel(writer->digest);
	spool_free(writer->directory);
	free(writer->buffer);
	free(writer->path);
	free(writer);
}
