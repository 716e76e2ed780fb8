/* What is done to a store while no service runs. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/durable.h"
#include "cli/command.h"
#include "cli/node.h"
#include "seal/signer_log.h"
#include "service/backup.h"
#include "service/history.h"

const struct option migrate_options[] = {
	{"dry-run", NULL, "only tell which steps would be applied"},
	{0},
};

const struct option accept_rollback_options[] = {
	{"reason", "TEXT", "why the store went back, kept on record (required)"},
	{0},
};

static int fail(const struct command_line *line, int code, struct error *error)
{
	error->code = code;
	return command_fail(line, error);
}

/* One step per line in `steps`. */
static void print_steps(const struct command_line *line, const struct buf *steps, bool applied)
{
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)1 << 20);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_boolean(&writer, "applied", applied);
	json_begin_array(&writer, "steps");
	for (const char *at = steps->data; at && *at;) {
		size_t size = strcspn(at, "\n");
		json_slice(&writer, NULL, slice_make(at, size));
		at += size + (at[size] == '\n');
	}
	json_end_array(&writer);
	json_end_object(&writer);
	if (buf_check(&text))
		return;
	if (line->json)
		puts(text.data);
	else if (!steps->size)
		puts("The schema is current.");
	else
		printf("%s\n%s", applied ? "Applied:" : "Would apply:", steps->data);
}

int command_migrate(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	BUF_AUTO struct buf steps;
	buf_init(&steps, (size_t)64 * 1024);
	struct error error = {0};
	bool dry_run = command_option(line, "dry-run") != NULL;
	int exit_code = command_settings(line, &line->sources, &config);
	if (exit_code)
		return exit_code;
	struct db_options options = settings_store(&config.settings, false);
	int result = store_migrate(&options, dry_run, &steps, &error);
	if (!result)
		result = buf_check(&steps);
	if (result)
		return fail(line, result, &error);
	print_steps(line, &steps, !dry_run && steps.size);
	return 0;
}

int command_restore(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	struct error error = {0};
	struct backup_facts facts;
	char directory[PATH_MAX];
	int exit_code = command_settings(line, &line->sources, &config);
	if (exit_code)
		return exit_code;
	if (!realpath(line->arguments[0], directory))
		return command_misused(line, "%s: %s.", line->arguments[0], strerror(errno));
	int result = durable_make_directory(config.settings.service_data_dir, &error);
	if (result)
		return fail(line, result, &error);
	struct content_options content = settings_content(&config.settings, true);
	struct db_options store = settings_store(&config.settings, false);
	result = backup_restore(directory, &store, &content, &facts, &error);
	if (result)
		return fail(line, result, &error);
	char time[TIME_TEXT_SIZE];
	time_format(facts.created_at_us, time);
	if (line->json)
		printf("{\"created_at\":\"%s\",\"store_bytes\":%lld,\"content_objects\":%lld}\n", time,
		       (long long)facts.store_bytes, (long long)facts.content_objects);
	else
		printf("Restored the backup of %s. Now run 'constancia store check'.\n", time);
	return 0;
}

static void print_accepted(const struct command_line *line, const struct history *history)
{
	if (line->json)
		printf("{\"store_id\":\"%s\",\"round\":%lld,\"known_round\":%lld}\n", history->store_id,
		       (long long)history->found.round, (long long)history->known.round);
	else
		printf("On record: the store went back from round %lld to round %lld. Now run "
		       "'constancia store check'.\n",
		       (long long)history->known.round, (long long)history->found.round);
}

int command_accept_rollback(const struct command_line *line)
{
	static const struct admin_parameter parameter = {
		.name = "reason", .kind = ADMIN_LINE, .least = 1, .most = SIGNER_LOG_REASON_MAX};
	CONFIG_AUTO struct config config = {0};
	struct error error = {0};
	struct history history;
	const char *reason = command_option(line, "reason");
	if (!reason)
		return command_misused(line, "--reason is missing. See --help.");
	int result = admin_check_value(&parameter, slice_of(reason), &error);
	if (result)
		return fail(line, result, &error);
	int exit_code = command_settings(line, &line->sources, &config);
	if (exit_code)
		return exit_code;
	result = node_accept_rollback(&config.settings, slice_of(reason), &history, &error);
	if (result)
		return fail(line, result, &error);
	print_accepted(line, &history);
	return 0;
}
