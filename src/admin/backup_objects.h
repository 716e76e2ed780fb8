/* Objects of a backup: each is in the directory of the backup. In a series, an object that the
 * previous backup has is hard-linked, because objects never change; the others are copied. Lists
 * have the digest of each (admin/backup_object_list.h). */
#ifndef ADMIN_BACKUP_OBJECTS_H
#define ADMIN_BACKUP_OBJECTS_H

#include "admin/backup.h"

#define BACKUP_CHUNK ((size_t)256 * 1024)

/* Copies the objects that the store references to DIRECTORY/content and writes the lists durably.
 * `previous`: the directory of the previous backup; NULL: none. `reads_all`: links only objects
 * whose digest was read and is right; otherwise the size decides. A copy is read back. An object
 * that the content store lost is taken from the previous backup, after its digest was read, and
 * counted as lost. Missing and damaged objects that the previous backup does not have either are
 * logged and counted as missing. A remote content store is asked only for the objects that are not
 * in the previous backup, and for the parts of composite documents. Sets the facts of the
 * content. */
int backup_copy_objects(struct store *store, struct content_store *content, const char *directory,
                        const char *previous, bool reads_all, struct backup_facts *facts,
                        struct error *error) MUST_CHECK;
/* Reads every object of the lists and compares it with its digest. ERR_CORRUPT: one is damaged or
 * missing, named in the cause. */
int backup_check_objects(const char *directory, const struct backup_facts *facts,
                         struct error *error) MUST_CHECK;
/* Copies the objects to a content store, which must belong to the backup's installation or to none.
 * An object that is damaged or missing in the backup is not copied; it is logged and added to
 * `skipped`. An existing object of the right size is kept. With `skipped` NULL the result is then
 * ERR_CORRUPT, after the others were copied. A backup without a list (of 0.1) is copied without
 * comparison. */
int backup_restore_objects(const char *directory, const struct content_options *content,
                           const struct backup_facts *facts, struct skipped_objects *skipped,
                           struct error *error) MUST_CHECK;
/* Reads an object to its end, writes it to `writer` (NULL: nowhere), and gets its size and digest.
 * `chunk` has BACKUP_CHUNK bytes. */
int backup_read_object(struct content_reader *reader, struct content_writer *writer, char *chunk,
                       int64_t *ret_size, struct sha256 *ret_digest, struct error *error)
	MUST_CHECK;

#endif
