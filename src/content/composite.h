/* Objects that share bytes: a document may be stored as pieces, some of an object that another
 * document is stored as, the rest of an object of its own. The text that lists the pieces stands in
 * the row of the document:
 *
 *   +N      the next N bytes of its own object
 *   @O+N    N bytes of the shared object, from byte O on
 *
 * one after the other, without spaces; its own object is used from its start to its end. Thread
 * safe; a reader is used by one thread at a time. */
#ifndef CONTENT_COMPOSITE_H
#define CONTENT_COMPOSITE_H

#include "content/content.h"

#define CONTENT_PIECES_SIZE 512 /* of the text, with the closing NUL */

/* How a document is stored. */
struct content_parts {
	const char *object; /* its own */
	const char *shared; /* NULL or empty: the object is the whole document */
	const char *pieces;
};

/* As content_read_begin, of the whole document. ERR_CORRUPT, also where there are pieces: the text
 * is none, or an object of which bytes from `offset` on are to come is missing or too short. */
int content_parts_read(struct content_store *store, const struct content_parts *parts,
                       uint64_t offset, struct content_reader **ret_reader, uint64_t *ret_size,
                       struct error *error) MUST_CHECK;

/* What can be shared with a stored object. */
struct content_difference {
	char pieces[CONTENT_PIECES_SIZE];
	uint64_t own_bytes;
};
/* Compares the file `path` with a whole object, and writes what is in the file alone into the new
 * file `own_path` (0600). Bytes that move are found as long as both have at most
 * CONTENT_MOVED_MAX, elsewhere those that stand where they stood. Memory is bounded, whatever the
 * sizes are. ERR_REFUSED: less than half of the file would be shared; ERR_NOT_FOUND: there is no
 * such object. After a failure own_path may be there. */
#define CONTENT_MOVED_MAX ((uint64_t)4 << 20)
int content_compare(struct content_store *store, const char *path, const char *shared,
                    const char *own_path, struct content_difference *ret, struct error *error)
	MUST_CHECK;

#endif
