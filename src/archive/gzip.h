/* Text compressed into gzip members (RFC 1952), as the files of an archive are: by ISA-L where it
 * is, which takes a fifth of zlib's time for such lines, else by zlib. The bytes differ, the text
 * does not. What is read may be anybody's, and is left to zlib.
 *
 * A writer belongs to one thread at a time. */
#ifndef ARCHIVE_GZIP_H
#define ARCHIVE_GZIP_H

#include "base/buf.h"
#include "base/error.h"

enum gzip_by {
	GZIP_BY_FASTEST, /* of those that are there */
	GZIP_BY_ZLIB,
};

struct gzip_writer;

/* Takes compressed bytes; not 0 ends the call that they come of. */
typedef int gzip_sink(void *context, const void *data, size_t size, struct error *error);

/* ERR_NO_MEMORY. `sink` is for all that is written. */
int gzip_writer_make(enum gzip_by by, gzip_sink *sink, void *context,
                     struct gzip_writer **ret_writer, struct error *error) MUST_CHECK;
/* One member after the other: adds to the open one, or begins it. What the sink answered. */
int gzip_write(struct gzip_writer *writer, struct slice text, struct error *error) MUST_CHECK;
/* Ends the member; one of no text if nothing was written. */
int gzip_end(struct gzip_writer *writer, struct error *error) MUST_CHECK;
void gzip_writer_free(struct gzip_writer *writer); /* NULL-safe */

/* CRC-32 as gzip and ZIP have it, from 0 on. */
uint32_t gzip_crc32(uint32_t crc, const void *data, size_t size);

#endif
