/* Recovery of the write-ahead log when a store is opened.
 *
 * Data that the kernel shows in the files may not be on disk: a sync of an earlier process failed,
 * or the process was killed before the sync. So before any data is trusted, the log is rewritten
 * and synced (sqlite_make_files_durable), then checkpointed and truncated (sqlite_checkpoint_all).
 * The order matters: SQLite requires that a page is in a synced log before it is written to the
 * database file. */
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/durable.h"
#include "base/file.h"
#include "db/sqlite/sqlite_internal.h"

/* The database file need not be rewritten: pages whose sync failed are still in the log and are
 * checkpointed again. It is synced in case it was copied here. */
int sqlite_make_files_durable(struct sqlite_db *db, struct error *error)
{
	char log[SQLITE_PATH_MAX];
	int size = snprintf(log, sizeof log, "%s" SQLITE_LOG_SUFFIX, db->path);
	assert(size > 0 && (size_t)size < sizeof log);
	int result = durable_rewrite(log, UINT64_MAX, error);
	return result ? result : durable_rewrite(db->path, 0, error);
}

/* The lock file only identifies the file system. */
int sqlite_check_sync(struct sqlite_db *db, struct error *error)
{
	if (durable_has_working_journal(db->lock_file))
		return OK;
	atomic_store(&db->base.poisoned, true);
	return file_fail(error, "after a sync of", db->path);
}

/* The truncated log is synced, too: an older log must not be applied to a newer database file. */
int sqlite_checkpoint_all(struct sqlite_db *db, struct error *error)
{
	if (sqlite3_wal_checkpoint_v2(db->writer.sqlite, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
	                              NULL) != SQLITE_OK) {
		sqlite_fail(&db->writer, "checkpointing the log");
		return db_report(&db->writer.base, error);
	}
	char log[SQLITE_PATH_MAX];
	int size = snprintf(log, sizeof log, "%s" SQLITE_LOG_SUFFIX, db->path);
	assert(size > 0 && (size_t)size < sizeof log);
	int result = durable_sync(log, error);
	return result ? result : durable_sync_above(db->path, error);
}
