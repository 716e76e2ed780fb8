/* JSON: a strict parser with limits, its tree, and the canonical form of RFC 8785 (JCS).
 *
 * The parser refuses what would make the canonical form differ from what was declared: repeated
 * member names, invalid UTF-8, lone surrogates, numbers that overflow a double, integers by
 * spelling beyond ±(2^53-1), nesting deeper than the limit, a byte order mark, anything after the
 * value. The tree lives in the caller's arena; strings without escapes are slices of the source,
 * which must live as long. Not thread safe, but without any global state.
 *
 * What is accepted and written canonically is accepted again, with one exception: a double from
 * 2^53 to 1e21 is written like an integer, and integers of that size are refused. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum json_type {
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT
};

struct json {
	enum json_type type;
	bool is_integer;    /* a number spelled without fraction or exponent */
	double number;      /* JSON_NUMBER */
	struct slice name;  /* the member's name when the parent is an object, decoded UTF-8 */
	struct slice text;  /* JSON_STRING: decoded UTF-8, may hold NUL; JSON_NUMBER: as spelled */
	struct json *first; /* children in source order */
	struct json *next;
	uint32_t count; /* of children */
};

struct json_limits {
	uint32_t depth_max; /* objects and arrays inside each other; 0: 64; at most 1024 */
	uint32_t value_max; /* values in all; 0: no limit but the arena's */
};

/* 0, ERR_VALIDATION (the sentence says what is wrong and at which byte, counted from 1) or
 * ERR_NO_MEMORY. */
int json_parse(struct arena *arena, struct slice text, const struct json_limits *limits,
               struct json **ret_json, struct error *error) MUST_CHECK;

/* NULL when json is no object or has no such member. */
struct json *json_member(const struct json *json, const char *name);
/* The member as a string / integer; `false` when absent or of another type. */
bool json_get_text(const struct json *json, const char *name, struct slice *ret_text);
bool json_get_integer(const struct json *json, const char *name, int64_t *ret_value);

/* Appends the canonical form (RFC 8785: members sorted by UTF-16 code units, ECMAScript numbers,
 * minimal escapes). Sorting reorders the tree's children in place. */
void json_canonical(struct json *json, struct buf *out);

/* A writer for the program's own documents: commas and quotes are its affair. Begin a value with
 * a name inside an object, with NULL inside an array or at the top; names are the program's own,
 * free of anything to escape. It writes members in the order given, so a canonical document is one
 * whose members are given sorted. */
struct json_writer {
	struct buf *out;
	bool comma;
};
void json_begin_object(struct json_writer *writer, const char *name);
void json_end_object(struct json_writer *writer);
void json_begin_array(struct json_writer *writer, const char *name);
void json_end_array(struct json_writer *writer);
void json_text(struct json_writer *writer, const char *name, const char *text); /* NULL: null */
void json_slice(struct json_writer *writer, const char *name, struct slice text);
void json_integer(struct json_writer *writer, const char *name, int64_t value);
void json_boolean(struct json_writer *writer, const char *name, bool value);
void json_null(struct json_writer *writer, const char *name);
void json_number(struct json_writer *writer, const char *name, double value);
void json_hex(struct json_writer *writer, const char *name, const void *data, size_t size);
void json_time(struct json_writer *writer, const char *name, int64_t time_us); /* TIME_NONE: null */
/* Puts text that is JSON already. */
void json_raw(struct json_writer *writer, const char *name, struct slice json);

#endif
