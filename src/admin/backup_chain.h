/* The backups that an incremental backup needs: it, its base, and so on to a complete copy, all in
 * the same directory. */
#ifndef ADMIN_BACKUP_CHAIN_H
#define ADMIN_BACKUP_CHAIN_H

#include "admin/backup.h"

#define BACKUP_CHAIN_MAX 400 /* backups */

struct backup_chain {
	/* Paths; increments NULL: the backup is a complete copy. */
	struct db_page_chain pages;
	char *database, *list;
	char **increments;
};

/* Finds the chain of the backup in `directory`, whose manifest is `facts`, and checks that all are
 * there and belong together. `siblings` is the directory with the others; NULL: the parent of
 * `directory`. ERR_CORRUPT names what is missing. The caller frees the chain. */
int backup_chain_find(const char *directory, const char *siblings, const struct backup_facts *facts,
                      struct backup_chain *ret, struct error *error) MUST_CHECK;
/* Reads the manifest of a backup and finds its chain, and gets the path of its file of the store.
 * ERR_USAGE: the path of `directory` is too long. */
int backup_open(const char *directory, const char *siblings, struct backup_facts *ret_facts,
                char ret_path[PATH_MAX], struct backup_chain *ret_chain, struct error *error)
	MUST_CHECK;
void backup_chain_free(struct backup_chain *chain); /* accepts a zeroed chain */
#define BACKUP_CHAIN_AUTO __attribute__((cleanup(backup_chain_free)))

#endif
