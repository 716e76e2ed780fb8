/* Administration operations as commands: options and words become the arguments of the
 * operation. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "service/list.h"

#define ARGUMENTS_LIMIT ((size_t)64 * 1024)
#define PAGE_LIMIT "1000" /* the largest page of a list */
#define PLACE_SIZE 128
#define RESULT_LIMIT ((size_t)16 << 20)

static const char *absolute_path(const char *path, char whole[PATH_MAX])
{
	char here[PATH_MAX];
	if (*path == '/' || !getcwd(here, sizeof here))
		return path;
	int size = snprintf(whole, PATH_MAX, "%s/%s", here, path);
	return size < PATH_MAX ? whole : path;
}

static int add_argument(const struct admin_parameter *parameter, const char *value,
                        struct json_writer *writer, struct error *error)
{
	char whole[PATH_MAX];
	if (parameter->kind == ADMIN_PATH)
		value = absolute_path(value, whole);
	int result = admin_check_value(parameter, slice_of(value), error);
	if (result)
		return result;
	if (parameter->kind == ADMIN_INTEGER)
		json_integer(writer, parameter->name, strtoll(value, NULL, 10));
	else if (parameter->kind == ADMIN_SWITCH)
		json_boolean(writer, parameter->name, true);
	else
		json_text(writer, parameter->name, value);
	return OK;
}

/* Writes the given arguments in the order of the operation's parameters. `after` is the position
 * where a page begins (NULL: as given on the command line); with `after`, pages have the maximum
 * size. */
static int collect_arguments(const struct command_line *line,
                             const struct admin_operation *operation, const char *after,
                             struct json_writer *writer, struct error *error)
{
	unsigned used = 0;
	json_begin_object(writer, NULL);
	const struct admin_parameter *at;
	for (size_t i = 0; (at = admin_parameter_at(operation, i)); i++) {
		char label[ADMIN_LABEL_SIZE], field[FIELD_SIZE];
		command_label(at, label);
		const char *value = NULL;
		if (!at->positional)
			value = command_option(line, label + 2);
		else if (used < line->argument_count)
			value = line->arguments[used++];
		if (after && *after && strcmp(at->name, "after") == 0)
			value = after;
		if (after && strcmp(at->name, "limit") == 0)
			value = PAGE_LIMIT;
		if (!value && at->required)
			return error_set(error, ERR_USAGE, MSG_ADMIN_MISSING, error_field(at->name, field),
			                 NULL);
		int result = value ? add_argument(at, value, writer, error) : OK;
		if (result)
			return result;
	}
	json_end_object(writer);
	if (used < line->argument_count)
		return error_set(error, ERR_USAGE, MSG_ADMIN_UNKNOWN_ARGUMENT, line->arguments[used],
		                 operation->name, NULL);
	return buf_check(writer->out);
}

static void warn_if_partial(const struct json *json)
{
	if (list_is_partial(json))
		fputs("warning: the list may be incomplete because a server of the store is "
		      "unavailable\n",
		      stderr);
}

/* Returns 1 for a document with "valid": false, such as the result of `store check`. */
static int print_result(const struct command_line *line, const struct admin_operation *operation,
                        struct slice result)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf text;
	arena_init(&arena, (size_t)256 << 20);
	buf_init(&text, (size_t)64 << 20);
	struct error error = {0};
	struct json *json;
	int code = json_parse(&arena, result, NULL, &json, &error);
	if (!code && line->json)
		buf_add_slice(&text, result);
	else if (!code)
		output_print(json, operation->columns, &text);
	if (!code && line->json)
		buf_add_byte(&text, '\n');
	if (!code)
		code = buf_check(&text);
	if (!code && (fwrite(text.data, 1, text.size, stdout) != text.size || fflush(stdout) != 0))
		code = error_cause(&error, ERR_IO, "writing to standard output");
	if (code) {
		error.code = code;
		return command_fail(line, &error);
	}
	warn_if_partial(json);
	const struct json *valid = json_member(json, "valid");
	return valid && valid->type == JSON_FALSE;
}

/* ---- comma-separated values ---- */

/* Prints a page as CSV and stores the position of its last row in `after`; empty: it is the last
 * page. */
static int print_page(const struct admin_operation *operation, struct slice result,
                      char after[PLACE_SIZE], struct error *error)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf text;
	arena_init(&arena, (size_t)256 << 20);
	buf_init(&text, (size_t)64 << 20);
	struct json *json;
	bool more = false;
	int code = json_parse(&arena, result, NULL, &json, error);
	if (code)
		return code;
	const struct json *rows = list_read(json, &more);
	output_csv(rows, operation->csv, !*after, &text);
	const struct json *last = rows ? rows->first : NULL;
	while (last && last->next)
		last = last->next;
	struct slice place = more && last && last->first ? last->first->text : slice_of("");
	snprintf(after, PLACE_SIZE, "%.*s", (int)place.size, place.data);
	code = buf_check(&text);
	if (!code && (fwrite(text.data, 1, text.size, stdout) != text.size || fflush(stdout) != 0))
		code = error_cause(error, ERR_IO, "writing to standard output");
	warn_if_partial(json);
	return code;
}

/* Prints all pages. Each page is written before the next one is requested. */
static int print_csv(const struct command_line *line, const struct admin_operation *operation,
                     const struct settings *settings, struct error *error)
{
	bool one_page = command_option(line, "limit") != NULL;
	char after[PLACE_SIZE] = "";
	int code = OK;
	do {
		BUF_AUTO struct buf arguments;
		BUF_AUTO struct buf result;
		buf_init(&arguments, ARGUMENTS_LIMIT);
		buf_init(&result, RESULT_LIMIT);
		struct json_writer writer = {.out = &arguments};
		code = collect_arguments(line, operation, one_page ? NULL : after, &writer, error);
		if (!code)
			code = administer(settings, operation, buf_slice(&arguments), &result, error);
		if (!code)
			code = print_page(operation, buf_slice(&result), after, error);
	} while (!code && *after && !one_page);
	return code;
}

int command_admin(const struct command_line *line, const struct admin_operation *operation)
{
	CONFIG_AUTO struct config config = {0};
	BUF_AUTO struct buf arguments;
	BUF_AUTO struct buf result;
	buf_init(&arguments, ARGUMENTS_LIMIT);
	buf_init(&result, RESULT_LIMIT);
	struct error error = {0};
	struct json_writer writer = {.out = &arguments};
	int code = collect_arguments(line, operation, NULL, &writer, &error);
	if (!code && line->json && operation->csv && command_option(line, "csv"))
		code = error_set(&error, ERR_USAGE, MSG_ADMIN_CSV_OR_JSON, NULL);
	if (code) {
		error.code = code;
		return command_fail(line, &error);
	}
	int exit_code = command_settings(line, &line->sources, &config);
	if (exit_code)
		return exit_code;
	bool csv = operation->csv && command_option(line, "csv");
	if (csv)
		code = print_csv(line, operation, &config.settings, &error);
	else
		code = administer(&config.settings, operation, buf_slice(&arguments), &result, &error);
	if (code) {
		error.code = code;
		return command_fail(line, &error);
	}
	return csv ? 0 : print_result(line, operation, buf_slice(&result));
}
