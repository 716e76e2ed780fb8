/* Objects of a backup of a series: each is in the directory of the backup. An object that the
 * previous backup has is hard-linked, because objects never change; the others are copied. A list
 * has the digest of each, in the format of sha256sum(1). */
#ifndef ADMIN_BACKUP_OBJECTS_H
#define ADMIN_BACKUP_OBJECTS_H

#include "admin/backup.h"

/* Copies the objects that the store references to DIRECTORY/content and writes
 * DIRECTORY/content.sha256 durably. `previous`: the directory of the previous backup; NULL: none.
 * `reads_all`: links only objects whose digest was read and is right; otherwise the size decides. A
 * copy is read back. Missing and damaged objects are logged and counted as missing. Sets the facts
 * of the content. */
int backup_copy_objects(struct store *store, struct content_store *content, const char *directory,
                        const char *previous, bool reads_all, struct backup_facts *facts,
                        struct error *error) MUST_CHECK;
/* Reads every object of the list and compares it with its digest. ERR_CORRUPT: one is damaged or
 * missing, named in the cause. *ret_objects is the number of objects that are right. */
int backup_check_objects(const char *directory, const struct backup_facts *facts,
                         int64_t *ret_objects, struct error *error) MUST_CHECK;

#endif
