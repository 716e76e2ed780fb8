/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* The size, 1 to 4, of the valid character at the start of text; 0 when there is none. */
size_t utf8_character(struct slice text);
bool utf8_valid(struct slice text);
/* The longest start of text that has at most size_max bytes and cuts no character. */
struct slice utf8_cut(struct slice text, size_t size_max);
/* U+0000 to U+001F, or U+007F to U+009F, in text that is valid. */
bool utf8_has_control(struct slice text);
/* Copies a stranger's text, to be shown in a sentence: at most size - 1 bytes and NUL, '?' for
 * control characters and for bytes of no valid character, "..." at the end when there was more.
 * size > 3. */
void utf8_show(struct slice text, char *out, size_t size);
/* Puts '?' for every byte that is part of no valid character. */
void utf8_mend(char *text);

#endif
