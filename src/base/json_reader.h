/* Reader for JSON documents of a fixed structure. The caller takes the members of an object one by
 * one. The first failure is sticky, so the caller checks `result` once at the end. Counterpart of
 * json_writer (json.h).
 *
 * `result` is 0, ERR_INVALID_EVIDENCE with the member in error->cause, or ERR_NO_MEMORY. After a
 * failure every take function returns an empty value of its type. Texts and bytes are in the arena;
 * slices may point into the parsed text. One thread at a time. */
#ifndef BASE_JSON_READER_H
#define BASE_JSON_READER_H

#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"

struct json_reader {
	struct arena *arena;
	const struct json *object;
	struct error *error;
	int result;
	const struct json *next; /* the member after the last match, where the next search starts */
};

/* Reads a value, which must be an object. */
struct json_reader json_reader_of(struct arena *arena, const struct json *object,
                                  struct error *error);
/* Parses and reads a text. */
struct json_reader json_reader_parse(struct arena *arena, struct slice text,
                                     const struct json_limits *limits, struct error *error);
/* Takes a member that is an object. The caller passes its result back to `reader` after reading
 * it. */
struct json_reader json_take_object(struct json_reader *reader, const char *name);

/* Records that the member is missing or not valid. */
void json_refuse(struct json_reader *reader, const char *name);

/* Returns NULL after a failure. */
const struct json *json_take(struct json_reader *reader, const char *name, enum json_type type);
/* Returns whether the member is present and null. */
bool json_is_null(const struct json_reader *reader, const char *name);
struct slice json_take_slice(struct json_reader *reader, const char *name);
/* Refuses texts that contain a NUL. */
const char *json_take_text(struct json_reader *reader, const char *name);
const char *json_take_text_or_null(struct json_reader *reader, const char *name);
int64_t json_take_integer(struct json_reader *reader, const char *name, int64_t minimum);
void json_require_integer(struct json_reader *reader, const char *name, int64_t value);
bool json_take_boolean(struct json_reader *reader, const char *name);
int64_t json_take_time(struct json_reader *reader, const char *name);
int64_t json_take_time_or_null(struct json_reader *reader, const char *name); /* TIME_NONE */
struct sha256 json_take_hash(struct json_reader *reader, const char *name);   /* hex */
const struct sha256 *json_take_hash_or_null(struct json_reader *reader, const char *name);
/* Takes base64 of 1 to size_max decoded bytes. */
struct slice json_take_base64(struct json_reader *reader, const char *name, size_t size_max);

#endif
