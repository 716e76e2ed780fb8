/* Composite documents, which share bytes with other objects. A document is stored as a list of
 * pieces: some are ranges of an object that belongs to another document, the others are in an
 * object of its own. The document's row has the list as text:
 *
 *   +N      the next N bytes of its own object
 *   @O+N    N bytes of the shared object, from byte O
 *
 * The pieces follow each other without spaces. The own object is used from its start to its end.
 * Thread safe; one thread at a time uses a reader. */
#ifndef CONTENT_COMPOSITE_H
#define CONTENT_COMPOSITE_H

#include "content/content.h"

#define CONTENT_PIECES_SIZE 512 /* of the text, with the NUL */

/* How a document is stored. */
struct content_parts {
	const char *object; /* its own object */
	const char *shared; /* NULL or empty: `object` is the whole document */
	const char *pieces;
};

/* As content_read_begin, for a whole document. ERR_CORRUPT: the list of pieces is not valid, or an
 * object that is needed from `offset` on is missing or too short. */
int content_parts_read(struct content_store *store, const struct content_parts *parts,
                       uint64_t offset, struct content_reader **ret_reader, uint64_t *ret_size,
                       struct error *error) MUST_CHECK;

/* Result of a comparison with a stored object. */
struct content_difference {
	char pieces[CONTENT_PIECES_SIZE];
	uint64_t own_bytes;
};
/* Compares the file `path` with an object and writes the bytes that only the file has to the new
 * file `own_path` (0600). If both have at most CONTENT_MOVED_MAX bytes, moved bytes are found too;
 * otherwise only bytes at the same offset. Memory is bounded regardless of sizes. ERR_REFUSED: less
 * than half of the file would be shared; ERR_NOT_FOUND: the object does not exist. own_path may
 * exist after a failure. */
#define CONTENT_MOVED_MAX ((uint64_t)4 << 20)
int content_compare(struct content_store *store, const char *path, const char *shared,
                    const char *own_path, struct content_difference *ret, struct error *error)
	MUST_CHECK;

#endif
