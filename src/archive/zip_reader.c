/* Reading of ZIP files of the fixed form: every byte that is not content must be as the writer
 * writes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "archive/zip_shape.h"
#include "base/file.h"

#define CHUNK_SIZE ((size_t)64 * 1024)
#define AHEAD_SIZE ((size_t)8 * 1024) /* read-ahead for headers, which may be far apart */

struct zip_reader {
	int fd;
	uint64_t start; /* offset in the file */
	uint64_t size;
	char *directory; /* the names in `entries` point into it */
	struct zip_entry *entries;
	const struct zip_entry **by_name;
	uint32_t count;
	/* The chunk that was read last; small entries are adjacent. */
	uint8_t *chunk; /* CHUNK_SIZE */
	uint64_t chunk_start;
	size_t chunk_size;
};

static uint32_t get16(const char *at)
{
	return (uint32_t)(uint8_t)at[0] | (uint32_t)(uint8_t)at[1] << 8;
}

static uint32_t get32(const char *at)
{
	return get16(at) | get16(at + 2) << 16;
}

static bool read_at(const struct zip_reader *reader, void *data, size_t size, uint64_t offset)
{
	return file_read_at(reader->fd, data, size, reader->start + offset);
}

static int read_error(struct error *error, uint64_t offset)
{
	return errno ? error_cause(error, ERR_IO, "read at byte %llu: %s", (unsigned long long)offset,
	                           strerror(errno))
	             : error_cause(error, ERR_INVALID_EVIDENCE, "the file ends before byte %llu",
	                           (unsigned long long)offset);
}

/* Returns bytes of the file, at most CHUNK_SIZE, valid until the next call. If they must be read,
 * up to `ahead` bytes are read in total. Returns NULL with errno as file_read_at leaves it. */
static const uint8_t *read_chunk(struct zip_reader *reader, uint64_t offset, size_t size,
                                 size_t ahead)
{
	if (offset >= reader->chunk_start && offset + size <= reader->chunk_start + reader->chunk_size)
		return reader->chunk + (offset - reader->chunk_start);
	uint64_t left = offset < reader->size ? reader->size - offset : 0;
	size_t wanted = size > ahead ? size : ahead;
	if (wanted > left)
		wanted = size > left ? size : (size_t)left;
	reader->chunk_size = 0;
	if (!read_at(reader, reader->chunk, wanted, offset))
		return NULL;
	reader->chunk_start = offset;
	reader->chunk_size = wanted;
	return reader->chunk;
}

static int deviation(struct error *error, const char *what, uint64_t offset, const void *expected,
                     const void *found, size_t size)
{
	const uint8_t *want = expected, *got = found;
	size_t i = 0;
	while (i + 1 < size && want[i] == got[i])
		i++;
	return error_cause(error, ERR_INVALID_EVIDENCE,
	                   "%s: byte %llu of the file is %02x, must be %02x", what,
	                   (unsigned long long)offset + i, got[i], want[i]);
}

/* Checks the end record and computes the position of the directory. */
static int read_end(struct zip_reader *reader, uint64_t *ret_directory, struct error *error)
{
	char found[ZIP_END_SIZE];
	uint8_t expected[ZIP_END_SIZE];
	if (reader->size < ZIP_END_SIZE || reader->size > ZIP_BYTES_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "a file of %llu bytes cannot be a ZIP file of this format",
		                   (unsigned long long)reader->size);
	uint64_t end = reader->size - ZIP_END_SIZE;
	if (!read_at(reader, found, sizeof found, end))
		return read_error(error, end);
	uint32_t count = get16(found + 10);
	uint64_t size = get32(found + 12);
	if (size > end || size < (uint64_t)count * (ZIP_CENTRAL_SIZE + 1) ||
	    size > (uint64_t)count * (ZIP_CENTRAL_SIZE + ZIP_NAME_MAX) || count > ZIP_ENTRIES_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "ZIP end record: %u entries in a directory of %llu bytes is not "
		                   "possible",
		                   count, (unsigned long long)size);
	zip_end_record(count, size, end - size, expected);
	if (memcmp(found, expected, sizeof found) != 0)
		return deviation(error, "ZIP end record", end, expected, found, sizeof found);
	reader->count = count;
	*ret_directory = end - size;
	return 0;
}

/* Checks a record of the directory and its local header. `position` is the expected offset of the
 * entry, `at` the record. */
static int read_entry(struct zip_reader *reader, struct zip_entry *entry, const char *at,
                      size_t left, uint64_t at_offset, uint64_t position, uint64_t directory,
                      struct error *error)
{
	size_t name_size = left < ZIP_CENTRAL_SIZE ? 0 : get16(at + 28);
	struct slice name = slice_make(at + ZIP_CENTRAL_SIZE, name_size);
	if (left < ZIP_CENTRAL_SIZE || name_size > left - ZIP_CENTRAL_SIZE || !zip_name_allowed(name))
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "ZIP directory: the name in the record at byte %llu is not allowed",
		                   (unsigned long long)at_offset);
	*entry = (struct zip_entry){name, position + ZIP_LOCAL_SIZE + name_size, get32(at + 20),
	                            get32(at + 16)};
	char what[ZIP_NAME_MAX + 64];
	uint8_t expected[ZIP_CENTRAL_SIZE];
	zip_central_header(entry, expected);
	bool is_exact = memcmp(at, expected, ZIP_CENTRAL_SIZE) == 0;
	if (!is_exact || entry->offset + entry->size > directory)
		snprintf(what, sizeof what, "ZIP directory record of %.*s", (int)name.size, name.data);
	if (!is_exact)
		return deviation(error, what, at_offset, expected, at, ZIP_CENTRAL_SIZE);
	if (entry->offset + entry->size > directory)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "%s: the entry overlaps the central directory", what);

	uint8_t local_expected[ZIP_LOCAL_SIZE + ZIP_NAME_MAX];
	zip_local_header(entry, local_expected);
	memcpy(local_expected + ZIP_LOCAL_SIZE, name.data, name_size);
	size_t size = ZIP_LOCAL_SIZE + name_size;
	const uint8_t *local = read_chunk(reader, position, size, AHEAD_SIZE);
	if (!local)
		return read_error(error, position);
	if (memcmp(local, local_expected, size) == 0)
		return 0;
	snprintf(what, sizeof what, "ZIP header of %.*s", (int)name.size, name.data);
	return deviation(error, what, position, local_expected, local, size);
}

static int compare_names(const void *a, const void *b)
{
	const struct zip_entry *x = *(const struct zip_entry *const *)a;
	const struct zip_entry *y = *(const struct zip_entry *const *)b;
	size_t size = x->name.size < y->name.size ? x->name.size : y->name.size;
	int order = memcmp(x->name.data, y->name.data, size);
	return order ? order : (x->name.size > y->name.size) - (x->name.size < y->name.size);
}

static int sort_names(struct zip_reader *reader, struct error *error)
{
	for (uint32_t i = 0; i < reader->count; i++)
		reader->by_name[i] = &reader->entries[i];
	qsort(reader->by_name, reader->count, sizeof *reader->by_name, compare_names);
	for (uint32_t i = 1; i < reader->count; i++)
		if (compare_names(&reader->by_name[i - 1], &reader->by_name[i]) == 0)
			return error_cause(error, ERR_INVALID_EVIDENCE, "two ZIP entries are named %.*s",
			                   (int)reader->by_name[i]->name.size, reader->by_name[i]->name.data);
	return 0;
}

static int read_directory(struct zip_reader *reader, struct error *error)
{
	uint64_t directory = 0, position = 0;
	int result = read_end(reader, &directory, error);
	if (result < 0)
		return result;
	size_t size = (size_t)(reader->size - ZIP_END_SIZE - directory), done = 0;
	reader->directory = malloc(size + 1);
	reader->entries = calloc((size_t)reader->count + 1, sizeof *reader->entries);
	reader->by_name = calloc((size_t)reader->count + 1, sizeof *reader->by_name);
	if (!reader->directory || !reader->entries || !reader->by_name)
		return error_cause(error, ERR_NO_MEMORY, "zip directory");
	if (!read_at(reader, reader->directory, size, directory))
		return read_error(error, directory);
	for (uint32_t i = 0; i < reader->count; i++) {
		struct zip_entry *entry = &reader->entries[i];
		result = read_entry(reader, entry, reader->directory + done, size - done, directory + done,
		                    position, directory, error);
		if (result < 0)
			return result;
		done += ZIP_CENTRAL_SIZE + entry->name.size;
		position = entry->offset + entry->size;
	}
	if (done != size || position != directory)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "ZIP: bytes %llu to %llu belong to no entry",
		                   (unsigned long long)(done != size ? directory + done : position),
		                   (unsigned long long)(done != size ? directory + size : directory));
	return sort_names(reader, error);
}

static int open_file(struct zip_reader *reader, const char *path, struct stat *ret_facts,
                     struct error *error)
{
	reader->chunk = malloc(CHUNK_SIZE);
	reader->fd = file_open_to_read(path, 0, ret_facts);
	if (!reader->chunk)
		return error_cause(error, ERR_NO_MEMORY, "zip reader");
	if (reader->fd < 0)
		return error_cause(error, ERR_IO, "open: %s", strerror(errno));
	return S_ISREG(ret_facts->st_mode) ? OK : error_cause(error, ERR_IO, "not a regular file");
}

/* Opens a ZIP file inside a file. `size` NULL: up to the end of the file. */
static int open_from(const char *path, uint64_t offset, const uint64_t *size,
                     struct zip_reader **ret_reader, struct error *error)
{
	struct stat facts;
	struct zip_reader *reader = calloc(1, sizeof *reader);
	if (!reader)
		return error_cause(error, ERR_NO_MEMORY, "zip reader");
	int result = open_file(reader, path, &facts, error);
	if (!result) {
		reader->start = offset;
		reader->size = size ? *size : (uint64_t)facts.st_size;
		result = read_directory(reader, error);
	}
	if (result < 0) {
		zip_reader_free(reader);
		return result;
	}
	*ret_reader = reader;
	return 0;
}

int zip_open(const char *path, struct zip_reader **ret_reader, struct error *error)
{
	return open_from(path, 0, NULL, ret_reader, error);
}

int zip_open_inside(const char *path, uint64_t offset, uint64_t size,
                    struct zip_reader **ret_reader, struct error *error)
{
	return open_from(path, offset, &size, ret_reader, error);
}

struct zip_identity zip_identity(const struct stat *facts)
{
	return (struct zip_identity){
		facts->st_dev, facts->st_ino, (uint64_t)facts->st_size,
		facts->st_mtim.tv_sec * INT64_C(1000000) + facts->st_mtim.tv_nsec / 1000,
		facts->st_ctim.tv_sec * INT64_C(1000000) + facts->st_ctim.tv_nsec / 1000};
}

bool zip_identity_equal(const struct zip_identity *a, const struct zip_identity *b)
{
	return a->device == b->device && a->file == b->file && a->size_bytes == b->size_bytes &&
	       a->modified_us == b->modified_us && a->changed_us == b->changed_us;
}

int zip_check_identity(const struct zip_reader *reader, const struct zip_identity *identity,
                       struct error *error)
{
	struct stat facts;
	if (fstat(reader->fd, &facts) < 0)
		return error_cause(error, ERR_IO, "fstat: %s", strerror(errno));
	struct zip_identity found = zip_identity(&facts);
	if (!zip_identity_equal(&found, identity))
		return error_cause(error, ERR_IO, "the file was replaced or changed while it was checked");
	return 0;
}

uint32_t zip_count(const struct zip_reader *reader)
{
	return reader->count;
}

const struct zip_entry *zip_at(const struct zip_reader *reader, uint32_t index)
{
	return &reader->entries[index];
}

const struct zip_entry *zip_find(const struct zip_reader *reader, const char *name)
{
	struct zip_entry wanted = {.name = slice_of(name)};
	const struct zip_entry *key = &wanted;
	const struct zip_entry **found =
		bsearch(&key, reader->by_name, reader->count, sizeof *reader->by_name, compare_names);
	return found ? *found : NULL;
}

int zip_read(struct zip_reader *reader, const struct zip_entry *entry, uint64_t position,
             void *data, size_t size, struct error *error)
{
	if (position > entry->size || size > entry->size - position)
		return error_cause(error, ERR_INVALID_EVIDENCE, "reading beyond the entry");
	if (!read_at(reader, data, size, entry->offset + position))
		return read_error(error, entry->offset + position);
	return 0;
}

static int sum_small(struct zip_reader *reader, const struct zip_entry *entry, uLong *crc,
                     struct sha256 *ret_sum, struct error *error)
{
	size_t size = (size_t)entry->size;
	const uint8_t *content = read_chunk(reader, entry->offset, size, CHUNK_SIZE);
	if (!content)
		return read_error(error, entry->offset);
	*crc = crc32_z(*crc, content, size);
	*ret_sum = sha256_of(content, size);
	return 0;
}

static int sum_large(struct zip_reader *reader, const struct zip_entry *entry, uLong *crc,
                     struct sha256 *ret_sum, struct error *error)
{
	struct digest_stream *digest = digest_begin();
	if (!digest)
		return error_cause(error, ERR_NO_MEMORY, "digest");
	for (uint64_t position = 0; position < entry->size;) {
		uint64_t left = entry->size - position;
		size_t size = left < CHUNK_SIZE ? (size_t)left : CHUNK_SIZE;
		const uint8_t *content = read_chunk(reader, entry->offset + position, size, size);
		if (!content) {
			digest_cancel(digest);
			return read_error(error, entry->offset + position);
		}
		*crc = crc32_z(*crc, content, size);
		digest_add(digest, content, size);
		position += size;
	}
	*ret_sum = digest_end(digest);
	return 0;
}

int zip_entry_sum(struct zip_reader *reader, const struct zip_entry *entry, struct zip_sum *ret_sum,
                  struct error *error)
{
	uLong crc = crc32(0, NULL, 0);
	struct sha256 sum;
	int result = entry->size <= CHUNK_SIZE ? sum_small(reader, entry, &crc, &sum, error)
	                                       : sum_large(reader, entry, &crc, &sum, error);
	if (result < 0)
		return result;
	if (crc != entry->crc)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the CRC-32 of its bytes is %08lx, the ZIP header says %08x",
		                   (unsigned long)crc, entry->crc);
	*ret_sum = (struct zip_sum){entry->size, sum};
	return 0;
}

int zip_entry_load(struct zip_reader *reader, const struct zip_entry *entry, size_t size_max,
                   struct buf *out, struct error *error)
{
	if (entry->size > size_max)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the entry has %llu bytes, this format allows %zu",
		                   (unsigned long long)entry->size, size_max);
	char *to = buf_extend(out, (size_t)entry->size);
	if (!to)
		return error_cause(error, ERR_NO_MEMORY, "zip entry");
	return zip_read(reader, entry, 0, to, (size_t)entry->size, error);
}

void zip_reader_free(struct zip_reader *reader)
{
	if (!reader)
		return;
	if (reader->fd >= 0)
		close(reader->fd);
	free(reader->chunk);
	free(reader->by_name);
	free(reader->entries);
	free(reader->directory);
	free(reader);
}

int zip_file_sum(const char *path, struct zip_sum *ret_sum, struct error *error)
{
	struct stat facts;
	DESCRIPTOR_AUTO int fd = file_open_to_read(path, 0, &facts);
	if (fd < 0)
		return error_cause(error, ERR_IO, "open %s: %s", path, strerror(errno));
	return zip_open_file_sum(fd, path, ret_sum, error);
}

int zip_open_file_sum(int fd, const char *path, struct zip_sum *ret_sum, struct error *error)
{
	struct zip_sum sum;
	int result = file_digest(fd, path, &sum.size_bytes, &sum.sha256, error);
	if (!result)
		*ret_sum = sum;
	return result;
}
