/* A series of backups in one directory. Each is a directory of its own with a number, a time and a
 * kind in its name: "000012-20261129T020000Z-full" or "-incremental". It has the form of a backup
 * (admin/backup.h) and
 *    content.sha256       the digests of its objects, for sha256sum(1)
 *    constancia.pages     embedded store: the digest of each page of the database
 *    constancia.increment instead of constancia.db: only the pages that changed since the backup
 *                         `base` of the manifest (db/db.h)
 * Objects that the previous backup has are hard-linked. A backup gets its name once it is complete,
 * durable and verified: the names ".partial" and ".removing" are of interrupted work and are
 * removed by the next backup. A lock file excludes two at the same time. */
#ifndef ADMIN_BACKUP_SERIES_H
#define ADMIN_BACKUP_SERIES_H

#include "admin/backup.h"

struct backup_series {
	const char *directory;
	int64_t keep;       /* backups, at least 1 */
	int64_t full_every; /* 1: no increments */
	const char *store_url;
};

struct series_backup {
	char path[PATH_MAX];
	bool incremental;
	struct backup_facts facts;
	int64_t removed;      /* older backups */
	bool rotation_failed; /* the log has the reason */
};

/* Makes and verifies the next backup of the series, records it in the store, and removes backups
 * that are no longer kept. `content` NULL: content is excluded. An increment whose base is damaged
 * is replaced by a complete backup. ERR_USAGE: no directory is set. ERR_REFUSED: the directory has
 * a backup of another installation. ERR_UNAVAILABLE: another backup runs. */
int backup_series_add(struct store *store, struct content_store *content,
                      const struct backup_series *series, int64_t now_us, struct series_backup *ret,
                      struct error *error) MUST_CHECK;

struct series_entry {
	char name[BACKUP_NAME_SIZE];
	int64_t number;
	struct backup_facts facts;
};
struct series_list {
	struct series_entry *items; /* by number */
	size_t count;
	char unreadable[BACKUP_NAME_SIZE]; /* the last name without a valid manifest; empty: none */
};
/* Lists the complete backups. The caller frees the list. */
int backup_series_list(const char *directory, struct series_list *ret, struct error *error)
	MUST_CHECK;
void backup_series_free(struct series_list *list);
/* Gets the path of the newest backup. ERR_NOT_FOUND: there is none. ERR_CORRUPT: it has no valid
 * manifest; an older one is never chosen in its place. */
int backup_series_newest(const char *directory, char ret_path[PATH_MAX], struct error *error)
	MUST_CHECK;

/* Reads the whole backup and compares it with its digests: the file of the store, each page of the
 * chain, and, if the backup lists them, each object. `store_url` names the engine. ERR_CORRUPT. */
int backup_verify(const char *directory, const char *siblings, const char *store_url,
                  bool with_objects, struct backup_facts *ret, struct error *error) MUST_CHECK;

#endif
