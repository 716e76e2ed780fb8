/* Base64 (RFC 4648 section 4). */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

/* What `size` bytes become, without a NUL. */
#define BASE64_SIZE(size) (((size) + 2) / 3 * 4)

/* `text` has room for BASE64_SIZE(size) and a NUL. */
void base64_encode(const void *data, size_t size, char *text);
void buf_add_base64(struct buf *buf, struct slice bytes);
/* With its padding or without. False: another character, or more than size_max bytes. */
bool base64_decode(struct slice text, void *data, size_t size_max, size_t *ret_size) MUST_CHECK;

#endif
