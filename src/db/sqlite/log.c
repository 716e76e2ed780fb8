/* The write-ahead log: made durable before it is believed, and moved into the file.
 *
 * What the kernel shows of the files when they are opened may never have reached the disk: an
 * earlier process's sync failed, or the process was killed before it. So before anything is read
 * and believed, the log is written again and synced (sqlite_make_files_durable), then moved into
 * the file and emptied (sqlite_move_whole_log). In this order: SQLite relies on a page being in a
 * synced log before it is written into the file. */
#include <stdatomic.h>
#include <stdio.h>

#include "base/durable.h"
#include "base/file.h"
#include "db/sqlite/internal.h"

/* Of the file nothing need be written again: pages that a sync failed on are in the log still, and
 * are moved from there once more. It is synced for the sake of whoever copied it here. */
int sqlite_make_files_durable(struct sqlite_db *db, struct error *error)
{
	char log[SQLITE_PATH_MAX];
	snprintf(log, sizeof log, "%s" SQLITE_LOG_SUFFIX, db->path);
	int result = durable_rewrite(log, UINT64_MAX, error);
	return result ? result : durable_rewrite(db->path, 0, error);
}

/* Of the lock's file nothing is asked but where it lies. */
int sqlite_check_sync(struct sqlite_db *db, struct error *error)
{
	if (durable_still_works(db->lock_file))
		return OK;
	atomic_store(&db->base.poisoned, true);
	return file_fail(error, "after a sync of", db->path);
}

/* The emptied log is synced too: an older one must not be played into a file that has moved on. */
int sqlite_move_whole_log(struct sqlite_db *db, struct error *error)
{
	if (sqlite3_wal_checkpoint_v2(db->writer.sqlite, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
	                              NULL) != SQLITE_OK) {
		sqlite_fail(&db->writer, "moving the log into the file");
		return db_report(&db->writer.base, error);
	}
	char log[SQLITE_PATH_MAX];
	snprintf(log, sizeof log, "%s" SQLITE_LOG_SUFFIX, db->path);
	int result = durable_sync(log, error);
	return result ? result : durable_sync_above(db->path, error);
}
