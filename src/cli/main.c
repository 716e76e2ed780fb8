/* constancia: one binary for the service, its administration and the verification of evidence. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/confine.h"
#include "cli/command.h"
#include "verify/verifier.h"

#define NAME_SIZE 64
#define USAGE_COLUMN 34

static int run_completion(const struct command_line *line);

static const struct command commands[] = {
	{.name = "dev",
     .summary = "start a complete service for development, with a demo account",
     .options = dev_options,
     .only_given_file = true,
     .run = command_dev},
	{.name = "setup",
     .summary = "ask what a deployment needs, and write its settings",
     .options = setup_options,
     .only_given_file = true,
     .run = command_setup},
	{.name = "init",
     .summary = "create the store of a deployment",
     .options = init_options,
     .run = command_init},
	{.name = "serve", .summary = "run the service", .run = command_serve},
	{.name = "verify",
     .arguments = "PATH...",
     .arguments_least = 1,
     .arguments_most = 10000,
     .summary = "verify evidence archives, content parts and reports offline",
     .options = verify_options,
     .run = command_verify},
	{.name = "proof",
     .arguments = "EVENT_ID ARCHIVE",
     .arguments_least = 2,
     .arguments_most = 2,
     .summary = "extract an event's evidence record (RFC 4998) from an evidence archive, "
                "offline",
     .options = proof_options,
     .run = command_proof},
	{.name = "bundle",
     .arguments = "RECORD FILE...",
     .arguments_least = 3,
     .arguments_most = 501,
     .summary = "put files and their evidence record into one container, offline",
     .options = bundle_options,
     .run = command_bundle},
	{.name = "register",
     .arguments = "FILE...",
     .arguments_most = 10000,
     .summary = "register files through the interface, and keep the receipts",
     .options = register_options,
     .only_given_file = true,
     .run = command_register},
	{.name = "certify",
     .summary = "have events certified through the interface, and verify the documents",
     .options = certify_options,
     .only_given_file = true,
     .run = command_certify},
	{.name = "events tail",
     .summary = "print the newest events through the interface, and follow them",
     .options = events_tail_options,
     .only_given_file = true,
     .run = command_events_tail},
	{.name = "listen",
     .summary = "forward the notices of the test mode to a receiver on this machine",
     .options = listen_options,
     .only_given_file = true,
     .run = command_listen},
	{.name = "trigger",
     .arguments = "TYPE",
     .arguments_least = 1,
     .arguments_most = 1,
     .choice = trigger_type,
     .summary = "create a sample notice of the test mode, for listen",
     .options = trigger_options,
     .only_given_file = true,
     .run = command_trigger},
	{.name = "chaos",
     .summary = "proxy that loses and breaks answers on purpose, for the tests of clients",
     .options = chaos_options,
     .only_given_file = true,
     .run = command_chaos},
	{.name = "audit export",
     .summary = "export the audit log as JSON lines or CSV",
     .options = audit_export_options,
     .run = command_audit_export},
	{.name = "config check",
     .summary = "check the settings and report every problem with file and line",
     .options = config_check_options,
     .run = command_config_check},
	{.name = "config print",
     .summary = "print all settings as a commented file",
     .run = command_config_print},
	{.name = "migrate",
     .summary = "same as store migrate",
     .options = migrate_options,
     .run = command_migrate},
	{.name = "store migrate",
     .summary = "upgrade the schema of the store",
     .options = migrate_options,
     .run = command_migrate},
	{.name = "store distribute",
     .summary = "distribute the tables over the workers by account",
     .options = distribute_options,
     .run = command_distribute},
	{.name = "store accept-rollback",
     .summary = "confirm that a store that was rolled back is to be served",
     .options = accept_rollback_options,
     .run = command_accept_rollback},
	{.name = "store restore",
     .arguments = "[DIR]",
     .arguments_most = 1,
     .summary = "restore a backup where no store exists, check it and print the next steps",
     .options = restore_options,
     .run = command_restore},
	{.name = "store backup-list",
     .arguments = "[DIR]",
     .arguments_most = 1,
     .summary = "list the backups of the series in backup.directory or DIR",
     .run = command_backup_list},
	{.name = "store backup-verify",
     .arguments = "[DIR]",
     .arguments_most = 1,
     .summary = "read a backup, by default the newest of backup.directory, and compare its digests",
     .options = backup_verify_options,
     .run = command_backup_verify},
	{.name = "signer request",
     .summary = "make a signing key, and the request (PKCS#10) for its certificate",
     .options = signer_request_options,
     .run = command_signer_request},
	{.name = "completion",
     .arguments = "SHELL",
     .arguments_least = 1,
     .arguments_most = 1,
     .summary = "print the completion script for a shell (bash, fish or zsh)",
     .run = run_completion},
	{.name = "version", .summary = "print the version", .run = command_version},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static int run_completion(const struct command_line *line)
{
	return command_completion(line, commands, COMMAND_COUNT);
}

/* ---- help ---- */

static void print_option(const char *name, const char *place, const char *help)
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
		print_option(name, options->place, options->help);
	}
}

static void help_of_command(const struct command *command)
{
	printf("constancia %s%s%s [OPTIONS]\n\n%s\n\n", command->name, command->arguments ? " " : "",
	       command->arguments ? command->arguments : "", command->summary);
	print_options(command->options);
	print_options(common_options);
}

static void help_of_operation(const struct admin_operation *operation)
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
		print_option(label, at->positional ? NULL : at->place ? at->place : at->choices, help);
	}
	print_options(common_options);
}

/* Lists the commands whose name begins with `start`; returns whether there are any. */
static bool list_commands(const char *start)
{
	size_t size = strlen(start);
	bool any = false;
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strncmp(commands[i].name, start, size) == 0) {
			print_option(commands[i].name, commands[i].arguments, commands[i].summary);
			any = true;
		}
	const struct admin_operation *operation;
	for (size_t i = 0; (operation = admin_operation_at(i)); i++)
		if (strncmp(operation->name, start, size) == 0) {
			print_option(operation->name, NULL, operation->summary);
			any = true;
		}
	return any;
}

static int help_of_all(void)
{
	puts("constancia COMMAND [OPTIONS]   (every command has --help)\n");
	list_commands("");
	puts("\nCommon options:");
	print_options(common_options);
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
		help_of_command(command);
		return 0;
	}
	if (line->argument_count > command->arguments_most)
		return command_usage_error(line, "Unexpected argument '%s'. See --help.",
		                           line->arguments[command->arguments_most]);
	if (line->argument_count < command->arguments_least)
		return command_usage_error(line, "%s is missing. See --help.", command->arguments);
	if (!command->only_given_file)
		config_choose_file(&line->sources, config_default_path());
	else if (line->sources.file && !*line->sources.file)
		line->sources.file = NULL;
	return command->run(line);
}

static int run_operation(struct command_line *line, const struct admin_operation *operation,
                         int count, char **words)
{
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
		help_of_operation(operation);
		return 0;
	}
	config_choose_file(&line->sources, config_default_path());
	return command_admin(line, operation);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* Finds the command by the first word or the first two words, and runs it. */
static int dispatch(struct command_line *line, int count, char **words)
{
	char name[NAME_SIZE];
	for (int size = 1; size <= 2 && size <= count; size++) {
		if (size == 1)
			snprintf(name, sizeof name, "%s", words[0]);
		else
			snprintf(name, sizeof name, "%s %s", words[0], words[1]);
		const struct command *command = find_command(name);
		const struct admin_operation *operation = admin_find(slice_of(name));
		line->command = command ? command->name : operation ? operation->name : NULL;
		if (command)
			return run_command(line, command, count - size, words + size);
		if (operation)
			return run_operation(line, operation, count - size, words + size);
	}
	snprintf(name, sizeof name, "%s ", words[0]);
	bool help = count == 2 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0);
	if ((help || count == 1) && list_commands(name))
		return help ? 0 : 2;
	return command_usage_error(line, "Unknown command '%s%s%s'. See --help.", words[0],
	                           count > 1 ? " " : "", count > 1 ? words[1] : "");
}

/* Returns the number of leading words that are common options or their values. */
static int count_leading_options(int count, char **words)
{
	int used = 0;
	while (used < count && words[used][0] == '-' && words[used][1]) {
		const char *name = words[used] + 2;
		bool takes_value = false;
		for (const struct option *at = common_options; at->name; at++)
			takes_value |= at->place && strcmp(name, at->name) == 0;
		used += 1 + (takes_value && used + 1 < count);
	}
	return used;
}

/* A fixed threshold returns large allocations to the system when they are freed; glibc would raise
 * it after each. */
#define LARGE_ALLOCATION (128 * 1024)

int main(int argc, char **argv)
{
	struct command_line line = {.sources = {.environment = environ}};
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_ALLOCATION);
	umask(0077); /* stores, keys and their copies are readable by this user only */
	struct error error = {0};
	if (argc > 0 && strcmp(argv[0], VERIFIER_NAME) == 0)
		verifier_run();
	int leading = count_leading_options(argc - 1, argv + 1);
	/* Settings and the store hold secrets. `dev` calls it itself unless --debuggable is given. */
	if (argc - 1 <= leading || strcmp(argv[1 + leading], "dev") != 0)
		error.code = confine_memory(&error);
	if (error.code)
		return command_fail(&line, &error);
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		line.json |= strcmp(argv[i], "--json") == 0; /* also applies to errors in earlier options */
	int exit_code = command_line_parse(&line, NULL, leading, argv + 1);
	free(line.arguments);
	line.arguments = NULL;
	line.argument_count = 0;
	int left = argc - 1 - leading;
	if (!exit_code && line.help)
		exit_code = help_of_all();
	else if (!exit_code && left == 0)
		exit_code = help_of_all() + 2;
	else if (!exit_code)
		exit_code = dispatch(&line, left, argv + 1 + leading);
	free(line.arguments);
	return exit_code;
}
