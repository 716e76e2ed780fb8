/* Internal to base: parts of the canonical form (RFC 8785). */
#ifndef BASE_JSON_CANONICAL_H
#define BASE_JSON_CANONICAL_H

#include "base/buf.h"

/* Compares valid UTF-8 names by UTF-16 code units (RFC 8785 section 3.2.3). Returns a value below,
 * equal to or above 0. */
int json_compare_names(struct slice a, struct slice b);

/* Appends a number in the form of ECMAScript's Number::toString (RFC 8785 section 3.2.2.3). */
void json_add_number(struct buf *out, double number);
/* Appends a UTF-8 string with quotes and the escapes of RFC 8785 section 3.2.2.2. */
void json_add_string(struct buf *out, struct slice text);

#endif
