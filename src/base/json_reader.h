/* Reads documents of a fixed shape: the members of one JSON object are taken one by one, and the
 * first failure stays, so that a caller looks at `result` once, at the end. The counterpart of
 * json_writer (json.h).
 *
 * `result` is 0; ERR_INVALID_EVIDENCE with the member in error->cause; or ERR_NO_MEMORY. After a
 * failure every take gives an empty value of its type and changes nothing more. Texts and bytes
 * live in the arena; slices may point into the text that was parsed. One thread at a time. */
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
	const struct json *next; /* behind the member found last: looked at first */
};

/* Of a value that is to be an object. */
struct json_reader json_reader_of(struct arena *arena, const struct json *object,
                                  struct error *error);
/* Of a text. */
struct json_reader json_reader_parse(struct arena *arena, struct slice text,
                                     const struct json_limits *limits, struct error *error);
/* Of a member that is an object. Its result is to be handed back to `reader` when it was read. */
struct json_reader json_take_object(struct json_reader *reader, const char *name);

/* The member is missing or its value is not allowed. */
void json_refuse(struct json_reader *reader, const char *name);

/* NULL after a failure. */
const struct json *json_take(struct json_reader *reader, const char *name, enum json_type type);
/* Whether the member is there and null. */
bool json_is_null(const struct json_reader *reader, const char *name);
struct slice json_take_slice(struct json_reader *reader, const char *name);
/* Without NUL inside. */
const char *json_take_text(struct json_reader *reader, const char *name);
const char *json_take_text_or_null(struct json_reader *reader, const char *name);
int64_t json_take_integer(struct json_reader *reader, const char *name, int64_t minimum);
void json_require_integer(struct json_reader *reader, const char *name, int64_t value);
bool json_take_boolean(struct json_reader *reader, const char *name);
int64_t json_take_time(struct json_reader *reader, const char *name);
int64_t json_take_time_or_null(struct json_reader *reader, const char *name); /* TIME_NONE */
struct sha256 json_take_hash(struct json_reader *reader, const char *name);   /* hex */
const struct sha256 *json_take_hash_or_null(struct json_reader *reader, const char *name);
/* Base64 of 1 to size_max bytes. */
struct slice json_take_base64(struct json_reader *reader, const char *name, size_t size_max);

#endif
