/* ZIP files of one fixed shape, in which every byte is determined by the shape or covered by a
 * digest.
 *
 * The shape is a small subset of PKWARE APPNOTE. Entries are stored, never compressed. There are no
 * extra fields, comments, data descriptors or ZIP64 records. Every time is 1980-01-01 00:00:00.
 * Names consist of [A-Za-z0-9._/-]. Entries are contiguous from byte 0. The central directory
 * follows the last entry and has the same order. The end record follows the directory and ends the
 * file. The writer produces exactly this shape, and the reader accepts nothing else.
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
#define ZIP_ENTRY_OVERHEAD 76u /* bytes per entry in addition to its content and twice its name */
#define ZIP_END_SIZE 22u

struct zip_writer;

/* Size and digest of an entry or of a finished file. */
struct zip_sum {
	uint64_t size_bytes;
	struct sha256 sha256;
};

/* Creates or truncates `path` (mode 0600). bytes_max and entries_max limit the finished file and
 * are at most ZIP_BYTES_MAX and ZIP_ENTRIES_MAX. Returns ERR_IO, ERR_NO_SPACE or ERR_NO_MEMORY. */
int zip_create(const char *path, uint64_t bytes_max, uint32_t entries_max,
               struct zip_writer **ret_writer, struct error *error) MUST_CHECK;
/* Opens an entry; only one can be open. The caller ensures that names are unique. Returns ERR_USAGE
 * for a name that is not allowed, ERR_TOO_LARGE if the file would exceed its limits. After any
 * failure the writer can only be freed. */
int zip_entry_begin(struct zip_writer *writer, const char *name, struct error *error) MUST_CHECK;
int zip_entry_write(struct zip_writer *writer, const void *data, size_t size, struct error *error)
	MUST_CHECK;
/* ret_sum may be NULL. */
int zip_entry_end(struct zip_writer *writer, struct zip_sum *ret_sum, struct error *error)
	MUST_CHECK;
/* Adds a whole entry. */
int zip_add(struct zip_writer *writer, const char *name, struct slice content,
            struct zip_sum *ret_sum, struct error *error) MUST_CHECK;
/* Return the bytes and entries that the file would have if it were finished now. */
uint64_t zip_writer_size(const struct zip_writer *writer);
uint32_t zip_writer_entries(const struct zip_writer *writer);
/* Writes the directory, syncs the file and computes the digest of the whole file. */
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

/* Opens a file and checks the whole shape except the CRCs of the contents. Returns
 * ERR_INVALID_EVIDENCE with the position and the deviation in error->cause, or ERR_IO if the file
 * cannot be read. */
int zip_open(const char *path, struct zip_reader **ret_reader, struct error *error) MUST_CHECK;
/* Does the same for a ZIP file inside another file, given by its offset and its size in bytes. */
int zip_open_inside(const char *path, uint64_t offset, uint64_t size,
                    struct zip_reader **ret_reader, struct error *error) MUST_CHECK;
/* Identifies an opened file and its state. */
struct zip_identity {
	uint64_t device, file, size_bytes;
	int64_t modified_us, changed_us;
};
struct zip_identity zip_identity(const struct stat *facts);
bool zip_identity_equal(const struct zip_identity *a, const struct zip_identity *b);
/* Returns ERR_IO if the open file is a different one or was changed. */
int zip_check_identity(const struct zip_reader *reader, const struct zip_identity *identity,
                       struct error *error) MUST_CHECK;
uint32_t zip_count(const struct zip_reader *reader);
const struct zip_entry *zip_at(const struct zip_reader *reader, uint32_t index);
/* Returns the entry with that name, or NULL. */
const struct zip_entry *zip_find(const struct zip_reader *reader, const char *name);
/* Reads exactly `size` bytes of the entry from `position`, or returns ERR_IO. */
int zip_read(struct zip_reader *reader, const struct zip_entry *entry, uint64_t position,
             void *data, size_t size, struct error *error) MUST_CHECK;
/* Computes size and SHA-256 of the content. Returns ERR_INVALID_EVIDENCE if its CRC-32 is wrong. */
int zip_entry_sum(struct zip_reader *reader, const struct zip_entry *entry, struct zip_sum *ret_sum,
                  struct error *error) MUST_CHECK;
/* Appends the whole content. Returns ERR_INVALID_EVIDENCE if it has more than size_max bytes. */
int zip_entry_load(struct zip_reader *reader, const struct zip_entry *entry, size_t size_max,
                   struct buf *out, struct error *error) MUST_CHECK;
void zip_reader_free(struct zip_reader *reader); /* NULL-safe */

/* Computes size and SHA-256 of a file of any kind. */
int zip_file_sum(const char *path, struct zip_sum *ret_sum, struct error *error) MUST_CHECK;
/* Does the same for an open file, from its current offset. `path` is only used in error messages.
 */
int zip_open_file_sum(int fd, const char *path, struct zip_sum *ret_sum, struct error *error)
	MUST_CHECK;

#endif
