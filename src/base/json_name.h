/* Inside base only: the order of member names. */
#ifndef BASE_JSON_NAME_H
#define BASE_JSON_NAME_H

#include "base/buf.h"

/* The order of the names' UTF-16 code units (RFC 8785 section 3.2.3), of valid UTF-8; below 0, 0
 * or above 0. */
int json_compare_names(struct slice a, struct slice b);

#endif
