/* Restore of a backup in one command: the backup is verified and restored, a rollback is confirmed,
 * the result is checked, and what remains to be done is printed. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/backup_series.h"
#include "base/durable.h"
#include "cli/command.h"
#include "cli/node.h"
#include "cli/service_user.h"
#include "service/history.h"

#define RESULT_MAX ((size_t)16 << 20)
#define STEP_SIZE (PATH_MAX + 256)
#define STEPS_MAX 6

const struct option restore_options[] = {
	{"latest", NULL, "restore the newest backup of backup.directory"},
	{"live", NULL,
     "make the copy the live store at once; by default it is a read-only copy "
     "until 'store wake'"},
	{"no-check", NULL, "do not check the restored store"},
	{"skip-damaged", NULL, "restore without the objects that are damaged or missing in the backup"},
	REASON_OPTION,
	{0},
};

/* What the command did, and what is left. */
struct recovery {
	const struct command_line *line;
	struct config *config;
	const char *reason;
	bool live;
	char directory[PATH_MAX];
	struct backup_facts facts;
	bool checked, valid;
	struct json *check;              /* result of `store check` */
	struct skipped_objects *skipped; /* NULL: the backup must have all of its objects */
	bool rollback_found, rollback_accepted, log_ended;
	char steps[STEPS_MAX][STEP_SIZE];
	size_t step_count;
	struct arena arena;
};

static int fail(const struct command_line *line, int code, struct error *error)
{
	error->code = code;
	return command_fail(line, error);
}

/* ---- which backup ---- */

static int find_latest(const struct settings *settings, char path[PATH_MAX], struct error *error)
{
	if (!*settings->backup_directory)
		return error_set(error, ERR_USAGE, MSG_ADMIN_NO_BACKUP_DIRECTORY, NULL);
	return backup_series_newest(settings->backup_directory, path, error);
}

/* Returns 0 or the exit code. */
static int find_backup(struct recovery *recovery)
{
	const struct command_line *line = recovery->line;
	struct error error = {0};
	bool latest = command_option(line, "latest") != NULL;
	if (latest == (line->argument_count > 0))
		return command_usage_error(line, "Specify either DIR or --latest.");
	const struct service_user owner = service_user_of(recovery->config->settings.service_data_dir);
	int result = service_user_become(&owner, &error);
	if (!result && latest)
		result = find_latest(&recovery->config->settings, recovery->directory, &error);
	if (result)
		return fail(line, result, &error);
	if (!latest && !realpath(line->arguments[0], recovery->directory))
		return command_usage_error(line, "%s: %s.", line->arguments[0], strerror(errno));
	return 0;
}

/* ---- restoring ---- */

static int record_entry(const struct settings *settings, const char *operation,
                        const struct buf *arguments, const char *reason, struct error *error)
{
	struct db_options options = settings_store(settings, false);
	struct store *store;
	int result = buf_check(arguments);
	if (!result)
		result = store_open(&options, &store, error);
	if (result)
		return result;
	result = admin_write_audit_record(store, operation, buf_slice(arguments), reason, error);
	store_close(store);
	return result;
}

static int record_restore(const struct recovery *recovery, const char *created_at,
                          struct error *error)
{
	BUF_AUTO struct buf arguments;
	buf_init(&arguments, (size_t)8 * 1024);
	struct json_writer writer = {.out = &arguments};
	json_begin_object(&writer, NULL);
	json_text(&writer, "created_at", created_at);
	json_text(&writer, "directory", recovery->directory);
	json_boolean(&writer, "live", recovery->live);
	if (recovery->skipped)
		json_integer(&writer, "skipped_objects", recovery->skipped->count);
	json_end_object(&writer);
	return record_entry(&recovery->config->settings, "store restore", &arguments, recovery->reason,
	                    error);
}

/* Restores the backup. A migration of its schema is recorded as an audit log entry of its own. */
static int restore_backup(struct recovery *recovery, struct error *error)
{
	const struct settings *settings = &recovery->config->settings;
	struct backup_facts *ret = &recovery->facts;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, (size_t)4 << 20);
	struct actor actor;
	struct act migration = {
		.by = &actor, .operation = "store migrate", .reason = recovery->reason, .arena = &arena};
	struct content_options content = settings_content(settings, true);
	struct db_options store = settings_store(settings, false);
	char time[TIME_TEXT_SIZE];
	int result = admin_actor(getuid(), "command", command_claimed_user(), &arena, &actor);
	if (!result)
		result = durable_make_directory(settings->service_data_dir, error);
	if (!result)
		result = backup_restore(recovery->directory, &store, &content, recovery->live, &migration,
		                        recovery->skipped, ret, error);
	if (result)
		return result;
	time_format(ret->created_at_us, time);
	return record_restore(recovery, time, error);
}

/* Prints what to do about a store that is in the way. */
static void explain_refusal(const struct recovery *recovery)
{
	const struct settings *settings = &recovery->config->settings;
	const char *data = settings->service_data_dir;
	const char *file = db_url_path(settings->store_url);
	if (recovery->line->json)
		return;
	if (!file) {
		fputs("Restore into an empty database; create it as described in postgresql.md.\n", stderr);
		return;
	}
	fprintf(stderr,
	        "If the store there is to be replaced, move the data directory away and keep only the\n"
	        "records of the signing process; then repeat the command:\n"
	        "  systemctl stop constancia.socket constancia.service\n"
	        "  mv %s %s.old\n"
	        "  install -d -o constancia -g constancia -m 0700 %s\n"
	        "  mv %s.old/signer %s/\n",
	        data, data, data, data, data);
}

/* Confirms that the store is older than this node has seen it, if a reason was given. */
static int settle_rollback(struct recovery *recovery, struct error *error)
{
	const struct settings *settings = &recovery->config->settings;
	struct db_options options = settings_store(settings, false);
	struct store *store;
	struct history history;
	int result = store_open(&options, &store, error);
	if (result)
		return result;
	result = history_inspect(store, settings->signer_directory, error);
	store_close(store);
	if (result != ERR_CORRUPT)
		return result;
	error_clear(error);
	recovery->rollback_found = true;
	if (!recovery->reason)
		return OK;
	result = node_accept_rollback(settings, slice_of(recovery->reason), &history, error);
	recovery->rollback_accepted = !result;
	recovery->log_ended = !result && history.log_ended;
	return result;
}

/* ---- checking ---- */

/* Returns in *ret_known whether all `problems` are known: objects that the backup recorded as
 * missing, by name, and a rollback that is not confirmed yet, which is among the steps that are
 * left. The check names only the first objects; then some are not known. */
static int compare_problems(struct recovery *recovery, int64_t problems, bool *ret_known,
                            struct error *error)
{
	const struct json *missing = json_member(recovery->check, "missing_objects");
	size_t count = missing ? missing->count : 0, at = 0;
	struct slice *names = arena_alloc(&recovery->arena, (count + 1) * sizeof *names);
	bool *known = arena_alloc(&recovery->arena, count + 1);
	if (!names || !known)
		return ERR_NO_MEMORY;
	for (const struct json *item = count ? missing->first : NULL; item; item = item->next)
		names[at++] = item->text;
	int result =
		backup_find_missing(recovery->directory, &recovery->facts, names, count, known, error);
	if (result)
		return result;
	int64_t explained = recovery->rollback_found && !recovery->rollback_accepted;
	for (size_t i = 0; i < count; i++)
		explained += known[i];
	*ret_known = explained == problems;
	return OK;
}

static int check_store(struct recovery *recovery, struct error *error)
{
	BUF_AUTO struct buf result;
	buf_init(&result, RESULT_MAX);
	int64_t problems = 0;
	int code = administer(&recovery->config->settings, admin_find(slice_of("store check")),
	                      slice_of("{}"), &result, error);
	if (code)
		return code;
	char *text = arena_copy(&recovery->arena, result.data, result.size);
	code = text ? json_parse(&recovery->arena, slice_make(text, result.size), NULL,
	                         &recovery->check, error)
	            : ERR_NO_MEMORY;
	if (code)
		return code;
	(void)json_get_integer(recovery->check, "problem_count", &problems);
	recovery->checked = true;
	return compare_problems(recovery, problems, &recovery->valid, error);
}

static void find_missing(void *context, bool warning, const char *setting,
                         const struct error *error)
{
	struct recovery *recovery = context;
	command_add_finding(recovery->config, warning, setting, error);
}

/* Files that settings name and that are not in a backup. */
static void check_key_files(struct recovery *recovery)
{
	const struct settings *settings = &recovery->config->settings;
	const struct {
		const char *setting, *path;
	} files[] = {{"signer.key", settings->signer_key},
	             {"signer.chain", settings->signer_chain},
	             {"signer.passphrase_file", settings->signer_passphrase_file},
	             {"signer.next_key", settings->signer_next_key},
	             {"service.tls_certificate", settings->service_tls_certificate},
	             {"service.tls_key", settings->service_tls_key}};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct error error = {0};
		if (*files[i].path != '/' || access(files[i].path, R_OK) == 0)
			continue;
		(void)error_cause(&error, ERR_IO, "%s: %s", files[i].path, strerror(errno));
		command_add_finding(recovery->config, false, files[i].setting, &error);
	}
}

/* ---- the steps that are left ---- */

static void add_step(struct recovery *recovery, const char *command)
{
	const char *file = recovery->line->sources.file;
	char *step = recovery->steps[recovery->step_count++], whole[PATH_MAX];
	if (strncmp(command, "constancia ", strlen("constancia ")) != 0) {
		snprintf(step, STEP_SIZE, "%s", command);
		return;
	}
	/* The service's commands run as the owner of the data directory. */
	const struct service_user user = service_user_of(recovery->config->settings.service_data_dir);
	const char *owner = user.name;
	snprintf(step, STEP_SIZE, "%s%s%s%s%s%s", *owner ? "sudo -u " : "", owner, *owner ? " " : "",
	         command, file ? " --config " : "", file ? realpath(file, whole) ?: file : "");
}

static void find_steps(struct recovery *recovery)
{
	if (recovery->config->settings.store_sharded)
		add_step(recovery, "constancia store distribute");
	if (recovery->rollback_found && !recovery->rollback_accepted)
		add_step(recovery, "constancia store accept-rollback --reason TEXT");
	if (!recovery->checked)
		add_step(recovery, "constancia store check");
	const char *file = recovery->line->sources.file; /* the unit reads the usual one only */
	add_step(recovery, file && strcmp(file, config_default_path()) != 0
	                       ? "constancia serve"
	                       : "systemctl start constancia");
	if (!recovery->live)
		add_step(recovery, "constancia store wake");
}

static int64_t count_skipped(const struct recovery *recovery)
{
	return recovery->skipped ? recovery->skipped->count : 0;
}

static size_t count_skipped_names(const struct recovery *recovery)
{
	int64_t count = count_skipped(recovery);
	return (size_t)(count < SKIPPED_NAMES_MAX ? count : SKIPPED_NAMES_MAX);
}

static void write_problems(const struct recovery *recovery, struct json_writer *writer)
{
	json_integer(writer, "skipped_count", count_skipped(recovery));
	json_begin_array(writer, "skipped_objects");
	for (size_t i = 0; i < count_skipped_names(recovery); i++)
		json_text(writer, NULL, recovery->skipped->names[i]);
	json_end_array(writer);
	const struct json *problems = json_member(recovery->check, "problems");
	json_begin_array(writer, "problems");
	for (const struct json *at = problems ? problems->first : NULL; at; at = at->next)
		json_slice(writer, NULL, at->text);
	json_end_array(writer);
	json_begin_array(writer, "missing");
	for (const struct config_finding *at = recovery->config->findings; at; at = at->next) {
		if (at->warning)
			continue;
		json_begin_object(writer, NULL);
		json_text(writer, "cause", at->what);
		json_text(writer, "setting", at->setting);
		json_end_object(writer);
	}
	json_end_array(writer);
}

static int print_json(const struct recovery *recovery)
{
	BUF_AUTO struct buf text;
	buf_init(&text, RESULT_MAX);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_time(&writer, "created_at", recovery->facts.created_at_us);
	json_text(&writer, "directory", recovery->directory);
	json_integer(&writer, "store_bytes", recovery->facts.store_bytes);
	json_integer(&writer, "content_objects", recovery->facts.content_objects);
	json_boolean(&writer, "quiet", !recovery->live);
	if (recovery->checked)
		json_boolean(&writer, "valid", recovery->valid);
	else
		json_null(&writer, "valid");
	json_boolean(&writer, "rollback_found", recovery->rollback_found);
	json_boolean(&writer, "rollback_accepted", recovery->rollback_accepted);
	json_boolean(&writer, "log_ended", recovery->log_ended);
	write_problems(recovery, &writer);
	json_begin_array(&writer, "next");
	for (size_t i = 0; i < recovery->step_count; i++)
		json_text(&writer, NULL, recovery->steps[i]);
	json_end_array(&writer);
	json_end_object(&writer);
	if (buf_check(&text))
		return 2;
	puts(text.data);
	return 0;
}

static void print_check(const struct recovery *recovery)
{
	int64_t events = 0, objects = 0, problems = 0;
	(void)json_get_integer(recovery->check, "events", &events);
	(void)json_get_integer(recovery->check, "objects", &objects);
	(void)json_get_integer(recovery->check, "problem_count", &problems);
	printf("Checked: %lld events, %lld objects, %lld problems.\n", (long long)events,
	       (long long)objects, (long long)problems);
	const struct json *list = json_member(recovery->check, "problems");
	for (const struct json *at = list ? list->first : NULL; at; at = at->next)
		printf("  %.*s\n", (int)at->text.size, at->text.data);
}

static int print_text(const struct recovery *recovery)
{
	char time[TIME_TEXT_SIZE];
	time_format(recovery->facts.created_at_us, time);
	printf("Restored the backup of %s from %s.%s\n", time, recovery->directory,
	       recovery->live ? ""
	                      : " The copy is read-only: it sends and acknowledges nothing until "
	                        "'constancia store wake'.");
	if (recovery->rollback_accepted)
		puts("The rollback is confirmed.");
	if (recovery->log_ended)
		puts("The log of segments has ended: set log.origin to a new name on all nodes.");
	if (count_skipped(recovery))
		printf("Skipped, because they are damaged or missing in the backup: %lld.\n",
		       (long long)count_skipped(recovery));
	for (size_t i = 0; i < count_skipped_names(recovery); i++)
		printf("  %s\n", recovery->skipped->names[i]);
	if (recovery->checked)
		print_check(recovery);
	bool missing = false;
	for (const struct config_finding *at = recovery->config->findings; at; at = at->next) {
		if (at->warning)
			continue;
		if (!missing)
			puts("The service needs what the backup does not contain:");
		missing = true;
		printf("  %s: %s\n", at->setting ? at->setting : "settings", at->what);
	}
	puts("Next steps:");
	for (size_t i = 0; i < recovery->step_count; i++)
		printf("  %s\n", recovery->steps[i]);
	if (!recovery->live)
		puts("Run the last one only if this copy takes over and the original has ended for good; a "
		     "drill ends without it.");
	return 0;
}

static int recover(struct recovery *recovery)
{
	struct error error = {0};
	const struct command_line *line = recovery->line;
	int result = restore_backup(recovery, &error);
	if (result) {
		int exit_code = fail(line, result, &error);
		if (error.message == MSG_ADMIN_STORE_EXISTS || error.message == MSG_STORE_NOT_VACANT)
			explain_refusal(recovery);
		return exit_code;
	}
	bool sharded = recovery->config->settings.store_sharded;
	if (!sharded)
		result = settle_rollback(recovery, &error);
	if (!result && !sharded && !command_option(line, "no-check"))
		result = check_store(recovery, &error);
	if (result) {
		fprintf(stderr, "The backup is restored, but a later step failed:\n");
		return fail(line, result, &error);
	}
	check_key_files(recovery);
	node_check_start(&recovery->config->settings, NULL, find_missing, recovery);
	find_steps(recovery);
	int exit_code = line->json ? print_json(recovery) : print_text(recovery);
	return exit_code ? exit_code
	                 : count_skipped(recovery) > 0 || (recovery->checked && !recovery->valid);
}

int command_restore(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	struct recovery recovery = {
		.line = line, .config = &config, .live = command_option(line, "live") != NULL};
	int exit_code = command_reason(line, &recovery.reason);
	if (!exit_code)
		exit_code = command_settings(line, &line->sources, &config);
	if (!exit_code)
		exit_code = find_backup(&recovery);
	if (exit_code)
		return exit_code;
	arena_init(&recovery.arena, RESULT_MAX);
	struct error error = {0};
	if (command_option(line, "skip-damaged")) {
		recovery.skipped = arena_alloc(&recovery.arena, sizeof *recovery.skipped);
		if (!recovery.skipped)
			exit_code = fail(line, ERR_NO_MEMORY, &error);
	}
	if (!exit_code)
		exit_code = recover(&recovery);
	arena_free(&recovery.arena);
	return exit_code;
}
