/* Pages: runs their operations and draws their answers. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "admin/permission_check.h"
#include "console/visit.h"

/* ---- arguments ---- */

static const struct admin_parameter *find_parameter(const struct admin_operation *operation,
                                                    const char *name)
{
	const struct admin_parameter *parameter;
	for (size_t i = 0; (parameter = admin_parameter_at(operation, i)); i++)
		if (strcmp(parameter->name, name) == 0)
			return parameter;
	return NULL;
}

static bool is_whole(struct slice text)
{
	size_t i = text.size && text.data[0] == '-';
	if (i == text.size || text.size - i > 15 || (text.data[i] == '0' && text.size - i > 1))
		return false;
	for (; i < text.size; i++)
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
	return true;
}

/* Text that is not a number is unchanged, and the operation reports the error. */
void write_argument(struct json_writer *writer, const char *operation, const char *name,
                    struct slice value)
{
	const struct admin_operation *found = admin_find(slice_of(operation));
	const struct admin_parameter *parameter = found ? find_parameter(found, name) : NULL;
	if (parameter && parameter->kind == ADMIN_INTEGER && is_whole(value))
		json_raw(writer, name, value);
	else if (parameter && parameter->kind == ADMIN_SWITCH && slice_is(value, "true"))
		json_boolean(writer, name, true);
	else
		json_slice(writer, name, value);
}

static struct slice source_value(const struct visit *visit, struct slice text)
{
	if (text.size && text.data[0] == '?') {
		for (size_t i = 0; i < visit->query.count; i++)
			if (slice_equal(visit->query.items[i].name, slice_make(text.data + 1, text.size - 1)))
				return visit->query.items[i].value;
		return slice_of("");
	}
	if (!text.size || text.data[0] != '{')
		return text;
	for (size_t i = 0; i < PLACES_MAX; i++)
		if (slice_equal(visit->places[i].name, slice_make(text.data + 1, text.size - 2)))
			return visit->places[i].value;
	return slice_of("");
}

int source_arguments(struct visit *visit, const char *operation, const char *arguments,
                     struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	for (const char *at = arguments ? arguments : ""; *at;) {
		size_t name_size = strcspn(at, "=");
		const char *value = at + name_size + 1;
		size_t size = strcspn(value, " ");
		const char *name = arena_copy(visit->arena, at, name_size);
		struct slice given = source_value(visit, slice_make(value, size));
		if (!name)
			return ERR_NO_MEMORY;
		if (given.size)
			write_argument(&writer, operation, name, given);
		at = value + size;
		at += *at == ' ';
	}
	json_end_object(&writer);
	return buf_check(out);
}

/* ---- operations ---- */

int run_operation(struct visit *visit, const char *operation, struct slice arguments,
                  struct buf *answer)
{
	struct json *json;
	const struct admin_operation *found = admin_find(slice_of(operation));
	assert(found);
	/* The tree refers to its text. */
	const char *kept = arena_copy(visit->arena, arguments.data, arguments.size);
	if (!kept)
		return ERR_NO_MEMORY;
	int result =
		json_parse(visit->arena, slice_make(kept, arguments.size), NULL, &json, visit->error);
	if (result)
		return result;
	struct admin_caller caller;
	char node[HOST_NAME_MAX + 1] = "";
	(void)gethostname(node, sizeof node - 1);
	admin_caller_user(&visit->session, visit->request->address, node, &caller);
	caller.form = visit->sent;
	return admin_run(visit->admin, found, json, &caller, answer, visit->error);
}

int ask_operation(struct visit *visit, const char *operation, struct slice arguments,
                  struct slice *ret_text, struct json **ret)
{
	BUF_AUTO struct buf answer;
	buf_init(&answer, ADMIN_RESULT_MAX);
	int result = run_operation(visit, operation, arguments, &answer);
	if (result)
		return result;
	const char *kept = arena_copy(visit->arena, answer.data, answer.size);
	if (!kept)
		return ERR_NO_MEMORY;
	*ret_text = slice_make(kept, answer.size);
	return json_parse(visit->arena, *ret_text, NULL, ret, visit->error);
}

int ask_source(struct visit *visit, const char *operation, const char *from, struct slice *ret_text,
               struct json **ret)
{
	BUF_AUTO struct buf arguments;
	buf_init(&arguments, CONSOLE_BODY_MAX);
	int result = source_arguments(visit, operation, from, &arguments);
	return result ? result : ask_operation(visit, operation, buf_slice(&arguments), ret_text, ret);
}

bool is_operation_allowed(const struct visit *visit, const char *operation)
{
	return permission_is_granted(visit->session.chosen->role, operation);
}

/* ---- pages ---- */

static struct slice position_of(const struct json *row, const char *name)
{
	const struct json *member = json_member(row, name);
	bool is = member && (member->type == JSON_STRING || member->type == JSON_NUMBER);
	return is ? member->text : slice_of("");
}

/* Adds the position at which the next page of a list begins. */
static int add_last(struct visit *visit, const struct console_source *source, struct slice answer,
                    struct json_writer *data)
{
	ARENA_AUTO struct arena arena;
	struct json *json;
	struct slice last = {"", 0};
	char name[64];
	arena_init(&arena, DATA_MAX);
	int result = json_parse(&arena, answer, NULL, &json, visit->error);
	if (result)
		return result;
	const struct json *rows = json_member(json, "data");
	for (const struct json *row = rows ? rows->first : NULL; row; row = row->next)
		last = position_of(row, source->last);
	snprintf(name, sizeof name, "%s_last", source->member);
	json_slice(data, name, last);
	return OK;
}

static int add_source(struct visit *visit, const struct console_source *source,
                      struct json_writer *data)
{
	BUF_AUTO struct buf arguments;
	BUF_AUTO struct buf answer;
	buf_init(&arguments, CONSOLE_BODY_MAX);
	buf_init(&answer, ADMIN_RESULT_MAX);
	int result = source_arguments(visit, source->operation, source->arguments, &arguments);
	if (!result)
		result = run_operation(visit, source->operation, buf_slice(&arguments), &answer);
	if (!result)
		json_raw(data, source->member, buf_slice(&answer));
	if (!result && source->last)
		result = add_last(visit, source, buf_slice(&answer), data);
	return result;
}

static void put_fields(struct json_writer *data, const char *member, const struct field *fields,
                       size_t count)
{
	json_begin_object(data, member);
	for (size_t i = 0; i < count; i++) {
		bool plain = fields[i].name.size > 0;
		for (size_t at = 0; at < fields[i].name.size; at++)
			plain &= (fields[i].name.data[at] >= 'a' && fields[i].name.data[at] <= 'z') ||
			         fields[i].name.data[at] == '_';
		for (size_t before = 0; before < i; before++)
			plain &= !slice_equal(fields[before].name, fields[i].name);
		if (plain)
			json_slice(data, fields[i].name.data, fields[i].value);
	}
	json_end_object(data);
}

int show_page(struct visit *visit, int status, const struct console_page *page)
{
	BUF_AUTO struct buf data;
	buf_init(&data, DATA_MAX);
	struct json_writer writer = {.out = &data};
	int result = OK;
	visit->page = page;
	json_begin_object(&writer, NULL);
	put_fields(&writer, "query", visit->query.items, visit->query.count);
	for (const struct console_source *source = page->sources; source && source->member && !result;
	     source++) {
		if (source == page->sources || is_operation_allowed(visit, source->operation))
			result = add_source(visit, source, &writer);
	}
	if (visit->answered.size)
		json_raw(&writer, "answered", visit->answered);
	if (!result && page->more)
		result = page->more(visit, &writer);
	json_end_object(&writer);
	if (!result)
		result = buf_check(&data);
	const char *kept = result ? NULL : arena_copy(visit->arena, data.data, data.size);
	if (!result && !kept)
		result = ERR_NO_MEMORY;
	return result ? result : draw_page(visit, status, page->template, slice_make(kept, data.size));
}
