/* Parses the fields of forms and queries, and cookies. */
#ifndef CONSOLE_FIELDS_H
#define CONSOLE_FIELDS_H

#include "base/arena.h"
#include "base/error.h"

#define FIELDS_MAX 64

struct field {
	struct slice name, value;
};
struct fields {
	struct field items[FIELDS_MAX];
	size_t count;
};

/* Parses application/x-www-form-urlencoded. ERR_VALIDATION: malformed escapes, text that is not
 * UTF-8 or contains NUL (the message names the field), or more than FIELDS_MAX fields. CR LF, as
 * browsers send line breaks, and CR become LF. Values are in the arena. */
int fields_read(struct slice text, struct arena *arena, struct fields *ret, struct error *error)
	MUST_CHECK;
/* Returns the first field of that name; NULL: none. */
const struct slice *fields_find(const struct fields *fields, const char *name);
/* Returns its value; empty if absent. */
struct slice fields_get(const struct fields *fields, const char *name);
/* Returns the values of all fields of that name, joined by commas (for checkboxes). NULL: no
 * memory. */
const char *fields_join(const struct fields *fields, struct slice name, struct arena *arena);

/* Returns a cookie of the header; empty if absent, or if two of that name differ. */
struct slice cookie_find(struct slice header, const char *name);

/* Percent-decodes a path segment into the arena. False: malformed, not UTF-8, or contains NUL. */
bool path_decode(struct slice text, struct arena *arena, struct slice *ret) MUST_CHECK;

#endif
