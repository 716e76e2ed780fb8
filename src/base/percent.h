/* Percent-encoding (RFC 3986 section 2.1). */
#ifndef BASE_PERCENT_H
#define BASE_PERCENT_H

#include "base/buf.h"

/* Escapes all but letters, digits, "-._~" and the characters of `keep`. */
void buf_add_percent(struct buf *buf, struct slice text, const char *keep);
/* `data` may be the text's own. False: an escape is broken, there is a NUL, or it is more than
 * size_max bytes. */
bool percent_decode(struct slice text, char *data, size_t size_max, size_t *ret_size) MUST_CHECK;
/* The same of bytes, of which a NUL may be one. */
bool percent_decode_bytes(struct slice text, char *data, size_t size_max, size_t *ret_size);

#endif
