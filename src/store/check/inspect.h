/* What administration looks up by identifier alone, of certifications and segments, and the objects
 * of the content store that a backup and a check go through. Thread safe; what is given back lives
 * in the caller's arena. */
#ifndef STORE_CHECK_INSPECT_H
#define STORE_CHECK_INSPECT_H

#include "store/store.h"

/* Where a certification belongs; ERR_NOT_FOUND. */
int store_locate_certification(struct store *store, struct slice certification_id,
                               int64_t *ret_account, int64_t *ret_chain, struct error *error)
	MUST_CHECK;
/* Has one in processing that waits for its next try be tried now; its failures in a row begin anew.
 * ERR_REFUSED when it is over, or is being worked on. */
int store_retry_certification(struct store *store, struct slice certification_id, int64_t now_us,
                              struct error *error) MUST_CHECK;

struct segment_summary {
	char segment_id[ID_SIZE];
	char channel_id[ID_SIZE];
	int64_t number;
	int64_t first_sequence;
	int64_t last_sequence;
	int64_t round;
	const char *authority;
	const char *kind;
	int64_t sealed_at_us;
	const char *document; /* the seal document; NULL in lists */
};
struct segment_list {
	struct segment_summary *items;
	size_t count;
	bool more;
};
/* Of a channel's live chain, newest first; `before` is a number, 0 for the first page. */
int store_list_segments(struct store *store, struct slice channel_id, int64_t before, int64_t limit,
                        struct arena *arena, struct segment_list *ret, struct error *error)
	MUST_CHECK;
int store_inspect_segment(struct store *store, struct slice segment_id, struct arena *arena,
                          struct segment_summary *ret, struct error *error) MUST_CHECK;
/* An object of the content store that a row names. */
struct named_object {
	const char *name;
	const char *owner;  /* an issued file's certification; NULL: an event's content */
	int64_t size_bytes; /* of what it is the content of, as its digest is */
	struct sha256 sha256;
	const char *shared, *pieces; /* NULL: it is that whole (content/composite.h) */
};
enum object_source { OBJECTS_OF_EVENTS, OBJECTS_ISSUED };
/* Calls `each` for every named object, page by page, with no connection held meanwhile; memory does
 * not grow. A non-zero answer of `each` ends it and is given back. */
int store_list_objects(struct store *store, enum object_source source,
                       int (*each)(void *context, const struct named_object *object), void *context,
                       struct error *error) MUST_CHECK;

#endif
