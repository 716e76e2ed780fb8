/* The text of an archive's streams in blocks. Optionally a thread decompresses a large file ahead
 * of the reader, with the same result. Internal to src/verify. */
#ifndef VERIFY_STREAM_TEXT_H
#define VERIFY_STREAM_TEXT_H

#include "archive/archive_lines.h"

#define TEXT_BLOCK_SIZE ((size_t)64 * 1024)

struct text_block {
	const struct zip_entry *entry;
	uint32_t number; /* number of the file in its stream, from 1 */
	size_t size;
	bool ends_file;
	int status; /* error after these bytes; then there are no more blocks */
	struct error error;
	char bytes[TEXT_BLOCK_SIZE];
};

struct stream_text;

/* Opens the files of a stream, one after the other, or the single uncompressed `entry` if it is not
 * NULL. `zip` is read with pread only, until stream_text_free. `ahead`: a thread may decompress
 * large files. Returns 0 or ERR_NO_MEMORY. */
int stream_text_open(struct zip_reader *zip, enum archive_stream kind,
                     const struct zip_entry *entry, bool ahead, struct stream_text **ret_text,
                     struct error *error) MUST_CHECK;
/* Returns the next block, valid until the next call; NULL at the end. */
const struct text_block *stream_text_next(struct stream_text *text);
void stream_text_free(struct stream_text *text); /* NULL-safe */

#endif
