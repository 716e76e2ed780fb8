/* Parsing of the command line, and the output of errors and progress. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct option *find_option(const struct option *options, const char *name, size_t size)
{
	for (; options && options->name; options++)
		if (slice_is(slice_make(name, size), options->name))
			return options;
	return NULL;
}

static bool is_repeatable(const struct option *option)
{
	size_t size = option->place ? strlen(option->place) : 0;
	return size > 3 && strcmp(option->place + size - 3, "...") == 0;
}

/* Stores a common option in its field and any other option for command_option. */
static int take_option(struct command_line *line, const struct option *option, const char *value)
{
	const char *name = option->name;
	if (strcmp(name, "json") == 0) {
		line->json = true;
	} else if (strcmp(name, "help") == 0) {
		line->help = true;
	} else if (strcmp(name, "config") == 0) {
		line->sources.file = value;
	} else if (strcmp(name, "data") == 0) {
		line->sources.data_dir = value;
	} else if (strcmp(name, "set") == 0) {
		if (line->sources.set_count == CONFIG_SETS_MAX)
			return command_usage_error(line, "--set may be given at most %d times.",
			                           CONFIG_SETS_MAX);
		line->sources.sets[line->sources.set_count++] = value;
	} else {
		if (!is_repeatable(option) && command_option(line, name))
			return command_usage_error(line, "--%s may be given only once.", name);
		if (line->given_count == COMMAND_OPTIONS_MAX)
			return command_usage_error(line, "Too many options.");
		line->given[line->given_count].name = name;
		line->given[line->given_count++].value = value;
	}
	return 0;
}

/* Parses a word that begins with a dash. `next` is the following word, or NULL. */
static int parse_option(struct command_line *line, const struct option *options, const char *word,
                        const char *next, bool *ret_used_next)
{
	if (strcmp(word, "-h") == 0)
		word = "--help";
	if (strcmp(word, "-o") == 0 && find_option(options, "output", strlen("output")))
		word = "--output";
	if (strcmp(word, "-n") == 0 && find_option(options, "lines", strlen("lines")))
		word = "--lines";
	if (word[1] != '-')
		return command_usage_error(line, "Unknown option '%s'. See --help.", word);
	const char *name = word + 2;
	size_t size = strcspn(name, "=");
	const struct option *option = find_option(options, name, size);
	if (!option)
		option = find_option(line->program->common_options, name, size);
	if (!option)
		return command_usage_error(line, "Unknown option '--%.*s'. See --help.", (int)size, name);
	const char *value = name[size] ? name + size + 1 : NULL;
	if (!option->place) {
		if (value)
			return command_usage_error(line, "--%s does not take a value.", option->name);
		return take_option(line, option, "true");
	}
	if (!value) {
		if (!next)
			return command_usage_error(line, "--%s requires a value: %s.", option->name,
			                           option->place);
		value = next;
		*ret_used_next = true;
	}
	return take_option(line, option, value);
}

int command_line_parse(struct command_line *line, const struct option *options, int count,
                       char **words)
{
	line->arguments = calloc((size_t)count + 1, sizeof *line->arguments);
	if (!line->arguments)
		abort();
	bool only_arguments = false;
	for (int i = 0; i < count; i++) {
		const char *word = words[i];
		bool negative = word[0] == '-' && word[1] >= '0' && word[1] <= '9';
		if (only_arguments || word[0] != '-' || !word[1] || negative) {
			line->arguments[line->argument_count++] = word;
			continue;
		}
		if (strcmp(word, "--") == 0) {
			only_arguments = true;
			continue;
		}
		bool used_next = false;
		const char *next = i + 1 < count ? words[i + 1] : NULL;
		int exit_code = parse_option(line, options, word, next, &used_next);
		if (exit_code)
			return exit_code;
		i += used_next;
	}
	return 0;
}

const char *command_option(const struct command_line *line, const char *name)
{
	for (unsigned i = 0; i < line->given_count; i++)
		if (strcmp(line->given[i].name, name) == 0)
			return line->given[i].value;
	return NULL;
}

unsigned command_options(const struct command_line *line, const char *name,
                         const char *values[COMMAND_OPTIONS_MAX])
{
	unsigned count = 0;
	for (unsigned i = 0; i < line->given_count; i++)
		if (strcmp(line->given[i].name, name) == 0)
			values[count++] = line->given[i].value;
	return count;
}

/* ---- errors ---- */

void command_print_error(const struct command_line *line, const char *code, const char *message,
                         const char *cause)
{
	if (!line->json) {
		fprintf(stderr, "constancia%s%s: %s\n", line->command ? " " : "",
		        line->command ? line->command : "", message);
		if (cause && *cause)
			fprintf(stderr, "  (%s)\n", cause);
		return;
	}
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)1 << 20);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_text(&writer, "code", code);
	json_text(&writer, "message", message);
	json_text(&writer, "cause", cause && *cause ? cause : NULL);
	json_end_object(&writer);
	if (!buf_check(&text))
		fprintf(stderr, "%s\n", text.data);
}

void command_label(const struct admin_parameter *parameter, char label[ADMIN_LABEL_SIZE])
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

/* Names a field that belongs to no operation by its option. */
static void name_option(const void *context, const char *name, enum language language,
                        char word[FIELD_WORD_SIZE])
{
	const struct admin_parameter flag = {.name = name};
	(void)context;
	(void)language;
	command_label(&flag, word);
}

const char *command_message(const struct error *error)
{
	return error_command_message(error);
}

int command_fail(const struct command_line *line, const struct error *error)
{
	struct error named = *error;
	const struct operations *operations = line->program->operations;
	error_name_fields(&named, operations ? operations->name_field : name_option, line->command);
	command_print_error(line, error_code_text(error->code), command_message(&named), error->cause);
	return error_exit_code(error->code);
}

int command_usage_error(const struct command_line *line, const char *format, ...)
{
	char message[1024];
	va_list list;
	va_start(list, format);
	vsnprintf(message, sizeof message, format, list);
	va_end(list);
	command_print_error(line, error_code_text(ERR_USAGE), message, NULL);
	return error_exit_code(ERR_USAGE);
}

/* ---- progress ---- */

int command_show_progress(void *context, const char *path, uint64_t done, uint64_t total)
{
	if (total)
		fprintf(stderr, "\r%3u %%  %s", (unsigned)(done * 100 / total), path);
	*(bool *)context = true;
	return 0;
}

void command_hide_progress(bool shown)
{
	if (shown)
		fputs("\r\033[K", stderr);
}
