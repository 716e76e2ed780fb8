/* A backup: one directory with a consistent copy of the database and of every object in the content
 * store that it names.
 *   constancia.db   the database
 *   content/        the objects, as the file driver lays them out
 *   backup.json     written last: {"content_bytes","content_objects","created_at","program",
 *                   "store_bytes","store_sha256","v"}; without it the backup is not whole
 * Keys and settings are not part of it. */
#ifndef SERVICE_BACKUP_H
#define SERVICE_BACKUP_H

#include "content/content.h"
#include "store/store.h"

#define BACKUP_FORMAT 1

struct backup_facts {
	int64_t created_at_us;
	int64_t store_bytes;
	struct sha256 store_sha256;
	int64_t content_objects; /* -1: the content was left out */
	int64_t content_bytes;
};

/* While serving. `directory` (absolute) must be empty or not exist. `content` NULL: left out. */
int backup_make(struct store *store, struct content_store *content, const char *directory,
                int64_t now_us, struct backup_facts *ret, struct error *error)
    __attribute__((warn_unused_result));
/* Checks the backup's own digest and brings database and objects back to where the settings say; no
 * database may be there yet. */
int backup_restore(const char *directory, const char *store_url,
                   const struct content_options *content, struct backup_facts *ret,
                   struct error *error)
    __attribute__((warn_unused_result));

#endif
