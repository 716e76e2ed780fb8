#include "base/json_reader.h"

#include "base/base64.h"

struct json_reader json_reader_of(struct arena *arena, const struct json *object,
                                  struct error *error)
{
	struct json_reader reader = {.arena = arena, .object = object, .error = error};
	if (!object || object->type != JSON_OBJECT)
		reader.result = error_cause(error, ERR_INVALID_EVIDENCE, "it is not a JSON object");
	return reader;
}

struct json_reader json_reader_parse(struct arena *arena, struct slice text,
                                     const struct json_limits *limits, struct error *error)
{
	struct json *json = NULL;
	struct error detail = {0};
	struct json_reader reader = {.arena = arena, .error = error};
	int result = json_parse(arena, text, limits, &json, &detail);
	if (!result)
		return json_reader_of(arena, json, error);
	reader.result = result == ERR_NO_MEMORY
	                    ? error_cause(error, result, "json")
	                    : error_cause(error, ERR_INVALID_EVIDENCE, "it is not JSON: %s",
	                                  error_message(&detail, LANGUAGE_ENGLISH));
	return reader;
}

void json_refuse(struct json_reader *reader, const char *name)
{
	if (!reader->result)
		reader->result = error_cause(reader->error, ERR_INVALID_EVIDENCE,
		                             "member '%s' is missing or its value is not allowed", name);
}

static const struct json *find(const struct json_reader *reader, const char *name)
{
	const struct json *next = reader->next;
	return next && slice_is(next->name, name) ? next : json_member(reader->object, name);
}

const struct json *json_take(struct json_reader *reader, const char *name, enum json_type type)
{
	if (reader->result)
		return NULL;
	const struct json *member = find(reader, name);
	if (!member || member->type != type) {
		json_refuse(reader, name);
		return NULL;
	}
	reader->next = member->next;
	return member;
}

bool json_is_null(const struct json_reader *reader, const char *name)
{
	const struct json *member = reader->result ? NULL : find(reader, name);
	return member && member->type == JSON_NULL;
}

struct slice json_take_slice(struct json_reader *reader, const char *name)
{
	const struct json *member = json_take(reader, name, JSON_STRING);
	return member ? member->text : slice_of("");
}

const char *json_take_text(struct json_reader *reader, const char *name)
{
	struct slice slice = json_take_slice(reader, name);
	if (!reader->result && memchr(slice.data, 0, slice.size))
		json_refuse(reader, name);
	if (reader->result)
		return "";
	const char *text = arena_copy(reader->arena, slice.data, slice.size);
	if (!text)
		reader->result = error_cause(reader->error, ERR_NO_MEMORY, "json");
	return text ? text : "";
}

const char *json_take_text_or_null(struct json_reader *reader, const char *name)
{
	return json_is_null(reader, name) ? NULL : json_take_text(reader, name);
}

int64_t json_take_integer(struct json_reader *reader, const char *name, int64_t minimum)
{
	const struct json *member = json_take(reader, name, JSON_NUMBER);
	if (member && (!member->is_integer || (int64_t)member->number < minimum))
		json_refuse(reader, name);
	return reader->result ? minimum : (int64_t)member->number;
}

void json_require_integer(struct json_reader *reader, const char *name, int64_t value)
{
	if (json_take_integer(reader, name, value) != value)
		json_refuse(reader, name);
}

bool json_take_boolean(struct json_reader *reader, const char *name)
{
	const struct json *member = reader->result ? NULL : json_member(reader->object, name);
	if (!member || (member->type != JSON_TRUE && member->type != JSON_FALSE))
		json_refuse(reader, name);
	return member && member->type == JSON_TRUE;
}

int64_t json_take_time(struct json_reader *reader, const char *name)
{
	int64_t time_us = 0;
	struct slice text = json_take_slice(reader, name);
	if (!reader->result && time_parse(text, name, &time_us, NULL))
		json_refuse(reader, name);
	return time_us;
}

int64_t json_take_time_or_null(struct json_reader *reader, const char *name)
{
	return json_is_null(reader, name) ? TIME_NONE : json_take_time(reader, name);
}

struct sha256 json_take_hash(struct json_reader *reader, const char *name)
{
	struct sha256 hash = {{0}};
	struct slice text = json_take_slice(reader, name);
	if (!reader->result && !hex_decode(text, hash.bytes, SHA256_SIZE))
		json_refuse(reader, name);
	return hash;
}

const struct sha256 *json_take_hash_or_null(struct json_reader *reader, const char *name)
{
	if (json_is_null(reader, name))
		return NULL;
	struct sha256 hash = json_take_hash(reader, name);
	struct sha256 *copy = reader->result ? NULL : arena_alloc(reader->arena, sizeof *copy);
	if (!copy && !reader->result)
		reader->result = error_cause(reader->error, ERR_NO_MEMORY, "json");
	if (copy)
		*copy = hash;
	return copy;
}

struct slice json_take_base64(struct json_reader *reader, const char *name, size_t size_max)
{
	struct slice text = json_take_slice(reader, name);
	if (!reader->result &&
	    (text.size == 0 || text.size % 4 != 0 || text.size / 4 * 3 > size_max + 2))
		json_refuse(reader, name);
	if (reader->result)
		return slice_of("");
	char *bytes = arena_alloc(reader->arena, text.size / 4 * 3 + 1);
	if (!bytes) {
		reader->result = error_cause(reader->error, ERR_NO_MEMORY, "base64");
		return slice_of("");
	}
	size_t size;
	if (!base64_decode(text, bytes, text.size / 4 * 3, &size) || size == 0 || size > size_max) {
		json_refuse(reader, name);
		return slice_of("");
	}
	return slice_make(bytes, size);
}

struct json_reader json_take_object(struct json_reader *reader, const char *name)
{
	const struct json *member = json_take(reader, name, JSON_OBJECT);
	return (struct json_reader){reader->arena, member, reader->error, reader->result, NULL};
}
