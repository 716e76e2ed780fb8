/* Backup and restore of the embedded store: copies are files of SQLite, too. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable.h"
#include "db/sqlite/internal.h"

int sqlite_backup(struct db *base, const char *path, struct error *error)
{
	struct db_connection *reader = db_take_reader(base);
	struct db_query *query = db_query(reader, "VACUUM INTO $1");
	db_bind_string(query, path);
	int result = db_execute(query, NULL, error);
	db_give(reader);
	if (!result)
		result = durable_sync(path, error);
	return result ? result : durable_sync_above(path, error);
}

static int refuse(const struct db_options *options, const char *suffix, struct error *error)
{
	char path[SQLITE_PATH_MAX];
	struct stat status;
	snprintf(path, sizeof path, "%s%s", options->url + strlen("sqlite:"), suffix);
	if (lstat(path, &status) == 0 && (!*suffix || status.st_size > 0))
		return error_set(error, ERR_REFUSED, MSG_ADMIN_STORE_EXISTS, path, NULL);
	return OK;
}

int sqlite_refuse_lone_log(const struct db_options *options, struct error *error)
{
	return refuse(options, SQLITE_LOG_SUFFIX, error);
}

/* A log or a journal that a store left behind would be played into the one brought back. */
int sqlite_vacant(const struct db_options *options, struct error *error)
{
	int result = refuse(options, "", error);
	if (!result)
		result = sqlite_refuse_lone_log(options, error);
	return result ? result : refuse(options, "-journal", error);
}

/* In the file itself, which nobody has open: a journal that is deleted leaves nothing beside it. */
static int write_mark(const char *path, const struct db_mark *mark, struct error *error)
{
	static const char statement[] = "INSERT INTO settings (name, value) VALUES ($1, $2)"
									" ON CONFLICT (name) DO UPDATE SET value = excluded.value";
	sqlite3 *sqlite = NULL;
	sqlite3_stmt *insert = NULL;
	int code = sqlite3_open_v2(path, &sqlite, SQLITE_OPEN_READWRITE, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(sqlite, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL", NULL,
		                    NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(sqlite, statement, -1, &insert, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(insert, 1, mark->name, -1, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(insert, 2, mark->value, -1, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_step(insert) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
	sqlite3_finalize(insert);
	int result = OK;
	if (code != SQLITE_OK)
		result = error_cause(error, ERR_IO, "marking the copy %s: %s", path,
		                     sqlite ? sqlite3_errmsg(sqlite) : "no memory");
	sqlite3_close(sqlite);
	return result ? result : durable_sync(path, error);
}

/* With what a killed restore left beside it, which would be played into the next one. */
static void remove_partial(const char *partial)
{
	static const char *const suffixes[] = {"", SQLITE_LOG_SUFFIX, "-journal", "-shm"};
	char path[SQLITE_PATH_MAX + 16];
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		snprintf(path, sizeof path, "%s%s", partial, suffixes[i]);
		(void)unlink(path);
	}
}

int sqlite_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
                   struct error *error)
{
	const char *target = options->url + strlen("sqlite:");
	char partial[SQLITE_PATH_MAX];
	snprintf(partial, sizeof partial, "%s.restoring", target);
	int result = durable_make_parent(target, error);
	if (result)
		return result;
	remove_partial(partial);
	result = durable_copy(path, partial, error);
	if (!result)
		result = write_mark(partial, mark, error);
	if (!result && rename(partial, target) != 0)
		result = error_cause(error, ERR_IO, "renaming %s: %s", partial, strerror(errno));
	if (result) {
		remove_partial(partial);
		return result;
	}
	result = durable_sync_above(target, error);
	if (result)
		(void)unlink(target); /* so that the restore can be repeated */
	return result;
}
