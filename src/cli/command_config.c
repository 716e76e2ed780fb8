#include <stdio.h>

#include "cli/command.h"
#include "cli/node.h"

#define FILE_LIMIT ((size_t)1 << 20)

int command_version(const struct command_line *line)
{
	printf(line->json ? "{\"version\":\"%s\"}\n" : "constancia %s\n", CONSTANCIA_VERSION);
	return 0;
}

/* What `serve` would say. */
int command_config_check(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	struct config_sources sources = line->sources;
	sources.serving = true;
	int exit_code = command_settings(line, &sources, &config);
	if (exit_code)
		return 1;
	struct error error = {0};
	if (config.warnings.size)
		fputs(config.warnings.data, stderr);
	error.code = node_try_signer(&config.settings, &error);
	if (error.code) {
		(void)command_fail(line, &error);
		return 1;
	}
	puts(line->json ? "{\"valid\":true}" : "The settings are good.");
	return 0;
}

int command_config_print(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	BUF_AUTO struct buf text;
	buf_init(&text, FILE_LIMIT);
	int exit_code = command_settings(line, &line->sources, &config);
	if (exit_code)
		return exit_code;
	if (line->json)
		config_print_json(&config, &text);
	else
		config_print(&config, &text);
	if (buf_check(&text))
		return 2;
	fputs(text.data, stdout);
	return 0;
}
