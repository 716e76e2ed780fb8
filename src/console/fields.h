/* Names and values of a form or a query, and of cookies. */
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

/* application/x-www-form-urlencoded. ERR_VALIDATION: broken escapes, text that is not UTF-8 or has
 * a NUL (the sentence names the field), or more than FIELDS_MAX fields. CR LF in a value, as
 * browsers send what has several lines, and CR become LF. Values live in the arena. */
int fields_read(struct slice text, struct arena *arena, struct fields *ret, struct error *error)
	MUST_CHECK;
/* The first of that name, NULL: there is none. */
const struct slice *fields_find(const struct fields *fields, const char *name);
/* Its value, empty where there is none. */
struct slice fields_get(const struct fields *fields, const char *name);
/* The values of all of that name, joined by commas (what was ticked of several). NULL: no
 * memory. */
const char *fields_join(const struct fields *fields, struct slice name, struct arena *arena);

/* A cookie of the header's; empty where there is none, or two of that name say different things. */
struct slice cookie_find(struct slice header, const char *name);

/* A part of a path, percent-decoded into the arena. False: broken, not UTF-8, or with a NUL. */
bool path_decode(struct slice text, struct arena *arena, struct slice *ret) MUST_CHECK;

#endif
