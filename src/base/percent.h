/* Percent-encoding (RFC 3986 section 2.1). */
#ifndef BASE_PERCENT_H
#define BASE_PERCENT_H

#include "base/buf.h"

/* Appends `text` and escapes all characters except letters, digits, "-._~" and those in `keep`. */
void buf_add_percent(struct buf *buf, struct slice text, const char *keep);
/* Decodes `text`; `data` may be the same memory. Returns false if an escape is invalid, the result
 * has a NUL or exceeds size_max bytes. */
bool percent_decode(struct slice text, char *data, size_t size_max, size_t *ret_size) MUST_CHECK;
/* As percent_decode, but allows NUL bytes. */
bool percent_decode_bytes(struct slice text, char *data, size_t size_max, size_t *ret_size);

#endif
