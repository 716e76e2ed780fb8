/* The operations of administration as commands: flags and words become their arguments. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

#define ARGUMENTS_LIMIT ((size_t)64 * 1024)
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

/* All that was given, in the order of the operation's parameters. */
static int gather(const struct command_line *line, const struct admin_operation *operation,
                  struct json_writer *writer, struct error *error)
{
	unsigned used = 0;
	json_begin_object(writer, NULL);
	for (const struct admin_parameter *at = operation->parameters; at->name; at++) {
		char label[ADMIN_LABEL_SIZE];
		admin_label(at, label);
		const char *value = NULL;
		if (!at->positional)
			value = command_option(line, label + 2);
		else if (used < line->argument_count)
			value = line->arguments[used++];
		if (!value && at->required)
			return error_set(error, ERR_USAGE, MSG_ADMIN_MISSING, label, NULL);
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

/* 1 for a document that says that something is not valid, as `store check` may. */
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
	const struct json *valid = json_member(json, "valid");
	return valid && valid->type == JSON_FALSE;
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
	int code = gather(line, operation, &writer, &error);
	if (code) {
		error.code = code;
		return command_fail(line, &error);
	}
	int exit_code = command_settings(line, &line->sources, &config);
	if (exit_code)
		return exit_code;
	code = administer(&config.settings, operation, buf_slice(&arguments), &result, &error);
	if (code) {
		error.code = code;
		return command_fail(line, &error);
	}
	return print_result(line, operation, buf_slice(&result));
}
