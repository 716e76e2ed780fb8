/* Reads the lines of an INI file: sections in brackets, "key = value" or "key: value", comments.
 *
 * A comment begins with ';' or '#' at the start of a line, or with white space and ';' within one.
 * Lines may end with CR LF, and the file may begin with a UTF-8 byte order mark. The meaning of an
 * indented line, a continuation or not, is left to the caller. */
#ifndef BASE_INI_H
#define BASE_INI_H

#include <stdbool.h>

#include "base/buf.h"

#define INI_LINE_MAX ((size_t)4096) /* bytes, without the line end; comments may be longer */

enum ini_kind {
	INI_SECTION,  /* `name` */
	INI_PAIR,     /* `name` and `value` */
	INI_TEXT,     /* neither */
	INI_UNCLOSED, /* a section whose ']' is missing; `name` */
	INI_LONG,     /* longer than INI_LINE_MAX; only `number` and `indented` are set */
	INI_NUL,      /* contains a NUL byte; as INI_LONG */
};

/* The texts point into the file. White space around them and the comment at the end are left out.
 */
struct ini_line {
	enum ini_kind kind;
	unsigned number; /* from 1 */
	bool indented;
	struct slice text; /* the whole line */
	struct slice name; /* of the section, or the key */
	struct slice value;
};

/* The position in a file. Initialize with ini_begin. */
struct ini_reader {
	struct slice rest;
	unsigned number;
};

void ini_begin(struct ini_reader *reader, struct slice file);
/* Returns the next line that is neither blank nor a comment; false: the file ends. */
bool ini_next(struct ini_reader *reader, struct ini_line *ret_line);

/* Returns whether the file begins with a byte order mark of UTF-16. */
bool ini_is_utf16(struct slice file);

#endif
