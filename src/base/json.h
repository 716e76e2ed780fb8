/* JSON: a strict parser with limits, its tree, the canonical form of RFC 8785 (JCS), and a writer.
 *
 * The parser refuses input whose canonical form could differ from the declared content: repeated
 * member names, invalid UTF-8, lone surrogates, numbers that overflow a double, integers beyond
 * ±(2^53-1), nesting deeper than the limit, a byte order mark, and data after the value. The tree
 * is allocated in the caller's arena. Strings without escapes are slices of the source, which must
 * live as long as the tree. Not thread safe; no global state.
 *
 * Canonical output of accepted input is accepted again, with one exception: a double from 2^53 to
 * 1e21 is written like an integer, and integers of that size are refused. */
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
	bool is_integer;    /* a number without fraction and exponent */
	double number;      /* JSON_NUMBER */
	struct slice name;  /* member name, decoded UTF-8; only in an object */
	struct slice text;  /* JSON_STRING: decoded UTF-8, may contain NUL; JSON_NUMBER: source */
	struct json *first; /* children in source order */
	struct json *next;
	uint32_t count; /* of children */
};

struct json_limits {
	uint32_t depth_max; /* nesting of objects and arrays; 0: 64; at most 1024 */
	uint32_t value_max; /* total number of values; 0: limited only by the arena */
};

/* Parses a text. Returns 0, ERR_VALIDATION (the message has the fault and the byte position,
 * counted from 1) or ERR_NO_MEMORY. */
int json_parse(struct arena *arena, struct slice text, const struct json_limits *limits,
               struct json **ret_json, struct error *error) MUST_CHECK;

/* Returns the member, or NULL if `json` is not an object or has no such member. */
struct json *json_member(const struct json *json, const char *name);
/* Get a member as a string or an integer; return false if it is absent or of another type. */
bool json_get_text(const struct json *json, const char *name, struct slice *ret_text);
bool json_get_integer(const struct json *json, const char *name, int64_t *ret_value);

/* Appends the canonical form (RFC 8785: members sorted by UTF-16 code units, ECMAScript numbers,
 * minimal escapes). Sorting reorders the tree's children in place. */
void json_canonical(struct json *json, struct buf *out);

/* Writer for the program's own documents. It writes the commas and quotes. `name` is the member
 * name inside an object, and NULL inside an array or at the top level. Names must not need escapes.
 * Members are written in call order, so the output is canonical if the caller sorts them. */
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
/* Writes text that is already JSON. */
void json_raw(struct json_writer *writer, const char *name, struct slice json);

#endif
