/* A backup: one directory with a consistent copy of the database and of every object in the content
 * store that it names, wherever both lie.
 *   constancia.db      the database: a file of SQLite, or
 *   constancia.pgdump  a dump of PostgreSQL in pg_dump's custom format
 *   content/           the objects, as the file driver lays them out
 *   backup.json        written last: {"content_bytes","content_missing","content_objects",
 *                      "created_at","installation","program","store_bytes","store_file",
 *                      "store_sha256","v"}; without it the backup is not whole. Without store_file
 *                      it is constancia.db; without installation it is not known whose it is.
 * The database is copied before the objects: they are written before the rows that name them.
 * Keys and settings are not part of it. */
#ifndef ADMIN_BACKUP_H
#define ADMIN_BACKUP_H

#include "content/content.h"
#include "store/audit/acts.h"
#include "store/store.h"

#define BACKUP_FORMAT 1

struct backup_facts {
	int64_t created_at_us;
	char installation[INSTALLATION_SIZE]; /* empty: not known */
	char store_file[32];
	int64_t store_bytes;
	struct sha256 store_sha256;
	int64_t content_objects; /* -1: the content was left out */
	int64_t content_missing; /* objects that the store names and the content store does not have */
	int64_t content_bytes;
};

/* While serving. `directory` (absolute) must be empty or not exist. `content` NULL: left out. What
 * is missing there is logged, and keeps nothing else from being saved. The
 * store is told of it (store/nodes/watch.h), unless objects are missing. */
int backup_make(struct store *store, struct content_store *content, const char *directory,
                int64_t now_us, struct backup_facts *ret, struct error *error) MUST_CHECK;
/* Checks the backup's own digest and brings objects and database back to where the settings say,
 * the database last and whole or not at all, quiet (store/nodes/quiet.h) from its first moment on
 * unless it is to be `live`; then moves an older schema on, of which `moved` (NULL: none) is the
 * act (store_migrate). ERR_REFUSED when a store is there already, or the place for content is
 * another installation's. What fails before the database can be repeated.
 */
int backup_restore(const char *directory, const struct db_options *store,
                   const struct content_options *content, bool live, struct act *moved,
                   struct backup_facts *ret, struct error *error) MUST_CHECK;

#endif
