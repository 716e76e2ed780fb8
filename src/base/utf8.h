/* UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Returns the size, 1 to 4, of the valid character at the start of `text`, or 0. */
size_t utf8_character(struct slice text);
bool utf8_valid(struct slice text);
/* Returns the longest prefix of at most size_max bytes that does not split a character. */
struct slice utf8_cut(struct slice text, size_t size_max);
/* Returns whether valid text has U+0000 to U+001F or U+007F to U+009F. */
bool utf8_has_control(struct slice text);
/* Copies untrusted text for display: at most size - 1 bytes and a NUL, with '?' for control
 * characters and invalid bytes, and "..." at the end if it was truncated. `size` must be greater
 * than 3. */
void utf8_show(struct slice text, char *out, size_t size);
/* Replaces every invalid byte with '?'. */
void utf8_replace_invalid(char *text);

#endif
