/* Commands and the parsing of their command lines.
 *
 * main.c lists the commands of this folder in one table; the operations of admin/admin.h are
 * commands too. Exit codes: 0: success; 1: the check failed or the request was refused; 2: wrong
 * usage or the command could not run; 3: a token rejected its PIN at start. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "admin/admin.h"
#include "base/error.h"
#include "cli/config.h"

#define COMMAND_OPTIONS_MAX 32

/* An option of one command. */
struct option {
	const char *name;  /* without dashes; NULL ends a list */
	const char *place; /* placeholder of the value in usage; NULL: a switch; "X...": repeatable */
	const char *help;
};

struct program;

struct command_line {
	const struct program *program;
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
	const char *arguments; /* placeholders in usage: "DIR"; NULL: none */
	unsigned arguments_least;
	unsigned arguments_most;
	/* Returns a possible value of the first argument, for completion; NULL after the last one. */
	const char *(*choice)(unsigned index);
	const char *summary;
	const struct option *options; /* NULL: those of every command only */
	bool only_given_file;         /* reads no settings file other than that of --config */
	bool confines_itself;         /* calls confine_memory itself */
	int (*run)(const struct command_line *line);
};

/* The operations of administration as commands (operations.c). `index` is below their number. */
struct operations {
	const char *(*name)(size_t index); /* NULL: after the last one */
	const char *(*summary)(size_t index);
	/* Parses the words after the name, and runs the operation. Returns the exit code. */
	int (*run)(struct command_line *line, size_t index, int count, char **words);
	/* Adds the options to the table of completions. */
	void (*complete)(size_t index, struct buf *out);
	/* Names a field in an error of the operation that `context` names (NULL: none). */
	field_namer *name_field;
	/* Chooses the settings file before a command runs. */
	void (*choose_file)(struct command_line *line, const struct command *command);
};
extern const struct operations admin_operations;

/* A program: `constancia`, or the tools of integrators alone. */
struct program {
	const struct command *commands;
	size_t command_count;
	const struct option *common_options; /* accepted by every command */
	const struct operations *operations; /* NULL: none, and no settings */
};
/* Runs the command that the words name. Returns the exit code. */
int program_run(const struct program *program, int argc, char **argv);

/* The common options of a program with settings. */
extern const struct option common_options[];
/* Prints a line of help: what to write, and what it means. */
void command_print_help(const char *name, const char *place, const char *help);
/* Prints the help of the options that every command has. */
void command_print_common(const struct command_line *line);

/* Parses the words that follow the command's name. Returns 0, or 2 after reporting the mistake. */
int command_line_parse(struct command_line *line, const struct option *options, int count,
                       char **words);
/* Returns the option's value; NULL: not given. */
const char *command_option(const struct command_line *line, const char *name);
/* Stores all values of a repeatable option in order and returns their number. */
unsigned command_options(const struct command_line *line, const char *name,
                         const char *values[COMMAND_OPTIONS_MAX]);

/* Reads --reason for a command that writes an audit log entry. *ret stays NULL when the option is
 * absent. Returns 0 or the exit code. */
#define REASON_OPTION                                                                              \
	{                                                                                              \
		"reason", "TEXT", "reason to record in the audit log"                                      \
	}
int command_reason(const struct command_line *line, const char **ret);

/* Writes the label of an operation's parameter on the command line: "ACCOUNT" or
 * "--unpaid-limit". */
void command_label(const struct admin_parameter *parameter, char label[ADMIN_LABEL_SIZE]);

/* Returns the message of an error of a command or of a start, which have no incident id and do not
 * speak HTTP. */
const char *command_message(const struct error *error);
void command_print_error(const struct command_line *line, const char *code, const char *message,
                         const char *cause);
/* Prints an error to standard error, as text or as JSON, and returns the exit code. */
int command_fail(const struct command_line *line, const struct error *error);
/* Prints a usage error and returns exit code 2. */
int command_usage_error(const struct command_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints the progress of a long check to standard error. The context is a bool, which is set to
 * true: something was printed. */
int command_show_progress(void *context, const char *path, uint64_t done, uint64_t total);
void command_hide_progress(bool shown);

/* Loads the settings and prints problems; prints warnings too unless `serving` is set. Returns 0 or
 * the exit code. The caller frees the config in any case. */
int command_settings(const struct command_line *line, const struct config_sources *sources,
                     struct config *ret_config);

/* A node_problem_listener callback (cli/node.h). Its context is a struct config. Adds the error to
 * the findings, unless they already have a problem of the same setting. */
void command_add_finding(void *context, bool warning, const char *setting,
                         const struct error *error);

/* Applies log.level. */
void command_apply_log_level(const struct settings *settings);
/* Prepares logging of a serving process: sets the log level and logs the warnings about
 * settings. */
void command_prepare_log(const struct config *config);

/* Returns the user on whose behalf this process runs, as claimed by SUDO_USER; NULL: not set. */
const char *command_claimed_user(void);
/* Runs an administration operation in the running service, or locally with the store opened in this
 * process. Returns 0 with the JSON document appended to `result`. */
int administer(const struct settings *settings, const struct admin_operation *operation,
               struct slice arguments, struct buf *result, struct error *error) MUST_CHECK;

int command_admin(const struct command_line *line, const struct admin_operation *operation);
int command_accept_rollback(const struct command_line *line);
int command_audit_export(const struct command_line *line);
int command_backup_list(const struct command_line *line);
int command_backup_verify(const struct command_line *line);
int command_bundle(const struct command_line *line);
/* The script templates of command_completion, generated by http/embed.py. */
extern const struct slice embedded_completion_bash, embedded_completion_fish,
	embedded_completion_zsh;
/* Prints the completion script of the named shell, for all commands of the program. */
int command_completion(const struct command_line *line);
/* Adds an option to the table of completions, and that a command takes files. */
void completion_add_option(const char *command, const char *label, const char *place,
                           const char *choices, const char *help, struct buf *out);
void completion_add_files(const char *command, const char *place, struct buf *out);
int command_certify(const struct command_line *line);
int command_chaos(const struct command_line *line);
int command_config_check(const struct command_line *line);
int command_config_print(const struct command_line *line);
int command_dev(const struct command_line *line);
int command_distribute(const struct command_line *line);
int command_events_tail(const struct command_line *line);
int command_init(const struct command_line *line);
int command_listen(const struct command_line *line);
int command_log_audit(const struct command_line *line);
int command_log_export(const struct command_line *line);
int command_log_check_proof(const struct command_line *line);
int command_log_watch(const struct command_line *line);
int command_migrate(const struct command_line *line);
int command_proof(const struct command_line *line);
int command_register(const struct command_line *line);
int command_restore(const struct command_line *line);
int command_setup(const struct command_line *line);
int command_signer_request(const struct command_line *line);
int command_serve(const struct command_line *line);
int command_trigger(const struct command_line *line);
/* Returns the types of notices one by one; NULL after the last one. */
const char *trigger_type(unsigned index);
int command_verify(const struct command_line *line);
int command_version(const struct command_line *line);
int command_witness_key(const struct command_line *line);
int command_witness_serve(const struct command_line *line);

extern const struct option accept_rollback_options[];
extern const struct option audit_export_options[];
extern const struct option backup_verify_options[];
extern const struct option bundle_options[];
extern const struct option certify_options[];
extern const struct option chaos_options[];
extern const struct option config_check_options[];
extern const struct option dev_options[];
extern const struct option distribute_options[];
extern const struct option events_tail_options[];
extern const struct option init_options[];
extern const struct option listen_options[];
extern const struct option log_audit_options[];
extern const struct option log_export_options[];
extern const struct option log_check_proof_options[];
extern const struct option log_watch_options[];
extern const struct option migrate_options[];
extern const struct option restore_options[];
extern const struct option proof_options[];
extern const struct option register_options[];
extern const struct option setup_options[];
extern const struct option signer_request_options[];
extern const struct option trigger_options[];
extern const struct option verify_options[];
extern const struct option witness_key_options[];
extern const struct option witness_serve_options[];

struct signing_request;
/* command_signer.c: makes the key unless it exists, gives it to the service's user, and writes the
 * request to `output`. */
int signer_request_run(const struct signing_request *request, const char *output, bool *ret_made,
                       struct error *error) MUST_CHECK;

/* Formats a JSON document for a terminal; lists become tables of `columns` (NULL: the document has
 * no list). */
void output_print(const struct json *json, const char *columns, struct buf *out);
/* Appends the members `columns` of `rows` (NULL: no rows) as comma-separated values; with `named`,
 * a header row comes first. */
void output_csv(const struct json *rows, const char *columns, bool named, struct buf *out);

#endif
