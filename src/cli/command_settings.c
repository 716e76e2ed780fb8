/* What commands of the service have in common: the settings, their options and audit reasons. */
#include <stdio.h>

#include "cli/command.h"

const struct option common_options[] = {
	{"config", "FILE",
     "configuration file (constancia.conf(5)); $" CONFIG_VARIABLE " or " CONSTANCIA_CONFIG_PATH
     " by default; empty for none"},
	{"data", "DIR", "data directory (service.data_dir)"},
	{"set", "SECTION.KEY=VALUE", "a setting; may be repeated"},
	{"json", NULL,
     "print one JSON document to standard output, and errors as JSON to "
     "standard error"},
	{"help", NULL, "print this help"},
	{0},
};

int command_reason(const struct command_line *line, const char **ret)
{
	struct error error = {0};
	const char *given = command_option(line, "reason");
	if (!given)
		return 0;
	error.code = admin_check_value(&admin_reason, slice_of(given), &error);
	if (error.code)
		return command_fail(line, &error);
	*ret = given;
	return 0;
}

int command_settings(const struct command_line *line, const struct config_sources *sources,
                     struct config *ret_config)
{
	int result = config_load(sources, ret_config);
	if (result == ERR_USAGE) {
		char *problems = ret_config->problems.data;
		problems[ret_config->problems.size - 1] = '\0'; /* replaces the last line feed */
		command_print_error(line, error_code_text(result), problems, NULL);
		return error_exit_code(result);
	}
	if (result) {
		struct error error = {.code = result};
		return command_fail(line, &error);
	}
	if (ret_config->warnings.size && !sources->serving)
		fputs(ret_config->warnings.data, stderr);
	return 0;
}
