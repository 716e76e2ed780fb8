#include "service/event_body.h"

#include <stdio.h>

#include "base/json.h"
#include "base/utf8.h"

/* 64 for the payload, plus 1 for the body around it. */
#define DEPTH_MAX 65
#define OCCURRED_AT_MAX 64
/* Values of the largest payload in a body with all members. In canonical form each value has a
 * character of its own and a comma or bracket. */
#define VALUES_MAX (PAYLOAD_MAX / 2 + 8)

size_t event_body_limit(enum modality modality)
{
	return modality == MODALITY_CONTENT ? EVENT_BODY_MAX : BODY_SLACK;
}

int client_ref_check(struct slice client_ref, struct error *error)
{
	if (!client_ref.size || client_ref.size > CLIENT_REF_MAX || !utf8_valid(client_ref) ||
	    utf8_has_control(client_ref))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_CLIENT_REF, NULL);
	return 0;
}

static bool is_separator(char c)
{
	return c == '/' || c == '\\';
}

int file_name_check(struct slice file_name, struct slice *ret_name, struct error *error)
{
	struct slice name = file_name;
	while (name.size && is_separator(name.data[name.size - 1]))
		name.size--;
	for (size_t i = name.size; i > 0; i--) {
		if (is_separator(name.data[i - 1])) {
			name = slice_make(name.data + i, name.size - i);
			break;
		}
	}
	if (name.size > FILE_NAME_MAX || !utf8_valid(name) || utf8_has_control(name))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_FILE_NAME, NULL);
	if (slice_is(name, ".") || slice_is(name, ".."))
		name.size = 0;
	*ret_name = name;
	return 0;
}

static int field_type(const char *field, const char *english, const char *spanish,
                      struct error *error)
{
	return error_set(error, ERR_VALIDATION, MSG_FIELD_TYPE, field, english, spanish, NULL);
}

static int read_client_ref(struct slice text, struct declaration *declaration, struct error *error)
{
	declaration->client_ref = text;
	return client_ref_check(text, error);
}

static int read_occurred_at(struct slice text, struct declaration *declaration, struct error *error)
{
	return time_parse(text, "occurred_at", &declaration->occurred_at_us, error);
}

const struct event_text event_texts[EVENT_TEXTS_MAX] = {
	{"client_ref", CLIENT_REF_MAX, true, read_client_ref, "a string", "una cadena de texto"},
	{"occurred_at", OCCURRED_AT_MAX, false, read_occurred_at, "a date-time string",
     "una cadena con fecha y hora"},
};

int declaration_keep(struct arena *arena, struct declaration *declaration, struct error *error)
{
	struct slice *text = &declaration->client_ref;
	text->data = arena_copy(arena, text->data, text->size);
	return text->data ? 0 : error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
}

static bool is_known(struct slice name)
{
	static const char *const others[] = {"payload", "hash", "hash_alg"};
	bool found = false;
	for (const struct event_text *text = event_texts; text->name; text++)
		found = found || slice_is(name, text->name);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		found = found || slice_is(name, others[i]);
	return found;
}

static int check_members(const struct json *body, struct error *error)
{
	if (body->type != JSON_OBJECT)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_BODY_OBJECT, NULL);
	for (const struct json *member = body->first; member; member = member->next) {
		if (!is_known(member->name)) {
			char name[64];
			utf8_show(member->name, name, sizeof name);
			return error_set(error, ERR_VALIDATION, MSG_FIELD_UNKNOWN, name, NULL);
		}
	}
	return 0;
}

static int parse_text(const struct json *body, const struct event_text *text,
                      struct declaration *declaration, struct error *error)
{
	const struct json *member = json_member(body, text->name);
	if (!member && text->required)
		return error_set(error, ERR_VALIDATION, MSG_FIELD_REQUIRED, text->name, NULL);
	if (!text->required && (!member || member->type == JSON_NULL))
		return 0;
	if (member->type != JSON_STRING)
		return field_type(text->name, text->english, text->spanish, error);
	return text->read(member->text, declaration, error);
}

/* `english` and `spanish` are the size, or a lower bound of it. */
static int payload_large(const char *english, const char *spanish, struct error *error)
{
	return error_set(error, ERR_TOO_LARGE, MSG_HTTP_PAYLOAD_LARGE, english, spanish, NULL);
}

static int payload_longer(size_t size, struct error *error)
{
	char english[48], spanish[48];
	snprintf(english, sizeof english, "more than %zu", size);
	snprintf(spanish, sizeof spanish, "más de %zu", size);
	return payload_large(english, spanish, error);
}

/* Parses the text. Ends early when the number of values shows that the payload is too large. */
static int parse_json(struct arena *arena, struct slice body, struct json **ret_json,
                      struct error *error)
{
	static const struct json_limits limits = {.depth_max = DEPTH_MAX, .value_max = VALUES_MAX};
	if (!error) {
		struct error unused;
		error_clear(&unused);
		return parse_json(arena, body, ret_json, &unused);
	}
	int result = json_parse(arena, body, &limits, ret_json, error);
	bool has_too_many = result == ERR_VALIDATION && error->message == MSG_BASE_JSON_VALUES;
	return has_too_many ? payload_longer(PAYLOAD_MAX, error) : result;
}

static int parse_payload(struct json *payload, struct buf *canonical,
                         struct declaration *declaration, struct error *error)
{
	if (payload->type != JSON_OBJECT)
		return field_type("payload", "a JSON object", "un objeto JSON", error);
	buf_clear(canonical);
	json_canonical(payload, canonical);
	if (buf_check(canonical) != 0)
		return canonical->full ? payload_longer(EVENT_CANONICAL_MAX, error)
		                       : error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	if (canonical->size > PAYLOAD_MAX) {
		char size[24];
		snprintf(size, sizeof size, "%zu", canonical->size);
		return payload_large(size, size, error);
	}
	struct sha256 hash = sha256_of(canonical->data, canonical->size);
	memcpy(declaration->hash, hash.bytes, SHA256_SIZE);
	declaration->hash_algorithm = HASH_SHA256;
	declaration->modality = MODALITY_CONTENT;
	return 0;
}

static int parse_hash(const struct json *body, struct declaration *declaration, struct error *error)
{
	const struct json *hash = json_member(body, "hash");
	const struct json *algorithm = json_member(body, "hash_alg");
	if (!hash || !algorithm)
		return error_set(error, ERR_VALIDATION, MSG_FIELD_REQUIRED, hash ? "hash_alg" : "hash",
		                 NULL);
	if (algorithm->type != JSON_STRING ||
	    !hash_algorithm_parse(algorithm->text, &declaration->hash_algorithm))
		return field_type("hash_alg", "\"sha-256\" or \"sha-512\"", "\"sha-256\" o \"sha-512\"",
		                  error);
	if (hash->type != JSON_STRING || !hex_decode(hash->text, declaration->hash,
	                                             hash_algorithm_size(declaration->hash_algorithm)))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_HASH,
		                 declaration->hash_algorithm == HASH_SHA256 ? "64" : "128",
		                 hash_algorithm_text(declaration->hash_algorithm), NULL);
	declaration->modality = MODALITY_HASH_ONLY;
	return 0;
}

int event_body_parse(struct slice body, enum modality channel_modality, struct arena *arena,
                     struct buf *canonical, struct declaration *ret_declaration,
                     struct error *error)
{
	struct declaration declaration = {.occurred_at_us = TIME_NONE};
	struct json *json;
	int result = parse_json(arena, body, &json, error);
	if (!result)
		result = check_members(json, error);
	for (const struct event_text *text = event_texts; text->name && !result; text++)
		result = parse_text(json, text, &declaration, error);
	if (result)
		return result;
	struct json *payload = json_member(json, "payload");
	bool hash = json_member(json, "hash") || json_member(json, "hash_alg");
	if (payload && hash)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_BOTH_SHAPES, NULL);
	if (hash && channel_modality == MODALITY_CONTENT)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_CONTENT_WANTED, NULL);
	if (payload && channel_modality == MODALITY_HASH_ONLY)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_DIGEST_WANTED, "content ('payload')",
		                 "contenido ('payload')", NULL);
	if (payload)
		result = parse_payload(payload, canonical, &declaration, error);
	else if (hash)
		result = parse_hash(json, &declaration, error);
	else
		result = error_set(error, ERR_VALIDATION, MSG_FIELD_REQUIRED,
		                   channel_modality == MODALITY_CONTENT ? "payload" : "hash", NULL);
	if (!result)
		*ret_declaration = declaration;
	return result;
}
