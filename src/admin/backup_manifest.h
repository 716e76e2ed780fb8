/* The manifest of a backup, backup.json (admin/backup.h), and helpers of the backup files. */
#ifndef ADMIN_BACKUP_MANIFEST_H
#define ADMIN_BACKUP_MANIFEST_H

#include "admin/backup.h"

#define BACKUP_DIRECTORY_MAX 3500 /* leaves room for file names within PATH_MAX */
#define BACKUP_INCREMENT_FILE "constancia.increment"
#define BACKUP_PAGES_FILE "constancia.pages"

/* Writes the manifest durably into the directory of a backup. */
int backup_write_manifest(const char *directory, const struct backup_facts *facts,
                          struct error *error) MUST_CHECK;
/* Reads it. An error without a manifest: the backup is incomplete. ERR_CORRUPT: it is not valid. */
int backup_read_manifest(const char *directory, struct backup_facts *ret, struct error *error)
	MUST_CHECK;
int backup_digest_file(const char *path, int64_t *ret_bytes, struct sha256 *ret_digest,
                       struct error *error) MUST_CHECK;
/* Compares the file of the store with the manifest. ERR_CORRUPT. */
int backup_check_store_file(const char *path, const struct backup_facts *facts, struct error *error)
	MUST_CHECK;
/* Records the backup in the store. A failure does not affect the backup. A backup with missing
 * objects is not recorded. One that excludes content on purpose is, because the operator backs up
 * the content otherwise. */
void backup_note(struct store *store, const struct backup_facts *facts);

#endif
