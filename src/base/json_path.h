/* The path of a value in a JSON document, for messages: payload.items[3].name. A name with other
 * characters than letters, digits, `_`, `-` and `$` is a string in brackets, in which control
 * characters are escapes: payload["a b\u0001"]. Long names, and the beginning of a long path, are
 * replaced with an ellipsis. */
#ifndef BASE_JSON_PATH_H
#define BASE_JSON_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/must_check.h"

#define JSON_PATH_SIZE 256 /* with the NUL */

/* Inserts the name of a member (valid UTF-8), or the index of an element if `name` is NULL, before
 * a path, which is "" at first. False: it does not fit, and an ellipsis was inserted. */
bool json_path_prepend(char path[JSON_PATH_SIZE], const struct slice *name, uint32_t index)
	MUST_CHECK;

#endif
