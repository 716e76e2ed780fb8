/* Backup and restore of the embedded store; backups are SQLite files, too. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "db/sqlite/page_chain.h"
#include "db/sqlite/sqlite_internal.h"

/* A backup file that is being written. It is written out to disk while it grows, because a large
 * sync at the end would delay registrations. While the store is being written to, the backup pauses
 * after each chunk for as long as the disk took. */
struct growing {
	struct sqlite_db *db;
	const char *path;
	int file; /* -1: not created yet */
	off_t written;
	int log_pages; /* of the store's log at the last chunk */
	bool failed;
};

bool sqlite_has_log_grown(struct sqlite_db *db, int *pages)
{
	int before = *pages;
	pthread_mutex_lock(&db->mutex);
	*pages = db->log_pages;
	pthread_mutex_unlock(&db->mutex);
	return *pages != before;
}

#define LOOKED_EVERY 1000 /* SQLite virtual machine steps between checks */

static int write_out(void *context)
{
	struct growing *copy = context;
	struct stat status;
	if (copy->file < 0)
		copy->file = open(copy->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (copy->file < 0 || fstat(copy->file, &status) != 0 ||
	    status.st_size - copy->written < DURABLE_CHUNK)
		return 0;
	int64_t begin_us = clock_monotonic_us();
	copy->failed = !durable_write_out(copy->file, copy->written, status.st_size - copy->written);
	copy->written = status.st_size;
	if (sqlite_has_log_grown(copy->db, &copy->log_pages))
		usleep((useconds_t)(clock_monotonic_us() - begin_us));
	return copy->failed;
}

int sqlite_backup(struct db *base, const char *path, struct error *error)
{
	struct growing copy = {.db = sqlite_db(base), .path = path, .file = -1};
	struct db_connection *reader = db_take_reader(base);
	struct db_query *query = db_query(reader, "VACUUM INTO $1");
	db_bind_string(query, path);
	sqlite3 *sqlite = sqlite_connection(reader)->sqlite; /* NULL: it could not be opened */
	if (sqlite)
		sqlite3_progress_handler(sqlite, LOOKED_EVERY, write_out, &copy);
	int result = db_execute(query, NULL, error);
	if (sqlite)
		sqlite3_progress_handler(sqlite, 0, NULL, NULL);
	db_give(reader);
	descriptor_close(&copy.file);
	if (copy.failed)
		return error_cause(error, ERR_IO, "writing out %s failed", path);
	if (!result)
		result = durable_sync(path, error);
	return result ? result : durable_sync_above(path, error);
}

static int refuse(const struct db_options *options, const char *suffix, struct error *error)
{
	char path[SQLITE_PATH_MAX];
	struct stat status;
	int size = snprintf(path, sizeof path, "%s%s", options->url + strlen("sqlite:"), suffix);
	assert(size > 0 && (size_t)size < sizeof path); /* by db_check_url */
	if (lstat(path, &status) == 0 && (!*suffix || status.st_size > 0))
		return error_set(error, ERR_REFUSED, MSG_ADMIN_STORE_EXISTS, path, NULL);
	return OK;
}

int sqlite_refuse_orphaned_log(const struct db_options *options, struct error *error)
{
	return refuse(options, SQLITE_LOG_SUFFIX, error);
}

/* SQLite would apply a log or a journal of an earlier store to the restored one. */
int sqlite_vacant(const struct db_options *options, struct error *error)
{
	int result = refuse(options, "", error);
	if (!result)
		result = sqlite_refuse_orphaned_log(options, error);
	return result ? result : refuse(options, "-journal", error);
}

/* Writes to the file itself, which no other process has open; with journal mode DELETE no other
 * file remains. */
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

/* Also removes files of a restore that was killed, which SQLite would apply to the next one. */
static void remove_partial(const char *partial)
{
	static const char *const suffixes[] = {"", SQLITE_LOG_SUFFIX, "-journal", "-shm"};
	char path[SQLITE_PATH_MAX + 16];
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		int size = snprintf(path, sizeof path, "%s%s", partial, suffixes[i]);
		assert(size > 0 && (size_t)size < sizeof path); /* it is removed */
		(void)unlink(path);
	}
}

static int copy_database(const void *source, const char *partial, struct error *error)
{
	return durable_copy(source, partial, error);
}

static int build_database(const void *source, const char *partial, struct error *error)
{
	return page_chain_build(source, partial, error);
}

/* `fill` creates the file "partial" from `source`. */
static int restore(const struct db_options *options,
                   int (*fill)(const void *source, const char *partial, struct error *error),
                   const void *source, const struct db_mark *mark, struct error *error)
{
	const char *target = options->url + strlen("sqlite:");
	char partial[SQLITE_PATH_MAX];
	int size = snprintf(partial, sizeof partial, "%s.restoring", target);
	assert(size > 0 && (size_t)size < sizeof partial); /* by db_check_url */
	int result = durable_make_parent(target, error);
	if (result)
		return result;
	remove_partial(partial);
	result = fill(source, partial, error);
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

int sqlite_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
                   struct error *error)
{
	return restore(options, copy_database, path, mark, error);
}

int sqlite_restore_page_chain(const struct db_options *options, const struct db_page_chain *chain,
                              const struct db_mark *mark, struct error *error)
{
	return restore(options, build_database, chain, mark, error);
}
