/* Chains of page backups: a complete copy and its increments. An increment is a file of records,
 * each the number of a page (4 bytes, big endian) and the page. Functions have no state. */
#ifndef DB_SQLITE_PAGE_CHAIN_H
#define DB_SQLITE_PAGE_CHAIN_H

#include "db/db.h"

#define PAGE_NUMBER_SIZE 4

void page_record_fill(uint8_t *record, int64_t page, const void *data, size_t size);
/* Checks that the newest copy of each page has the digest in the chain's list. ERR_CORRUPT. */
int page_chain_check(const struct db_page_chain *chain, struct error *error) MUST_CHECK;
/* Writes the database that the chain describes to the new file `path` (0600), checks it, and syncs
 * the data but not the name. */
int page_chain_build(const struct db_page_chain *chain, const char *path, struct error *error)
	MUST_CHECK;

#endif
