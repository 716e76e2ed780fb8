/* Inside base only: the pieces of the canonical form (RFC 8785). */
#ifndef BASE_JSON_CANONICAL_H
#define BASE_JSON_CANONICAL_H

#include "base/buf.h"

/* The order of the names' UTF-16 code units (RFC 8785 section 3.2.3), of valid UTF-8; below 0, 0
 * or above 0. */
int json_compare_names(struct slice a, struct slice b);

/* Appends a number as ECMAScript's Number::toString gives it (RFC 8785 section 3.2.2.3). */
void json_add_number(struct buf *out, double number);
/* Appends a string with quotes and the escapes of RFC 8785 section 3.2.2.2. Input is UTF-8. */
void json_add_string(struct buf *out, struct slice text);

#endif
