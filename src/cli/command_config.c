#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/connect.h"
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

void command_note_refusal(void *context, bool warning, const char *setting,
                          const struct error *error)
{
	const struct config *config = context;
	/* What is written wrong need not be told again for what comes of it. */
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
     "also ask database, content, timestamp authorities and whoever says what was revoked, mail "
     "server and payment provider, draw a report, and say what answered"},
	{0},
};

/* ---- what answered ---- */

struct answers {
	struct config *config;
	bool as_json;
	bool progress; /* on a terminal */
	struct json_writer writer;
};

static void show_begin(void *context, const char *what)
{
	const struct answers *answers = context;
	if (answers->progress)
		fprintf(stderr, "%s …", what);
}

static bool is_told(const struct config *config, const char *what)
{
	for (const struct config_finding *at = config->findings; at; at = at->next)
		if (!at->warning && at->what && strcmp(at->what, what) == 0)
			return true;
	return false;
}

static void show_end(void *context, const struct connection *connection)
{
	struct answers *answers = context;
	command_hide_progress(answers->progress);
	if (connection->failed && !is_told(answers->config, connection->text))
		config_add(answers->config, false, connection->setting, connection->text);
	if (!answers->as_json) {
		printf("%-11s %-7s %s (%lld ms)\n", connection->what, connection->failed ? "FAILED" : "ok",
		       connection->text, (long long)connection->took_us / 1000);
		fflush(stdout);
		return;
	}
	json_begin_object(&answers->writer, NULL);
	json_text(&answers->writer, "what", connection->what);
	json_text(&answers->writer, "setting", connection->setting);
	json_boolean(&answers->writer, "ok", !connection->failed);
	json_text(&answers->writer, "text", connection->text);
	json_integer(&answers->writer, "milliseconds", connection->took_us / 1000);
	json_end_object(&answers->writer);
}

static void show_warning(void *context, const char *setting, const char *text)
{
	const struct answers *answers = context;
	config_add(answers->config, true, setting, text);
}

static void connect_and_tell(struct answers *answers, const struct node_keys *keys)
{
	struct connect_listener listener = {show_begin, show_end, show_warning, answers};
	const struct settings *settings = &answers->config->settings;
	connect_all(settings, keys, node_is_running(settings), &listener);
}

/* ---- the end ---- */

/* `connect`: ask others, too; NULL: do not. */
static int tell_as_json(struct config *config, const struct node_keys *connect)
{
	BUF_AUTO struct buf text;
	buf_init(&text, FILE_LIMIT);
	struct answers answers = {.config = config, .as_json = true, .writer = {.out = &text}};
	json_begin_object(&answers.writer, NULL);
	if (connect) {
		json_begin_array(&answers.writer, "connections");
		connect_and_tell(&answers, connect);
		json_end_array(&answers.writer);
	}
	write_findings(config, &answers.writer);
	json_boolean(&answers.writer, "valid", config->problem_count == 0);
	json_end_object(&answers.writer);
	if (buf_check(&text))
		return 2;
	puts(text.data);
	return config->problem_count ? 1 : 0;
}

static int tell_as_text(struct config *config, const struct node_keys *connect)
{
	struct answers answers = {.config = config, .progress = isatty(STDERR_FILENO)};
	if (connect)
		connect_and_tell(&answers, connect);
	for (const struct config_finding *at = config->findings; at; at = at->next)
		fprintf(stderr, "%s%s%s%s%s%s\n", at->warning ? "warning: " : "",
		        at->origin ? at->origin : "", at->origin ? ": " : "",
		        at->setting ? at->setting : "", at->setting ? ": " : "", at->what);
	if (!config->problem_count) {
		puts("The settings are good.");
		return 0;
	}
	fprintf(stderr,
	        config->problem_count == 1 ? "One problem is in the way.\n"
	                                   : "%u problems are in the way.\n",
	        config->problem_count);
	return 1;
}

/* What `serve` would say, all at once. With settings that are written wrong nobody is asked. */
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
	node_try(&config.settings, &keys, command_note_refusal, &config);
	const struct node_keys *connect = !result && command_option(line, "connect") ? &keys : NULL;
	int exit_code = line->json ? tell_as_json(&config, connect) : tell_as_text(&config, connect);
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
