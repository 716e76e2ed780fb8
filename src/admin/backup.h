/* Backup and restore. A backup is one directory with a consistent copy of the database and of every
 * object in the content store that the database references.
 *    constancia.db      the database: a file of SQLite, or
 *    constancia.pgdump  a dump of PostgreSQL in pg_dump's custom format
 *    content/           the objects, in the layout of the file driver
 *    content.sha256     the digest of each, and content.missing, if some are missing
 *                       (admin/backup_object_list.h); backups of 0.1 have neither
 *    backup.json        written last: {"content_bytes","content_missing","content_objects",
 *                       "created_at","installation","program","store_bytes","store_file",
 *                       "store_sha256","v"}, and members for the lists and for a series
 *                       (admin/backup_series.h). Without it the backup is incomplete. Without
 *                       store_file, the file is constancia.db. Without installation, the owner of
 *                       the backup is unknown.
 * The database is copied before the objects, because objects are written before the rows that
 * reference them. Keys and settings are not included. */
#ifndef ADMIN_BACKUP_H
#define ADMIN_BACKUP_H

#include <limits.h>

#include "content/content.h"
#include "store/audit/audit_log.h"
#include "store/store.h"

#define BACKUP_FORMAT 1
#define BACKUP_FORMAT_INCREMENT 2 /* of backups that need others; older programs refuse them */
#define BACKUP_NAME_SIZE 64

struct backup_facts {
	int64_t created_at_us;
	char installation[INSTALLATION_SIZE]; /* empty: unknown */
	char store_file[32];
	int64_t store_bytes;
	struct sha256 store_sha256;
	int64_t content_objects; /* -1: the content was excluded */
	/* Objects that the store references and the backup does not have. */
	int64_t content_missing;
	int64_t content_bytes;
	bool has_content_list; /* content.sha256 */
	struct sha256 content_list_sha256;
	bool has_missing_list; /* content.missing */
	struct sha256 missing_list_sha256;
	/* Only in a series (admin/backup_series.h). */
	char base[BACKUP_NAME_SIZE]; /* the backup on which an increment is based; empty: none */
	struct db_pages pages;       /* page_size 0: none are listed */
	int64_t content_linked;      /* of content_objects: shared with the previous backup */
	/* Of content_linked: lost or damaged in the content store. */
	int64_t content_lost;
};

/* Objects that a restore skipped because they are damaged or missing in the backup. */
#define SKIPPED_NAMES_MAX 1000
struct skipped_objects {
	int64_t count;
	char names[SKIPPED_NAMES_MAX][CONTENT_NAME_MAX]; /* of the first ones */
};

/* Makes a backup while the service is running. `directory` (absolute) must be empty or not exist.
 * `content` NULL: content is excluded. Missing objects are logged and do not stop the backup.
 * Unless objects are missing, the backup is recorded in the store (store/nodes/store_state.h). */
int backup_make(struct store *store, struct content_store *content, const char *directory,
                int64_t now_us, struct backup_facts *ret, struct error *error) MUST_CHECK;
/* Checks the digest of the backup and restores objects and database to the places in the settings.
 * The database is restored last and atomically. It is a read-only copy
 * (store/nodes/read_only_copy.h) from the start, unless `live` is set. Then an older schema is
 * migrated, with `moved` (NULL: none) as the audit record (store_migrate). No damaged object is
 * restored: `skipped` gets the objects that are damaged or missing in the backup; with NULL they
 * are ERR_CORRUPT before the database is restored. ERR_REFUSED: a store already exists, or the
 * content store belongs to another installation. A restore that fails before the database can be
 * repeated. */
int backup_restore(const char *directory, const struct db_options *store,
                   const struct content_options *content, bool live, struct act *moved,
                   struct skipped_objects *skipped, struct backup_facts *ret, struct error *error)
	MUST_CHECK;
/* Finds which of the objects the backup recorded as missing: sets known[i] for names[i]. */
int backup_find_missing(const char *directory, const struct backup_facts *facts,
                        const struct slice *names, size_t count, bool *known, struct error *error)
	MUST_CHECK;

#endif
