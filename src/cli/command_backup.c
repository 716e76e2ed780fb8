/* Lists and verifies the backups of a series. No service and no store are needed. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/backup_series.h"
#include "base/clock.h"
#include "cli/command.h"

#define RESULT_MAX ((size_t)16 << 20)

const struct option backup_verify_options[] = {
	{"no-content", NULL, "skip the stored objects"},
	{0},
};

static int fail(const struct command_line *line, int code, struct error *error)
{
	error->code = code;
	return command_fail(line, error);
}

static const char *kind_of(const struct backup_facts *facts)
{
	return *facts->base ? "incremental" : "full";
}

static int print_list_json(const char *directory, const struct series_list *list)
{
	BUF_AUTO struct buf text;
	buf_init(&text, RESULT_MAX);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_begin_array(&writer, "backups");
	for (size_t i = 0; i < list->count; i++) {
		const struct series_entry *item = &list->items[i];
		json_begin_object(&writer, NULL);
		json_text(&writer, "base", *item->facts.base ? item->facts.base : NULL);
		json_integer(&writer, "content_missing", item->facts.content_missing);
		json_integer(&writer, "content_objects", item->facts.content_objects);
		json_time(&writer, "created_at", item->facts.created_at_us);
		json_text(&writer, "kind", kind_of(&item->facts));
		json_text(&writer, "name", item->name);
		json_integer(&writer, "store_bytes", item->facts.store_bytes);
		json_end_object(&writer);
	}
	json_end_array(&writer);
	json_text(&writer, "directory", directory);
	json_text(&writer, "unreadable", *list->unreadable ? list->unreadable : NULL);
	json_end_object(&writer);
	if (buf_check(&text))
		return 2;
	puts(text.data);
	return *list->unreadable != '\0';
}

static int print_list(const struct series_list *list)
{
	if (!list->count)
		puts("There is no complete backup.");
	for (size_t i = 0; i < list->count; i++) {
		const struct series_entry *item = &list->items[i];
		char time[TIME_TEXT_SIZE];
		time_format(item->facts.created_at_us, time);
		printf("%s  %s  %s  %lld bytes of the store, %lld objects\n", item->name, time,
		       kind_of(&item->facts), (long long)item->facts.store_bytes,
		       (long long)(item->facts.content_objects < 0 ? 0 : item->facts.content_objects));
	}
	if (*list->unreadable)
		printf("%s has no valid manifest.\n", list->unreadable);
	return *list->unreadable != '\0';
}

/* Gets the directory of the series: the argument, or backup.directory. Returns 0 or the exit
 * code. */
static int find_series(const struct command_line *line, struct config *config, char path[PATH_MAX])
{
	struct error error = {0};
	int exit_code = command_settings(line, &line->sources, config);
	if (exit_code)
		return exit_code;
	const char *given =
		line->argument_count ? line->arguments[0] : config->settings.backup_directory;
	if (!*given)
		return fail(line, error_set(&error, ERR_USAGE, MSG_ADMIN_NO_BACKUP_DIRECTORY, NULL),
		            &error);
	return realpath(given, path) ? 0 : command_usage_error(line, "%s: %s.", given, strerror(errno));
}

int command_backup_list(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	char directory[PATH_MAX];
	struct series_list list = {0};
	struct error error = {0};
	int exit_code = find_series(line, &config, directory);
	if (exit_code)
		return exit_code;
	int result = backup_series_list(directory, &list, &error);
	if (result)
		return fail(line, result, &error);
	exit_code = line->json ? print_list_json(directory, &list) : print_list(&list);
	backup_series_free(&list);
	return exit_code;
}

static void print_verified(const struct command_line *line, const char *directory, bool content,
                           const struct backup_facts *facts)
{
	BUF_AUTO struct buf text;
	buf_init(&text, RESULT_MAX);
	struct json_writer writer = {.out = &text};
	char time[TIME_TEXT_SIZE];
	bool read = content && facts->has_content_list;
	time_format(facts->created_at_us, time);
	json_begin_object(&writer, NULL);
	json_boolean(&writer, "content_verified", read);
	json_text(&writer, "created_at", time);
	json_text(&writer, "directory", directory);
	json_text(&writer, "kind", kind_of(facts));
	json_boolean(&writer, "valid", true);
	json_end_object(&writer);
	if (!line->json)
		printf("The backup of %s in %s is complete and undamaged%s.\n", time, directory,
		       read ? "" : "; its objects were not read");
	else if (!buf_check(&text))
		puts(text.data);
}

int command_backup_verify(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	char directory[PATH_MAX], series[PATH_MAX];
	struct backup_facts facts;
	struct error error = {0};
	bool content = !command_option(line, "no-content");
	int result = OK, exit_code = find_series(line, &config, directory);
	if (exit_code)
		return exit_code;
	if (!line->argument_count)
		result = backup_series_newest(strcpy(series, directory), directory, &error);
	if (!result)
		result = backup_verify(directory, NULL, config.settings.store_url, content, &facts, &error);
	if (result)
		return fail(line, result, &error);
	print_verified(line, directory, content, &facts);
	return 0;
}
