/* Interface of the compressors of a gzip writer. */
#ifndef ARCHIVE_GZIP_CODEC_H
#define ARCHIVE_GZIP_CODEC_H

#include "base/buf.h"

struct gzip_codec {
	/* Returns a state, or NULL without memory. */
	void *(*make)(void);
	/* Sets the text to compress, which must stay valid until all output was taken. `end`: it ends
	 * the member. */
	void (*give)(void *state, struct slice text, bool end);
	/* Fills `chunk` with output. Returns true if there is more. */
	bool (*take)(void *state, uint8_t *chunk, size_t size, size_t *ret_size);
	/* Prepares the state for the next member. */
	void (*reset)(void *state);
	void (*free)(void *state);
	uint32_t (*crc32)(uint32_t crc, const void *data, size_t size);
};

/* Returns the ISA-L compressor; NULL: the library is not installed, or was not available when the
 * program was built (it exists for few kinds of processors). */
const struct gzip_codec *gzip_isal(void);

#endif
