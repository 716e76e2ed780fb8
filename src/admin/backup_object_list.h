/* Lists of objects in a backup, with a digest for each, in the format of sha256sum(1):
 *    content.sha256   the objects in the backup; the digest is of the stored object
 *    content.missing  the objects that the store references and the backup does not have; the
 * digest is of the complete document. It exists only if there are any. The manifest has the digest
 * of each list. */
#ifndef ADMIN_BACKUP_OBJECT_LIST_H
#define ADMIN_BACKUP_OBJECT_LIST_H

#include <limits.h>

#include "admin/backup.h"

#define BACKUP_CONTENT_LIST "content.sha256"
#define BACKUP_MISSING_LIST "content.missing"

/* A list that is being written. */
struct object_list {
	int file; /* -1: not opened */
	char path[PATH_MAX];
	struct buf lines; /* not written yet */
};

/* Creates the file, which must not exist. */
int object_list_open(struct object_list *list, const char *directory, const char *name,
                     struct error *error) MUST_CHECK;
int object_list_add(struct object_list *list, const char *name, const struct sha256 *digest,
                    struct error *error) MUST_CHECK;
/* Writes what is left, durably, and gets the digest of the list. */
int object_list_finish(struct object_list *list, struct sha256 *ret_digest, struct error *error)
	MUST_CHECK;
void object_list_close(struct object_list *list); /* accepts one that was not opened */

typedef int (*object_list_visitor)(void *context, const char *name, const struct sha256 *digest,
                                   struct error *error);
/* Compares the list `name` in `directory` with the digest of its manifest. ERR_CORRUPT: it is
 * damaged. */
int object_list_check(const char *directory, const char *name, const struct sha256 *expected,
                      struct error *error) MUST_CHECK;
/* Checks the list and calls `each` for every line. A non-zero result of `each` ends the iteration
 * and is returned. `expected` NULL: the list is known to be damaged; invalid lines are ignored.
 * *ret_count is the number of lines. */
int object_list_read(const char *directory, const char *name, const struct sha256 *expected,
                     object_list_visitor each, void *context, int64_t *ret_count,
                     struct error *error) MUST_CHECK;

#endif
