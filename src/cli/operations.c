/* The operations of administration (admin/admin.h) as commands of the program. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const char *operation_name(size_t index)
{
	const struct admin_operation *operation = admin_operation_at(index);
	return operation ? operation->name : NULL;
}

static const char *operation_summary(size_t index)
{
	return admin_operation_at(index)->summary;
}

static void print_help(const struct command_line *line, const struct admin_operation *operation)
{
	printf("constancia %s", operation->name);
	for (const struct admin_parameter *at = operation->parameters; at->name; at++)
		if (at->positional)
			printf(at->required ? " %s" : " [%s]", at->place);
	printf(" [OPTIONS]\n\n%s\n\n", operation->summary);
	const struct admin_parameter *at;
	for (size_t i = 0; (at = admin_parameter_at(operation, i)); i++) {
		char label[ADMIN_LABEL_SIZE], help[256];
		command_label(at, label);
		snprintf(help, sizeof help, "%s%s", at->help,
		         at->required && !at->positional ? " (required)" : "");
		command_print_help(label,
		                   at->positional ? NULL
		                   : at->place    ? at->place
		                                  : at->choices,
		                   help);
	}
	command_print_common(line);
}

static int run_operation(struct command_line *line, size_t index, int count, char **words)
{
	const struct admin_operation *operation = admin_operation_at(index);
	struct option options[ADMIN_PARAMETERS_MAX + 1] = {0};
	char labels[ADMIN_PARAMETERS_MAX][ADMIN_LABEL_SIZE];
	size_t used = 0;
	const struct admin_parameter *at;
	for (size_t i = 0; (at = admin_parameter_at(operation, i)); i++) {
		if (at->positional)
			continue;
		command_label(at, labels[used]);
		const char *place = at->place ? at->place : at->choices;
		options[used] = (struct option){labels[used] + 2, place, at->help};
		used++;
	}
	int exit_code = command_line_parse(line, options, count, words);
	if (exit_code)
		return exit_code;
	if (line->help) {
		print_help(line, operation);
		return 0;
	}
	config_choose_file(&line->sources, config_default_path());
	return command_admin(line, operation);
}

static void add_completions(size_t index, struct buf *out)
{
	const struct admin_operation *operation = admin_operation_at(index);
	const struct admin_parameter *at;
	char label[ADMIN_LABEL_SIZE];
	for (size_t i = 0; (at = admin_parameter_at(operation, i)); i++) {
		command_label(at, label);
		if (at->positional)
			completion_add_files(operation->name, at->place, out);
		else
			completion_add_option(operation->name, label, at->place, at->choices, at->help, out);
	}
}

static void name_field(const void *context, const char *name, enum language language,
                       char word[FIELD_WORD_SIZE])
{
	const struct admin_operation *operation = admin_find(slice_of(context));
	const struct admin_parameter *at, flag = {.name = name};
	(void)language;
	for (size_t i = 0; operation && (at = admin_parameter_at(operation, i)); i++)
		if (strcmp(at->name, name) == 0) {
			command_label(at, word);
			return;
		}
	command_label(&flag, word);
}

static void choose_file(struct command_line *line, const struct command *command)
{
	if (!command->only_given_file)
		config_choose_file(&line->sources, config_default_path());
	else if (line->sources.file && !*line->sources.file)
		line->sources.file = NULL;
}

const struct operations admin_operations = {.name = operation_name,
                                            .summary = operation_summary,
                                            .run = run_operation,
                                            .complete = add_completions,
                                            .name_field = name_field,
                                            .choose_file = choose_file};
