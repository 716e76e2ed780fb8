/* Base64 (RFC 4648 section 4). */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

/* The encoded size of `size` bytes, without the NUL. */
#define BASE64_SIZE(size) (((size) + 2) / 3 * 4)

/* Encodes `size` bytes. `text` must have room for BASE64_SIZE(size) and a NUL. */
void base64_encode(const void *data, size_t size, char *text);
void buf_add_base64(struct buf *buf, struct slice bytes);
/* Decodes text with complete padding or none. Returns false if it has an invalid character or
 * length, other padding, or decodes to more than size_max bytes. Ignores the unused bits of the
 * last character, which RFC 4648 section 3.5 permits. */
bool base64_decode(struct slice text, void *data, size_t size_max, size_t *ret_size) MUST_CHECK;

#endif
