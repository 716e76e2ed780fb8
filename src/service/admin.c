#include "service/admin.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "service/admin_call.h"

#define CALL_MEMORY_MAX ((size_t)32 << 20)
#define VALUE_SHOWN_MAX 60

static const struct admin_operation *const groups[] = {
	admin_account_operations, admin_channel_operations,  admin_limit_operations,
	admin_webhook_operations, admin_purchase_operations, admin_evidence_operations,
	admin_signer_operations,  admin_store_operations,
};

const struct admin_operation *admin_operation_at(size_t index)
{
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
		for (const struct admin_operation *at = groups[i]; at->name; at++)
			if (index-- == 0)
				return at;
	return NULL;
}

const struct admin_operation *admin_find(struct slice name)
{
	const struct admin_operation *operation;
	for (size_t i = 0; (operation = admin_operation_at(i)); i++)
		if (slice_is(name, operation->name))
			return operation;
	return NULL;
}

/* ---- values ---- */

void admin_label(const struct admin_parameter *parameter, char label[ADMIN_LABEL_SIZE])
{
	if (parameter->positional) {
		snprintf(label, ADMIN_LABEL_SIZE, "%s", parameter->place);
		return;
	}
	snprintf(label, ADMIN_LABEL_SIZE, "--%s", parameter->name);
	for (char *at = label; *at; at++)
		if (*at == '_')
			*at = '-';
}

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

/* C0, DEL and C1 are controls. */
static bool is_printable(struct slice text, bool line_feeds)
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
	const char *but = parameter->kind == ADMIN_TEXT ? " but line feeds" : "";
	return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_TEXT, label, least, most, but, NULL);
}

int admin_check_value(const struct admin_parameter *parameter, struct slice value,
                      struct error *error)
{
	char label[ADMIN_LABEL_SIZE];
	char shown[VALUE_SHOWN_MAX + 1];
	admin_label(parameter, label);
	struct slice cut =
		is_printable(value, false) ? utf8_cut(value, VALUE_SHOWN_MAX) : slice_of("(not printable)");
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
		    !is_printable(value, parameter->kind == ADMIN_TEXT))
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
	for (size_t i = 0; operation->parameters[i].name; i++) {
		const struct admin_parameter *parameter = &operation->parameters[i];
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

static int read_arguments(const struct admin_operation *operation, const struct json *arguments,
                          struct arena *arena, struct admin_value *values, struct error *error)
{
	if (arguments && arguments->type != JSON_OBJECT)
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_REQUEST, NULL);
	for (const struct json *at = arguments ? arguments->first : NULL; at; at = at->next) {
		int result = read_argument(operation, at, arena, values, error);
		if (result)
			return result;
	}
	for (size_t i = 0; operation->parameters[i].name; i++) {
		if (!operation->parameters[i].required || values[i].given)
			continue;
		char label[ADMIN_LABEL_SIZE];
		admin_label(&operation->parameters[i], label);
		return error_set(error, ERR_USAGE, MSG_ADMIN_MISSING, label, NULL);
	}
	return OK;
}

static const struct admin_value *find_value(const struct admin_call *call, const char *name)
{
	for (size_t i = 0; call->operation->parameters[i].name; i++)
		if (strcmp(call->operation->parameters[i].name, name) == 0)
			return &call->values[i];
	assert(!"an operation asked for a parameter that it does not have");
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

/* ---- running ---- */

int admin_run(struct admin *admin, const struct admin_operation *operation,
              const struct json *arguments, struct buf *out, struct error *error)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf answer;
	arena_init(&arena, CALL_MEMORY_MAX);
	buf_init(&answer, ADMIN_RESULT_MAX);
	struct admin_value values[ADMIN_PARAMETERS_MAX] = {0};
	int result = read_arguments(operation, arguments, &arena, values, error);
	if (result)
		return result;
	struct admin_call call = {admin, operation, values, &arena, store_now_us(admin->store)};
	struct json_writer writer = {.out = &answer};
	result = operation->run(&call, &writer, error);
	if (operation->changes && admin->service)
		service_forget_keys(admin->service);
	if (!result)
		result = buf_check(&answer);
	if (result)
		return result;
	buf_add_slice(out, buf_slice(&answer));
	return buf_check(out);
}
