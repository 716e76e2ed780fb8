/* Backup and restore with PostgreSQL's own programs pg_dump and pg_restore, which operators know
 * and whose files are readable across many versions. Connection options are passed as in the
 * address. The password is passed in the environment, which only this user can read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/postgres/postgres_internal.h"

#define ADDRESS_MAX ((size_t)16 * 1024)
#define WORDS_MAX ((size_t)1024) /* of a program's error output */
#define ENVIRONMENT_MAX 1024
#define ARGUMENTS_MAX 12

/* ---- running a program ---- */

struct program {
	const char *arguments[ARGUMENTS_MAX]; /* the name first, ended by NULL */
	const char *password;                 /* "PGPASSWORD=…"; NULL: none in the address */
};

/* Builds this process's environment plus the password. */
static bool fill_environment(const struct program *program, char *list[ENVIRONMENT_MAX])
{
	size_t count = 0;
	for (char **at = environ; *at; at++) {
		if (program->password && strncmp(*at, "PGPASSWORD=", 11) == 0)
			continue;
		if (count == ENVIRONMENT_MAX - 2)
			return false;
		list[count++] = *at;
	}
	if (program->password)
		list[count++] = (char *)program->password;
	list[count] = NULL;
	return true;
}

/* This process's threads block signals; the program must not inherit that. It inherits no open
 * files. */
static int spawn(const struct program *program, int words, pid_t *ret_child)
{
	char *environment[ENVIRONMENT_MAX];
	if (!fill_environment(program, environment))
		return E2BIG;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, words, STDERR_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int result = posix_spawnp(ret_child, program->arguments[0], &files, &attributes,
	                          (char *const *)program->arguments, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return result;
}

/* Reads the program's standard error until it is closed, as one line; truncates long output. */
static void read_output(int words, char text[WORDS_MAX])
{
	size_t size = 0;
	char more[512];
	ssize_t got;
	while ((got = read(words, more, sizeof more)) > 0 || (got < 0 && errno == EINTR)) {
		size_t taken = got > 0 ? (size_t)got : 0;
		if (taken > WORDS_MAX - 1 - size)
			taken = WORDS_MAX - 1 - size;
		memcpy(text + size, more, taken);
		size += taken;
	}
	while (size > 0 && text[size - 1] == '\n')
		size--;
	text[size] = '\0';
	for (char *at = text; *at; at++)
		if (*at == '\n')
			*at = ' ';
}

static int run(const struct program *program, struct error *error)
{
	int words[2];
	if (pipe2(words, O_CLOEXEC) != 0)
		return error_cause(error, ERR_UNAVAILABLE, "a pipe: %s", strerror(errno));
	pid_t child;
	const char *name = program->arguments[0];
	int failure = spawn(program, words[1], &child);
	close(words[1]);
	if (failure) {
		close(words[0]);
		return error_set(error, ERR_UNAVAILABLE, MSG_STORE_NO_PROGRAM, name, strerror(failure),
		                 NULL);
	}
	char text[WORDS_MAX];
	read_output(words[0], text);
	close(words[0]);
	int status = -1;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return OK;
	return error_set(error, ERR_UNAVAILABLE, MSG_STORE_PROGRAM_FAILED, name, text, NULL);
}

/* ---- the address ---- */

static void add_option(struct buf *text, const char *keyword, const char *value)
{
	buf_printf(text, "%s='", keyword);
	for (; *value; value++) {
		if (*value == '\'' || *value == '\\')
			buf_add_byte(text, '\\');
		buf_add_byte(text, *value);
	}
	buf_add_text(text, "' ");
}

/* Splits an address into `--dbname=` without secrets, and the password. */
static int split_address(const char *url, struct buf *ret_argument, struct buf *ret_password,
                         struct error *error)
{
	PQconninfoOption *options;
	int result = pg_parse_url(url, &options, error);
	if (result)
		return result;
	/* An option of the address overrides this one. A copy of a standby could lack acknowledged
	 * data. */
	buf_add_text(ret_argument, "--dbname=target_session_attrs='read-write' ");
	for (const PQconninfoOption *at = options; at->keyword; at++) {
		bool secret = strchr(at->dispchar, '*') != NULL;
		if (at->val && !secret)
			add_option(ret_argument, at->keyword, at->val);
		else if (at->val && strcmp(at->keyword, "password") == 0)
			buf_printf(ret_password, "PGPASSWORD=%s", at->val);
	}
	PQconninfoFree(options);
	result = buf_check(ret_argument);
	return result ? result : buf_check(ret_password);
}

/* Runs a program with the address and the arguments in `further`, ended by NULL. */
static int run_connected(const char *url, const char *name, const char *const *further,
                         struct error *error)
{
	BUF_AUTO struct buf argument;
	BUF_AUTO struct buf password;
	buf_init(&argument, ADDRESS_MAX);
	buf_init(&password, ADDRESS_MAX);
	int result = split_address(url, &argument, &password, error);
	if (!result) {
		struct program program = {
			.arguments = {name, "--no-password", "--no-owner", "--no-privileges", argument.data},
			.password = password.data};
		for (size_t count = 5; *further; count++, further++)
			program.arguments[count] = *further;
		result = run(&program, error);
	}
	if (password.data)
		explicit_bzero(password.data, password.size);
	return result;
}

/* ---- backup and restore ---- */

/* Gets pg_dump's pattern for all tables in the schema of the store. */
static int store_tables(struct db *base, char pattern[256], struct error *error)
{
	struct db_connection *reader = db_take_reader(base);
	struct db_query *query = db_query(reader, "SELECT quote_ident(current_schema())");
	bool found = db_step(query);
	struct slice schema = found ? db_text(query, 0) : slice_of("");
	int size = snprintf(pattern, 256, "--table=%.*s.*", (int)schema.size, schema.data);
	int result = db_end(query, error);
	db_give(reader);
	if (!result && (schema.size == 0 || size >= 256))
		result = error_cause(error, ERR_REFUSED, "postgresql: the search_path has no schema");
	return result;
}

/* Uses one snapshot of the primary; blocks no other transaction. */
int pg_backup(struct db *base, const char *path, struct error *error)
{
	char pattern[256], file[PATH_MAX + 8];
	snprintf(file, sizeof file, "--file=%s", path);
	int result = store_tables(base, pattern, error);
	if (result)
		return result;
	const char *further[] = {"--format=custom", "--compress=1", ("--exclude-table=" DB_RESTORING),
	                         pattern,           file,           NULL};
	return run_connected(pg_db(base)->url, "pg_dump", further, error);
}

int pg_vacant(const struct db_options *options, struct error *error)
{
	struct db *db;
	int result = db_open(options, NULL, &db, error);
	if (result)
		return result;
	struct db_connection *writer = db_take_writer(db);
	bool vacant = false;
	result = db_begin(writer, error); /* fails without the required standbys */
	if (!result) {
		struct db_query *query =
			db_query(writer, "SELECT count(*) FROM pg_class JOIN pg_namespace "
		                     "ON pg_namespace.oid = relnamespace "
		                     "WHERE nspname = current_schema() AND relkind IN ('r', 'p') "
		                     "AND relname <> '" DB_RESTORING "'");
		vacant = db_step(query) && db_integer(query, 0) == 0;
		result = db_end(query, error);
	}
	db_give(writer);
	db_close(db);
	char shown[256];
	db_shown_url(options->url, shown, sizeof shown);
	if (!result && !vacant)
		result = error_set(error, ERR_REFUSED, MSG_STORE_NOT_VACANT, shown, NULL);
	return result;
}

/* ---- the mark ---- */

typedef int change_function(struct db_connection *writer, const struct db_mark *mark,
                            struct error *error);

static int change(const struct db_options *options, change_function *function,
                  const struct db_mark *mark, struct error *error)
{
	struct db *db;
	int result = db_open(options, NULL, &db, error);
	if (result)
		return result;
	struct db_connection *writer = db_take_writer(db);
	result = db_begin(writer, error);
	if (!result)
		result = function(writer, mark, error);
	if (!result)
		result = db_commit(writer, error);
	db_give(writer);
	db_close(db);
	return result;
}

#define DROP "DROP TABLE IF EXISTS " DB_RESTORING

/* Replaces a mark of a restore that was killed. */
static int announce(struct db_connection *writer, const struct db_mark *mark, struct error *error)
{
	int result = db_run(writer, DROP, error);
	if (!result)
		result = db_run(writer, "CREATE TABLE " DB_RESTORING " (name TEXT, value TEXT)", error);
	if (result)
		return result;
	struct db_query *query = db_query(writer, "INSERT INTO " DB_RESTORING " VALUES ($1, $2)");
	db_bind(query, mark->name, mark->value);
	return db_execute(query, NULL, error);
}

static int call_off(struct db_connection *writer, const struct db_mark *mark, struct error *error)
{
	return db_run(writer, DROP, error);
}

/* Commits after everything that pg_restore wrote; once it is answered, the standbys have the
 * data. */
static int confirm(struct db_connection *writer, const struct db_mark *mark, struct error *error)
{
	int64_t changes = 0;
	int result = db_execute(db_query(writer, "UPDATE settings SET value = value "
	                                         "WHERE name = 'schema'"),
	                        &changes, error);
	if (!result && changes != 1)
		result = error_cause(error, ERR_CORRUPT, "the restored data does not name its schema");
	if (result)
		return result;
	struct db_query *query =
		db_query(writer, "INSERT INTO settings (name, value) VALUES ($1, $2)"
	                     " ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind(query, mark->name, mark->value);
	result = db_execute(query, NULL, error);
	return result ? result : call_off(writer, mark, error);
}

int pg_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
               struct error *error)
{
	const char *further[] = {"--single-transaction", "--exit-on-error", path, NULL};
	int result = change(options, announce, mark, error);
	if (result)
		return result;
	result = run_connected(options->url, "pg_restore", further, error);
	if (result) {
		struct error ignored = {0}; /* leftovers do not prevent another restore */
		(void)!change(options, call_off, mark, &ignored);
		return result;
	}
	if (change(options, confirm, mark, error)) {
		if (error)
			error->code = ERR_UNKNOWN_OUTCOME;
		result = ERR_UNKNOWN_OUTCOME;
	}
	return result;
}
