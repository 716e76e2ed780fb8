/* The dispatch of a program: finds the command by its name, parses the options and runs it. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/confine.h"
#include "cli/command.h"

#define NAME_SIZE 64
#define USAGE_COLUMN 34

/* ---- help ---- */

void command_print_help(const char *name, const char *place, const char *help)
{
	char left[128];
	snprintf(left, sizeof left, "  %s%s%s", name, place ? " " : "", place ? place : "");
	printf("%-*s %s\n", USAGE_COLUMN, left, help);
}

static void print_options(const struct option *options)
{
	for (; options && options->name; options++) {
		char name[NAME_SIZE];
		snprintf(name, sizeof name, "--%s", options->name);
		command_print_help(name, options->place, options->help);
	}
}

void command_print_common(const struct command_line *line)
{
	print_options(line->program->common_options);
}

static void print_command(const struct command_line *line, const struct command *command)
{
	printf("constancia %s%s%s [OPTIONS]\n\n%s\n\n", command->name, command->arguments ? " " : "",
	       command->arguments ? command->arguments : "", command->summary);
	print_options(command->options);
	command_print_common(line);
}

/* Lists the commands whose name begins with `start`; returns whether there are any. */
static bool list_commands(const struct program *program, const char *start)
{
	size_t size = strlen(start);
	bool any = false;
	const struct operations *operations = program->operations;
	for (size_t i = 0; i < program->command_count; i++)
		if (strncmp(program->commands[i].name, start, size) == 0) {
			command_print_help(program->commands[i].name, program->commands[i].arguments,
			                   program->commands[i].summary);
			any = true;
		}
	const char *name;
	for (size_t i = 0; operations && (name = operations->name(i)); i++)
		if (strncmp(name, start, size) == 0) {
			command_print_help(name, NULL, operations->summary(i));
			any = true;
		}
	return any;
}

static int print_all(const struct command_line *line)
{
	puts("constancia COMMAND [OPTIONS]   (every command has --help)\n");
	list_commands(line->program, "");
	puts("\nCommon options:");
	command_print_common(line);
	return 0;
}

/* ---- dispatch ---- */

static int run_command(struct command_line *line, const struct command *command, int count,
                       char **words)
{
	int exit_code = command_line_parse(line, command->options, count, words);
	if (exit_code)
		return exit_code;
	if (line->help) {
		print_command(line, command);
		return 0;
	}
	if (line->argument_count > command->arguments_most)
		return command_usage_error(line, "Unexpected argument '%s'. See --help.",
		                           line->arguments[command->arguments_most]);
	if (line->argument_count < command->arguments_least)
		return command_usage_error(line, "%s is missing. See --help.", command->arguments);
	if (line->program->operations)
		line->program->operations->choose_file(line, command);
	return command->run(line);
}

static const struct command *find_command(const struct program *program, const char *name)
{
	for (size_t i = 0; i < program->command_count; i++)
		if (strcmp(program->commands[i].name, name) == 0)
			return &program->commands[i];
	return NULL;
}

/* Runs the operation of that name. Returns false if there is none. */
static bool run_operation(struct command_line *line, const char *name, int count, char **words,
                          int *ret_exit_code)
{
	const struct operations *operations = line->program->operations;
	const char *found;
	for (size_t i = 0; operations && (found = operations->name(i)); i++)
		if (strcmp(found, name) == 0) {
			line->command = found;
			*ret_exit_code = operations->run(line, i, count, words);
			return true;
		}
	return false;
}

/* Finds the command by the first word or the first two words, and runs it. */
static int dispatch(struct command_line *line, int count, char **words)
{
	char name[NAME_SIZE];
	int exit_code;
	for (int size = 1; size <= 2 && size <= count; size++) {
		if (size == 1)
			snprintf(name, sizeof name, "%s", words[0]);
		else
			snprintf(name, sizeof name, "%s %s", words[0], words[1]);
		const struct command *command = find_command(line->program, name);
		line->command = command ? command->name : NULL;
		if (command)
			return run_command(line, command, count - size, words + size);
		if (run_operation(line, name, count - size, words + size, &exit_code))
			return exit_code;
	}
	snprintf(name, sizeof name, "%s ", words[0]);
	bool help = count == 2 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0);
	if ((help || count == 1) && list_commands(line->program, name))
		return help ? 0 : 2;
	return command_usage_error(line, "Unknown command '%s%s%s'. See --help.", words[0],
	                           count > 1 ? " " : "", count > 1 ? words[1] : "");
}

/* Returns the number of leading words that are common options or their values. */
static int count_leading_options(const struct program *program, int count, char **words)
{
	int used = 0;
	while (used < count && words[used][0] == '-' && words[used][1]) {
		const char *name = words[used] + 2;
		bool takes_value = false;
		for (const struct option *at = program->common_options; at->name; at++)
			takes_value |= at->place && strcmp(name, at->name) == 0;
		used += 1 + (takes_value && used + 1 < count);
	}
	return used;
}

/* Commands handle secrets: settings, the store, keys. */
static int confine(const struct program *program, int count, char **words, struct error *error)
{
	const struct command *command = count > 0 ? find_command(program, words[0]) : NULL;
	return command && command->confines_itself ? 0 : confine_memory(error);
}

/* A fixed threshold returns large allocations to the system when they are freed; glibc would raise
 * it after each. */
#define LARGE_ALLOCATION (128 * 1024)

int program_run(const struct program *program, int argc, char **argv)
{
	struct command_line line = {.program = program, .sources = {.environment = environ}};
	struct error error = {0};
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_ALLOCATION);
	umask(0077); /* stores, keys and their copies are readable by this user only */
	int leading = count_leading_options(program, argc - 1, argv + 1);
	int left = argc - 1 - leading;
	error.code = confine(program, left, argv + 1 + leading, &error);
	if (error.code)
		return command_fail(&line, &error);
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		line.json |= strcmp(argv[i], "--json") == 0; /* also applies to errors in earlier options */
	int exit_code = command_line_parse(&line, NULL, leading, argv + 1);
	free(line.arguments);
	line.arguments = NULL;
	line.argument_count = 0;
	if (!exit_code && line.help)
		exit_code = print_all(&line);
	else if (!exit_code && left == 0)
		exit_code = print_all(&line) + 2;
	else if (!exit_code)
		exit_code = dispatch(&line, left, argv + 1 + leading);
	free(line.arguments);
	return exit_code;
}
