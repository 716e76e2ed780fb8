/* The commands `version`, `config check` and `config print`. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/connection_probe.h"
#include "cli/node_parts.h"
#include "store/store.h"

#define FILE_LIMIT ((size_t)1 << 20)

int command_version(const struct command_line *line)
{
	if (line->json)
		printf("{\"version\":\"%s\",\"schema\":\"%s\"}\n", CONSTANCIA_VERSION, store_schema_name());
	else
		printf("constancia %s\n", CONSTANCIA_VERSION);
	return 0;
}

/* ---- config check ---- */

void command_add_finding(void *context, bool warning, const char *setting,
                         const struct error *error)
{
	const struct config *config = context;
	/* A start failure that follows from a reported problem of the same setting is not reported
	 * again. */
	for (const struct config_finding *at = config->findings; at && setting; at = at->next)
		if (!at->warning && at->setting && strcmp(at->setting, setting) == 0)
			return;
	config_add(context, warning, setting, error_reason(error, error->code));
}

static void write_findings(const struct config *config, struct json_writer *writer)
{
	json_begin_array(writer, "findings");
	for (const struct config_finding *at = config->findings; at; at = at->next) {
		json_begin_object(writer, NULL);
		json_text(writer, "setting", at->setting);
		json_text(writer, "origin", at->origin);
		json_text(writer, at->warning ? "warning" : "problem", at->what);
		json_end_object(writer);
	}
	json_end_array(writer);
}

const struct option config_check_options[] = {
	{"connect", NULL,
     "also connect to the database, content store, timestamp authorities, "
     "revocation services, mail server and payment provider, render a report, "
     "and print each result"},
	{0},
};

/* ---- connections ---- */

struct connect_output {
	struct config *config;
	bool as_json;
	bool progress; /* on a terminal */
	struct json_writer writer;
};

static void show_begin(void *context, const char *what)
{
	const struct connect_output *connect_output = context;
	if (connect_output->progress)
		fprintf(stderr, "%s …", what);
}

static bool is_reported(const struct config *config, const char *what)
{
	for (const struct config_finding *at = config->findings; at; at = at->next)
		if (!at->warning && at->what && strcmp(at->what, what) == 0)
			return true;
	return false;
}

static void show_end(void *context, const struct connection *connection)
{
	struct connect_output *connect_output = context;
	command_hide_progress(connect_output->progress);
	if (connection->failed && !is_reported(connect_output->config, connection->text))
		config_add(connect_output->config, false, connection->setting, connection->text);
	if (!connect_output->as_json) {
		printf("%-11s %-7s %s (%lld ms)\n", connection->what, connection->failed ? "FAILED" : "ok",
		       connection->text, (long long)connection->took_us / 1000);
		fflush(stdout);
		return;
	}
	json_begin_object(&connect_output->writer, NULL);
	json_text(&connect_output->writer, "what", connection->what);
	json_text(&connect_output->writer, "setting", connection->setting);
	json_boolean(&connect_output->writer, "ok", !connection->failed);
	json_text(&connect_output->writer, "text", connection->text);
	json_integer(&connect_output->writer, "milliseconds", connection->took_us / 1000);
	json_end_object(&connect_output->writer);
}

static void show_warning(void *context, const char *setting, const char *text)
{
	const struct connect_output *connect_output = context;
	config_add(connect_output->config, true, setting, text);
}

static void check_connections(struct connect_output *connect_output, const struct node_keys *keys)
{
	struct connection_probe_listener listener = {show_begin, show_end, show_warning,
	                                             connect_output};
	const struct settings *settings = &connect_output->config->settings;
	probe_connections(settings, keys, node_is_running(settings), &listener);
}

/* ---- results ---- */

/* `connect`: the keys for probe_connections; NULL: make no connections. */
static int print_as_json(struct config *config, const struct node_keys *connect)
{
	BUF_AUTO struct buf text;
	buf_init(&text, FILE_LIMIT);
	struct connect_output connect_output = {
		.config = config, .as_json = true, .writer = {.out = &text}};
	json_begin_object(&connect_output.writer, NULL);
	if (connect) {
		json_begin_array(&connect_output.writer, "connections");
		check_connections(&connect_output, connect);
		json_end_array(&connect_output.writer);
	}
	write_findings(config, &connect_output.writer);
	json_boolean(&connect_output.writer, "valid", config->problem_count == 0);
	json_end_object(&connect_output.writer);
	if (buf_check(&text))
		return 2;
	puts(text.data);
	return config->problem_count ? 1 : 0;
}

static int print_as_text(struct config *config, const struct node_keys *connect)
{
	struct connect_output connect_output = {.config = config, .progress = isatty(STDERR_FILENO)};
	if (connect)
		check_connections(&connect_output, connect);
	for (const struct config_finding *at = config->findings; at; at = at->next)
		fprintf(stderr, "%s%s%s%s%s%s\n", at->warning ? "warning: " : "",
		        at->origin ? at->origin : "", at->origin ? ": " : "",
		        at->setting ? at->setting : "", at->setting ? ": " : "", at->what);
	if (!config->problem_count) {
		puts("The settings are valid.");
		return 0;
	}
	fprintf(stderr,
	        config->problem_count == 1 ? "1 problem prevents a start.\n"
	                                   : "%u problems prevent a start.\n",
	        config->problem_count);
	return 1;
}

/* Reports everything that would make `serve` fail. With invalid settings no connection is made. */
int command_config_check(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	struct config_sources sources = line->sources;
	sources.serving = true;
	sources.checking = true;
	int result = config_load(&sources, &config);
	if (result && result != ERR_USAGE) {
		struct error error = {.code = result};
		return command_fail(line, &error);
	}
	struct node_keys keys = {0};
	if (!config.unread)
		node_check_start(&config.settings, &keys, command_add_finding, &config);
	if (!result && !command_option(line, "connect"))
		node_check_surroundings(&config.settings, command_add_finding, &config);
	const struct node_keys *connect = !result && command_option(line, "connect") ? &keys : NULL;
	int exit_code = line->json ? print_as_json(&config, connect) : print_as_text(&config, connect);
	node_keys_free(&keys);
	return exit_code;
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
