/* Shared by the files of the embedded store's driver alone. */
#ifndef DB_SQLITE_INTERNAL_H
#define DB_SQLITE_INTERNAL_H

#include <limits.h>

#include "db/db.h"

#define SQLITE_LOG_SUFFIX "-wal"
#define SQLITE_PATH_MAX (PATH_MAX + 16) /* of the file with a suffix */

/* The driver's functions of these names (db.h). */
int sqlite_backup(struct db *db, const char *path, struct error *error) MUST_CHECK;
int sqlite_vacant(const struct db_options *options, struct error *error) MUST_CHECK;
int sqlite_restore(const struct db_options *options, const char *path, struct error *error)
	MUST_CHECK;

/* For a new file: ERR_REFUSED when a log with something in it stands beside where the file is to
 * be. A rollback journal may: there is one only while a new file is made, and without the file it
 * undoes nothing. */
int sqlite_refuse_lone_log(const struct db_options *options, struct error *error) MUST_CHECK;

#endif
