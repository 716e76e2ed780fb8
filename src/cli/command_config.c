#include <stdio.h>

#include "cli/command.h"

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
	if (!exit_code && config.warnings.size)
		fputs(config.warnings.data, stderr);
	if (!exit_code)
		puts(line->json ? "{\"valid\":true}" : "The settings are good.");
	return exit_code ? 1 : 0;
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
