/* List of the digests of a database's pages, as a file: SHA-256 of page 1, page 2, and so on. A
 * page that was not written has zeros: SQLite never uses the page at 1 GiB. Only a window of the
 * list is in memory, so access in the order of the pages is fast. Belongs to one thread. */
#ifndef DB_SQLITE_PAGE_LIST_H
#define DB_SQLITE_PAGE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

struct page_list {
	int file; /* -1: not open */
	const char *path;
	int64_t first; /* page number of the first digest in the window, minus 1 */
	bool loaded, dirty;
	struct sha256 *window;
};

/* Opens an existing list, or creates a new one (0600) that must not exist. ERR_IO, ERR_NO_SPACE,
 * ERR_NO_MEMORY. `path` must live as long as the list. */
int page_list_open(const char *path, bool create, struct page_list *ret_list, struct error *error)
	MUST_CHECK;
/* Frees the list without writing the window. Accepts a zeroed list with file -1. */
void page_list_close(struct page_list *list);
/* Gets and puts the digest of a page, counted from 1; zeros beyond the end. */
int page_list_get(struct page_list *list, int64_t page, struct sha256 *ret, struct error *error)
	MUST_CHECK;
int page_list_put(struct page_list *list, int64_t page, const struct sha256 *digest,
                  struct error *error) MUST_CHECK;
/* Writes the list of `count` pages, syncs it, and computes its digest. */
int page_list_finish(struct page_list *list, int64_t count, struct sha256 *ret_digest,
                     struct error *error) MUST_CHECK;
/* Checks that the file has `count` digests and the digest of page_list_finish. ERR_CORRUPT. */
int page_list_check(struct page_list *list, int64_t count, const struct sha256 *digest,
                    struct error *error) MUST_CHECK;
static inline bool page_is_unwritten(const struct sha256 *digest)
{
	static const struct sha256 none;
	return sha256_equal(digest, &none);
}

#endif
