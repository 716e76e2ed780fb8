/* Compression of text into gzip members (RFC 1952) for the files of an archive. It uses ISA-L if
 * available, which needs a fifth of zlib's time for such lines, and zlib otherwise. The compressed
 * bytes differ, the text does not. Decompression of untrusted data always uses zlib.
 *
 * A writer belongs to one thread at a time. */
#ifndef ARCHIVE_GZIP_H
#define ARCHIVE_GZIP_H

#include "base/buf.h"
#include "base/error.h"

enum gzip_by {
	GZIP_BY_FASTEST, /* the fastest available one */
	GZIP_BY_ZLIB,
};

struct gzip_writer;

/* Receives compressed bytes. A return value other than 0 ends the calling function and is returned
 * by it. */
typedef int gzip_sink(void *context, const void *data, size_t size, struct error *error);

/* Creates a writer that passes all compressed bytes to `sink`. Returns 0 or ERR_NO_MEMORY. */
int gzip_writer_make(enum gzip_by by, gzip_sink *sink, void *context,
                     struct gzip_writer **ret_writer, struct error *error) MUST_CHECK;
/* Appends text to the open member, or opens a member. Returns the result of the sink. */
int gzip_write(struct gzip_writer *writer, struct slice text, struct error *error) MUST_CHECK;
/* Ends the member. If nothing was written it is a member without text. */
int gzip_end(struct gzip_writer *writer, struct error *error) MUST_CHECK;
void gzip_writer_free(struct gzip_writer *writer); /* NULL-safe */

/* Updates a CRC-32 as used by gzip and ZIP. The initial value is 0. */
uint32_t gzip_crc32(uint32_t crc, const void *data, size_t size);

#endif
