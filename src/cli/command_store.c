/* Commands that change a store while no service runs. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/node.h"
#include "seal/signer_log.h"
#include "service/history.h"

const struct option migrate_options[] = {
	{"dry-run", NULL, "print the steps that would be applied, and change nothing"},
	REASON_OPTION,
	{0},
};

const struct option distribute_options[] = {
	{"dry-run", NULL, "print the tables that would be distributed, and change nothing"},
	REASON_OPTION,
	{0},
};

const struct option accept_rollback_options[] = {
	{"reason", "TEXT", "reason for the rollback, recorded in the audit log (required)"},
	{0},
};

static int fail(const struct command_line *line, int code, struct error *error)
{
	error->code = code;
	return command_fail(line, error);
}

/* A schema change of a store, and the texts that describe its result. */
struct schema_change {
	int (*move)(const struct db_options *options, bool dry_run, struct act *act, struct buf *out,
	            const struct schema_progress *progress, struct error *error);
	const char *operation;
	const char *what;                       /* name of the list in JSON */
	const char *(*kind)(struct slice name); /* NULL: none is printed */
	const char *nothing, *done, *would;
};

/* Takes the first of the lines; false: there is none. */
static bool take_name(struct slice *rest, struct slice *ret)
{
	const char *end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
	if (!end)
		return false;
	*ret = slice_make(rest->data, (size_t)(end - rest->data));
	*rest = slice_make(end + 1, rest->size - ret->size - 1);
	return true;
}

static void print_names(const struct schema_change *schema_change, const struct buf *names,
                        bool applied)
{
	if (!names->size)
		puts(schema_change->nothing);
	else
		puts(applied ? schema_change->done : schema_change->would);
	for (struct slice name, rest = buf_slice(names); take_name(&rest, &name);) {
		const char *kind = schema_change->kind ? schema_change->kind(name) : "";
		printf(*kind ? "%.*s (%s)\n" : "%.*s%s\n", (int)name.size, name.data, kind);
	}
}

/* Prints the result; `names` has one name per line. */
static void print_result(const struct command_line *line, const struct schema_change *schema_change,
                         const struct buf *names, bool applied)
{
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)1 << 20);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_boolean(&writer, "applied", applied);
	json_begin_array(&writer, schema_change->what);
	for (struct slice name, rest = buf_slice(names); take_name(&rest, &name);)
		json_slice(&writer, NULL, name);
	json_end_array(&writer);
	if (schema_change->kind) {
		json_begin_array(&writer, "kinds");
		for (struct slice name, rest = buf_slice(names); take_name(&rest, &name);)
			json_text(&writer, NULL, schema_change->kind(name));
		json_end_array(&writer);
	}
	json_end_object(&writer);
	if (buf_check(&text))
		return;
	if (line->json)
		puts(text.data);
	else
		print_names(schema_change, names, applied);
}

/* Prints progress to standard error, so that standard output holds the result only. */
static void print_progress(void *context, const char *what, int64_t done, int64_t total)
{
	const struct command_line *line = context;
	if (line->json)
		fprintf(stderr, "{\"progress\":\"%s\",\"done\":%lld,\"total\":%lld}\n", what,
		        (long long)done, (long long)total);
	else
		fprintf(stderr, "%lld of %lld %s\n", (long long)done, (long long)total, what);
}

/* All nodes of a store with distributed tables stop for every step (db/schema.c). */
static const char *sharded_step_kind(struct slice name)
{
	(void)name;
	return "stop";
}

static int move(const struct command_line *line, const struct schema_change *schema_change)
{
	CONFIG_AUTO struct config config = {0};
	BUF_AUTO struct buf names;
	buf_init(&names, (size_t)64 * 1024);
	struct error error = {0};
	bool dry_run = command_option(line, "dry-run") != NULL;
	const char *reason = NULL;
	int exit_code = command_reason(line, &reason);
	if (!exit_code)
		exit_code = command_settings(line, &line->sources, &config);
	if (exit_code)
		return exit_code;
	struct db_options options = settings_store(&config.settings, false);
	struct schema_progress progress = {print_progress, (void *)line};
	ARENA_AUTO struct arena arena;
	arena_init(&arena, (size_t)4 << 20);
	struct actor actor;
	struct act act = {
		.by = &actor, .operation = schema_change->operation, .reason = reason, .arena = &arena};
	int result = admin_actor(getuid(), "command", command_claimed_user(), &arena, &actor);
	if (!result)
		result = schema_change->move(&options, dry_run, &act, &names, &progress, &error);
	if (!result)
		result = buf_check(&names);
	if (result)
		return fail(line, result, &error);
	struct schema_change shown = *schema_change;
	if (shown.kind && options.sharded)
		shown.kind = sharded_step_kind;
	print_result(line, &shown, &names, !dry_run && names.size);
	return 0;
}

int command_migrate(const struct command_line *line)
{
	static const struct schema_change steps = {.move = store_migrate,
	                                           .operation = "store migrate",
	                                           .what = "steps",
	                                           .kind = store_step_kind,
	                                           .nothing = "The schema is up to date.",
	                                           .done = "Applied:",
	                                           .would = "Would apply:"};
	return move(line, &steps);
}

int command_distribute(const struct command_line *line)
{
	static const struct schema_change distribution = {.move = store_distribute,
	                                                  .operation = "store distribute",
	                                                  .what = "tables",
	                                                  .nothing = "All tables are distributed.",
	                                                  .done = "Distributed:",
	                                                  .would = "Would distribute:"};
	return move(line, &distribution);
}

static void print_accepted(const struct command_line *line, const struct history *history)
{
	if (line->json)
		printf("{\"store_id\":\"%s\",\"round\":%lld,\"known_round\":%lld,\"log_ended\":%s}\n",
		       history->store_id, (long long)history->found.round, (long long)history->known.round,
		       history->log_ended ? "true" : "false");
	else
		printf("Recorded: the store was rolled back from round %lld to round %lld. Next "
		       "step: %s'constancia store check'.\n",
		       (long long)history->known.round, (long long)history->found.round,
		       history->log_ended ? "set log.origin to a new name on all nodes, because the log of "
		                            "segments has ended; then "
		                          : "");
}

int command_accept_rollback(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	struct error error = {0};
	struct history history;
	const char *reason = NULL;
	assert(admin_reason.most <= SIGNER_LOG_REASON_MAX);
	int exit_code = command_reason(line, &reason);
	if (!exit_code && !reason)
		return command_usage_error(line, "--reason is missing. See --help.");
	if (!exit_code)
		exit_code = command_settings(line, &line->sources, &config);
	if (exit_code)
		return exit_code;
	int result = node_accept_rollback(&config.settings, slice_of(reason), &history, &error);
	if (result)
		return fail(line, result, &error);
	print_accepted(line, &history);
	return 0;
}
