/* What compresses for a gzip writer. */
#ifndef ARCHIVE_GZIP_CODEC_H
#define ARCHIVE_GZIP_CODEC_H

#include "base/buf.h"

struct gzip_codec {
	/* NULL without memory. */
	void *(*make)(void);
	/* What is compressed next; it has to stay until all was taken. `end`: of the member. */
	void (*give)(void *state, struct slice text, bool end);
	/* Fills `chunk`; true: there is more. */
	bool (*take)(void *state, uint8_t *chunk, size_t size, size_t *ret_size);
	/* For the next member. */
	void (*reset)(void *state);
	void (*free)(void *state);
	uint32_t (*crc32)(uint32_t crc, const void *data, size_t size);
};

/* ISA-L; NULL: it is not here, or was not where the program was built (it is made for few kinds of
 * processors). */
const struct gzip_codec *gzip_isal(void);

#endif
