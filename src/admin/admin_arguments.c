/* Reads, checks and looks up the arguments of an operation. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin/admin_call.h"
#include "base/clock.h"
#include "base/utf8.h"

#define VALUE_SHOWN_MAX 60
#define MOMENT_MAX_US (INT64_C(36500) * US_PER_DAY)

/* ---- values ---- */

static bool is_identifier(struct slice text)
{
	if (text.size == 0 || text.size >= ID_SIZE)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* C0, DEL and C1 are control characters. */
bool admin_is_printable(struct slice text, bool line_feeds)
{
	for (size_t at = 0; at < text.size;) {
		size_t size = utf8_character(slice_make(text.data + at, text.size - at));
		const unsigned char *c = (const unsigned char *)text.data + at;
		if (size == 0 || c[0] == 0x7f || (c[0] < 0x20 && !(line_feeds && c[0] == '\n')) ||
		    (c[0] == 0xc2 && c[1] < 0xa0))
			return false;
		at += size;
	}
	return true;
}

static bool read_integer(struct slice text, int64_t *ret)
{
	char digits[24];
	if (text.size == 0 || text.size >= sizeof digits)
		return false;
	memcpy(digits, text.data, text.size);
	digits[text.size] = '\0';
	const char *first = digits + (*digits == '-');
	if (*first < '0' || *first > '9')
		return false;
	char *end;
	errno = 0;
	long long value = strtoll(digits, &end, 10);
	if (errno || *end)
		return false;
	*ret = value;
	return true;
}

static bool is_choice(const char *choices, struct slice value)
{
	while (*choices) {
		size_t size = strcspn(choices, "|");
		if (slice_equal(slice_make(choices, size), value))
			return true;
		choices += size + (choices[size] == '|');
	}
	return false;
}

static int bad_number(const char *label, const struct admin_parameter *parameter, const char *shown,
                      struct error *error)
{
	char least[24], most[24];
	snprintf(least, sizeof least, "%" PRId64, parameter->least);
	snprintf(most, sizeof most, "%" PRId64, parameter->most);
	if (parameter->kind == ADMIN_INTEGER)
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_INTEGER, label, least, most, shown, NULL);
	if (parameter->kind == ADMIN_CONTENT)
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_CONTENT, label, least, most, NULL);
	const char *but = parameter->kind == ADMIN_TEXT ? " other than line feeds" : "";
	return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_TEXT, label, least, most, but, NULL);
}

int admin_check_value(const struct admin_parameter *parameter, struct slice value,
                      struct error *error)
{
	char label[FIELD_SIZE];
	char shown[VALUE_SHOWN_MAX + 1];
	error_field(parameter->name, label);
	struct slice cut = admin_is_printable(value, false) ? utf8_cut(value, VALUE_SHOWN_MAX)
	                                                    : slice_of("(not printable)");
	snprintf(shown, sizeof shown, "%.*s", (int)cut.size, cut.data);
	int64_t integer;
	int64_t size = (int64_t)value.size;
	switch (parameter->kind) {
	case ADMIN_ID:
		if (!is_identifier(value))
			return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_ID, label, NULL);
		return OK;
	case ADMIN_LINE:
	case ADMIN_TEXT:
	case ADMIN_PATH:
		if (size < parameter->least || size > parameter->most ||
		    !admin_is_printable(value, parameter->kind == ADMIN_TEXT))
			return bad_number(label, parameter, shown, error);
		return OK;
	case ADMIN_CONTENT:
		if (size < parameter->least || size > parameter->most || !utf8_valid(value) ||
		    memchr(value.data, '\0', value.size))
			return bad_number(label, parameter, shown, error);
		return OK;
	case ADMIN_INTEGER:
		if (!read_integer(value, &integer) || integer < parameter->least ||
		    integer > parameter->most)
			return bad_number(label, parameter, shown, error);
		return OK;
	case ADMIN_CHOICE:
		if (!is_choice(parameter->choices, value))
			return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_CHOICE, label, parameter->choices,
			                 shown, NULL);
		return OK;
	case ADMIN_SWITCH:
		if (!slice_is(value, "true"))
			return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_SWITCH, label, NULL);
		return OK;
	}
	return OK;
}

/* ---- arguments ---- */

static struct slice value_text(const struct admin_parameter *parameter, const struct json *json)
{
	if (parameter->kind == ADMIN_SWITCH)
		return slice_of(json->type == JSON_TRUE ? "true" : "false");
	enum json_type wanted = parameter->kind == ADMIN_INTEGER ? JSON_NUMBER : JSON_STRING;
	return json->type == wanted ? json->text : slice_of("");
}

static int read_argument(const struct admin_operation *operation, const struct json *json,
                         struct arena *arena, struct admin_value *values, struct error *error)
{
	const struct admin_parameter *parameter;
	for (size_t i = 0; (parameter = admin_parameter_at(operation, i)); i++) {
		if (!slice_is(json->name, parameter->name))
			continue;
		struct slice text = value_text(parameter, json);
		int result = admin_check_value(parameter, text, error);
		if (result)
			return result;
		values[i] = (struct admin_value){true, arena_copy(arena, text.data, text.size), 0};
		if (!values[i].text)
			return ERR_NO_MEMORY;
		if (parameter->kind == ADMIN_INTEGER)
			(void)read_integer(text, &values[i].integer);
		return OK;
	}
	char name[ADMIN_LABEL_SIZE];
	struct slice cut = utf8_cut(json->name, sizeof name - 1);
	snprintf(name, sizeof name, "%.*s", (int)cut.size, cut.data);
	return error_set(error, ERR_USAGE, MSG_ADMIN_UNKNOWN_ARGUMENT, name, operation->name, NULL);
}

int admin_read_arguments(const struct admin_operation *operation, const struct json *arguments,
                         struct arena *arena, struct admin_value *values, struct error *error)
{
	if (arguments && arguments->type != JSON_OBJECT)
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_REQUEST, NULL);
	for (const struct json *at = arguments ? arguments->first : NULL; at; at = at->next) {
		int result = read_argument(operation, at, arena, values, error);
		if (result)
			return result;
	}
	const struct admin_parameter *parameter;
	for (size_t i = 0; (parameter = admin_parameter_at(operation, i)); i++) {
		if (!parameter->required || values[i].given)
			continue;
		char label[FIELD_SIZE];
		return error_set(error, ERR_USAGE, MSG_ADMIN_MISSING, error_field(parameter->name, label),
		                 NULL);
	}
	return OK;
}

static const struct admin_value *find_value(const struct admin_call *call, const char *name)
{
	const struct admin_parameter *parameter;
	for (size_t i = 0; (parameter = admin_parameter_at(call->operation, i)); i++)
		if (strcmp(parameter->name, name) == 0)
			return &call->values[i];
	assert(false && "an operation asked for a parameter that it does not have");
	return NULL;
}

bool admin_given(const struct admin_call *call, const char *name)
{
	return find_value(call, name)->given;
}

const char *admin_text(const struct admin_call *call, const char *name)
{
	return find_value(call, name)->text;
}

struct slice admin_slice(const struct admin_call *call, const char *name)
{
	return slice_of(admin_text(call, name));
}

int64_t admin_integer(const struct admin_call *call, const char *name, int64_t otherwise)
{
	const struct admin_value *value = find_value(call, name);
	return value->given ? value->integer : otherwise;
}

int admin_time(const struct admin_call *call, const char *name, int64_t otherwise, int64_t *ret_us,
               struct error *error)
{
	char label[FIELD_SIZE];
	*ret_us = otherwise;
	if (!admin_given(call, name) || !time_parse(admin_slice(call, name), name, ret_us, NULL))
		return OK;
	return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_TIME, error_field(name, label), NULL);
}

int admin_moment(const struct admin_call *call, const char *name, int sign, int64_t otherwise,
                 int64_t *ret_us, struct error *error)
{
	struct slice text = admin_slice(call, name);
	int64_t duration_us;
	*ret_us = otherwise;
	if (!text.size)
		return OK;
	if (duration_parse(text, &duration_us) && duration_us <= MOMENT_MAX_US) {
		*ret_us = call->now_us + sign * duration_us;
		return OK;
	}
	if (time_parse(text, name, ret_us, NULL) == OK)
		return OK;
	char label[FIELD_SIZE];
	return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_MOMENT, error_field(name, label), NULL);
}
