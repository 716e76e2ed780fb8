/* Commands and their command lines.
 *
 * One table in main.c lists the commands of this folder; the operations of admin/admin.h are
 * commands too. Exit codes: 0 done, 1 refused, 2 wrong usage or could not be done, 3 a token
 * refused its PIN at a start. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "admin/admin.h"
#include "base/error.h"
#include "cli/config.h"

#define COMMAND_OPTIONS_MAX 32

/* A flag; those that every command takes are known anyway. */
struct option {
	const char *name;  /* without dashes; NULL ends a list */
	const char *place; /* how usage shows the value; NULL: a switch; "X...": it may be repeated */
	const char *help;
};

struct command_line {
	const char *command; /* "store migrate" */
	struct config_sources sources;
	bool json;
	bool help;
	struct {
		const char *name;
		const char *value; /* "true" for a switch */
	} given[COMMAND_OPTIONS_MAX];
	unsigned given_count;
	const char **arguments; /* positional, in order */
	unsigned argument_count;
};

struct command {
	const char *name;
	const char *arguments; /* as usage shows them: "DIR"; NULL: none */
	unsigned arguments_least;
	unsigned arguments_most;
	const char *summary;
	const struct option *options; /* NULL: none of its own */
	int (*run)(const struct command_line *line);
};

extern const struct option common_options[];

/* Reads the words behind the command's name. 0, or 2 after having told what is wrong. */
int command_line_parse(struct command_line *line, const struct option *options, int count,
                       char **words);
/* NULL: not given. */
const char *command_option(const struct command_line *line, const char *name);
/* All values of a repeatable option, in order; how many. */
unsigned command_options(const struct command_line *line, const char *name,
                         const char *values[COMMAND_OPTIONS_MAX]);

/* --reason of a command that leaves an act by itself; *ret stays NULL where it is not given. 0, or
 * the exit code. */
#define REASON_OPTION                                                                              \
	{                                                                                              \
		"reason", "TEXT", "why; kept with the record of the act"                                   \
	}
int command_reason(const struct command_line *line, const char **ret);

/* How a command takes a parameter of an operation: "ACCOUNT" or "--unpaid-limit". */
void command_label(const struct admin_parameter *parameter, char label[ADMIN_LABEL_SIZE]);

/* Tells an error on standard error, as text or as JSON, and gives the exit code. */
int command_fail(const struct command_line *line, const struct error *error);
/* Wrong usage: 2. */
int command_misused(const struct command_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* How far a long check has come, on standard error; the context is a bool that is set: something is
 * shown. */
int command_show_progress(void *context, const char *path, uint64_t done, uint64_t total);
void command_hide_progress(bool shown);

/* Loads the settings; tells problems, and unless `serving` warnings too. 0, or the exit code. The
 * config is to be freed in any case. */
int command_settings(const struct command_line *line, const struct config_sources *sources,
                     struct config *ret_config);

/* A node_refused (cli/node.h); context: a struct config, which gets it as a finding unless
 * something wrong with the setting is one already. */
void command_note_refusal(void *context, bool warning, const char *setting,
                          const struct error *error);

/* What log.level says, from now on. */
void serving_log_level(const struct settings *settings);
/* For a process that serves: sets the log's level, and logs the settings' warnings. */
void serving_log(const struct config *config);

/* Who is said to be behind the user of this process (sudo says so); NULL: nothing is. */
const char *command_claims(void);
/* Runs an administration operation: in the running service, or with the store opened here. 0 with
 * the JSON document appended to `result`. */
int administer(const struct settings *settings, const struct admin_operation *operation,
               struct slice arguments, struct buf *result, struct error *error) MUST_CHECK;

int command_admin(const struct command_line *line, const struct admin_operation *operation);
int command_accept_rollback(const struct command_line *line);
int command_audit_export(const struct command_line *line);
int command_bundle(const struct command_line *line);
/* Prints the script for the shell that is named; `commands` is the table of all but operations. */
int command_completion(const struct command_line *line, const struct command *commands,
                       size_t count);
int command_config_check(const struct command_line *line);
int command_config_print(const struct command_line *line);
int command_dev(const struct command_line *line);
int command_distribute(const struct command_line *line);
int command_init(const struct command_line *line);
int command_migrate(const struct command_line *line);
int command_proof(const struct command_line *line);
int command_restore(const struct command_line *line);
int command_serve(const struct command_line *line);
int command_verify(const struct command_line *line);
int command_version(const struct command_line *line);

extern const struct option accept_rollback_options[];
extern const struct option audit_export_options[];
extern const struct option bundle_options[];
extern const struct option config_check_options[];
extern const struct option dev_options[];
extern const struct option distribute_options[];
extern const struct option init_options[];
extern const struct option migrate_options[];
extern const struct option restore_options[];
extern const struct option proof_options[];
extern const struct option verify_options[];

/* Prints a JSON document for people: lists as tables of `columns` (NULL: no list). */
void output_print(const struct json *json, const char *columns, struct buf *out);
/* The members `columns` of rows (NULL: none) as comma-separated values, their names before them
 * when `named`. */
void output_csv(const struct json *rows, const char *columns, bool named, struct buf *out);

#endif
