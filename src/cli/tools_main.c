/* The tools of integrators as a program without the service: what needs only an API key or files.
 * The package constancia-tools installs it as `constancia`. */
#include <stdio.h>

#include "cli/command.h"

static int run_version(const struct command_line *line)
{
	printf(line->json ? "{\"version\":\"%s\"}\n" : "constancia %s\n", CONSTANCIA_VERSION);
	return 0;
}

static const struct option tools_options[] = {
	{"json", NULL,
     "print JSON documents to standard output, each on one line, and errors as JSON to standard "
     "error"},
	{"help", NULL, "print this help"},
	{0},
};

static const struct command commands[] = {
#include "cli/tool_commands.def"
	{.name = "version", .summary = "print the version", .run = run_version},
};

int main(int argc, char **argv)
{
	static const struct program program = {.commands = commands,
	                                       .command_count = sizeof commands / sizeof *commands,
	                                       .common_options = tools_options};
	return program_run(&program, argc, argv);
}
