/* A ZIP of one fixed shape, so that every byte of it is determined or digested.
 *
 * The shape (PKWARE APPNOTE, a small part of it): entries stored, never compressed; no extra
 * fields, comments, data descriptors or ZIP64; every time stamp 1980-01-01 00:00:00; names of
 * [A-Za-z0-9._/-]; entries contiguous from byte 0, the central directory right behind the last one
 * in the same order, the end record right behind that and last in the file. The writer produces
 * exactly this, the reader accepts nothing else.
 *
 * A writer or a reader belongs to one thread at a time. */
#ifndef ARCHIVE_ZIP_H
#define ARCHIVE_ZIP_H

#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"

#define ZIP_NAME_MAX 100
#define ZIP_ENTRIES_MAX 65534u
#define ZIP_BYTES_MAX UINT64_C(4294967295)
#define ZIP_ENTRY_OVERHEAD 76u /* bytes an entry costs beside its content and twice its name */
#define ZIP_END_SIZE 22u

struct zip_writer;

/* What was written between zip_entry_begin and zip_entry_end, or a whole finished file. */
struct zip_sum {
	uint64_t size_bytes;
	struct sha256 sha256;
};

/* Creates or empties `path` (mode 0600). bytes_max and entries_max bound the finished file; at most
 * ZIP_BYTES_MAX and ZIP_ENTRIES_MAX. ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY. */
int zip_create(const char *path, uint64_t bytes_max, uint32_t entries_max,
               struct zip_writer **ret_writer, struct error *error) MUST_CHECK;
/* One entry at a time, under a name not used before (that is the caller's affair). ERR_USAGE for a
 * name that is not allowed, ERR_TOO_LARGE for what would pass the bounds. After any failure the
 * writer can only be freed. */
int zip_entry_begin(struct zip_writer *writer, const char *name, struct error *error) MUST_CHECK;
int zip_entry_write(struct zip_writer *writer, const void *data, size_t size, struct error *error)
	MUST_CHECK;
/* ret_sum may be NULL. */
int zip_entry_end(struct zip_writer *writer, struct zip_sum *ret_sum, struct error *error)
	MUST_CHECK;
/* A whole entry. */
int zip_add(struct zip_writer *writer, const char *name, struct slice content,
            struct zip_sum *ret_sum, struct error *error) MUST_CHECK;
/* Bytes and entries of the file if it were finished now. */
uint64_t zip_writer_size(const struct zip_writer *writer);
uint32_t zip_writer_entries(const struct zip_writer *writer);
/* Writes the directory, syncs the file and digests it whole. */
int zip_finish(struct zip_writer *writer, struct zip_sum *ret_sum, struct error *error) MUST_CHECK;
/* Removes the file unless it was finished. NULL-safe. */
void zip_writer_free(struct zip_writer *writer);

struct zip_entry {
	struct slice name;
	uint64_t offset; /* of the content */
	uint64_t size;
	uint32_t crc;
};

struct zip_reader;

/* Opens and checks the whole shape (all but the content's CRCs). ERR_INVALID_EVIDENCE with the
 * place and the deviation in error->cause; ERR_IO when the file cannot be read. */
int zip_open(const char *path, struct zip_reader **ret_reader, struct error *error) MUST_CHECK;
/* The same of one that lies in a file: so many bytes from an offset. */
int zip_open_inside(const char *path, uint64_t offset, uint64_t size,
                    struct zip_reader **ret_reader, struct error *error) MUST_CHECK;
/* Which state of which file was opened. */
struct zip_identity {
	uint64_t device, file, size_bytes;
	int64_t modified_us, changed_us;
};
struct zip_identity zip_identity(const struct stat *facts);
bool zip_identity_equal(const struct zip_identity *a, const struct zip_identity *b);
/* ERR_IO: the open file is another one, or was changed since. */
int zip_check_identity(const struct zip_reader *reader, const struct zip_identity *identity,
                       struct error *error) MUST_CHECK;
uint32_t zip_count(const struct zip_reader *reader);
const struct zip_entry *zip_at(const struct zip_reader *reader, uint32_t index);
/* NULL when there is none of that name. */
const struct zip_entry *zip_find(const struct zip_reader *reader, const char *name);
/* Reads `size` bytes of the entry from `position`; all or ERR_IO. */
int zip_read(struct zip_reader *reader, const struct zip_entry *entry, uint64_t position,
             void *data, size_t size, struct error *error) MUST_CHECK;
/* Size and SHA-256 of the content; ERR_INVALID_EVIDENCE when its CRC-32 is another. */
int zip_entry_sum(struct zip_reader *reader, const struct zip_entry *entry, struct zip_sum *ret_sum,
                  struct error *error) MUST_CHECK;
/* The content whole, appended; ERR_TOO_LARGE (as ERR_INVALID_EVIDENCE) above size_max. */
int zip_entry_load(struct zip_reader *reader, const struct zip_entry *entry, size_t size_max,
                   struct buf *out, struct error *error) MUST_CHECK;
void zip_reader_free(struct zip_reader *reader); /* NULL-safe */

/* Size and SHA-256 of a file of any kind. */
int zip_file_sum(const char *path, struct zip_sum *ret_sum, struct error *error) MUST_CHECK;
/* The same of an open file, from where it stands; `path` is for the error. */
int zip_descriptor_sum(int fd, const char *path, struct zip_sum *ret_sum, struct error *error)
	MUST_CHECK;

#endif
