/* The folder's own: the text of an archive's streams, block by block; of a large one inflated by a
 * thread ahead of who reads it, where that is wanted. What is read is the same. */
#ifndef VERIFY_VERIFY_TEXT_H
#define VERIFY_VERIFY_TEXT_H

#include "archive/archive_lines.h"

#define TEXT_BLOCK_SIZE ((size_t)64 * 1024)

struct text_block {
	const struct zip_entry *entry;
	uint32_t number; /* of the file in its stream, from 1 */
	size_t size;
	bool ends_file;
	int status; /* what comes behind these bytes cannot be read; then no more blocks come */
	struct error error;
	char bytes[TEXT_BLOCK_SIZE];
};

struct stream_text;

/* The files of a stream, one after the other; or, with `entry`, that one, which is not compressed.
 * `zip` is read, by pread alone, until stream_text_free. ERR_NO_MEMORY. */
int stream_text_open(struct zip_reader *zip, enum archive_stream kind,
                     const struct zip_entry *entry, bool ahead, struct stream_text **ret_text,
                     struct error *error) MUST_CHECK;
/* The next block, until the next call; NULL at the end. */
const struct text_block *stream_text_next(struct stream_text *text);
void stream_text_free(struct stream_text *text); /* NULL-safe */

#endif
