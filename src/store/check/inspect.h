/* Lookups by identifier alone for the administration, of certifications and segments, and the list
 * of content store objects for backups and checks. Thread safe. Results live in the caller's
 * arena. */
#ifndef STORE_CHECK_INSPECT_H
#define STORE_CHECK_INSPECT_H

#include "store/store.h"

/* Finds the account and chain of a certification. Returns ERR_NOT_FOUND when it does not exist. */
int store_locate_certification(struct store *store, struct slice certification_id,
                               int64_t *ret_account, int64_t *ret_chain, struct error *error)
	MUST_CHECK;
/* Makes a certification that waits for its next attempt due immediately, and resets its count of
 * consecutive failures. Returns ERR_REFUSED when it has ended or is being worked on. */
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
/* Lists the segments of a channel's live chain, newest first. `before` is a segment number; 0: from
 * the newest. */
int store_list_segments(struct store *store, struct slice channel_id, int64_t before, int64_t limit,
                        struct arena *arena, struct segment_list *ret, struct error *error)
	MUST_CHECK;
int store_inspect_segment(struct store *store, struct slice segment_id, struct arena *arena,
                          struct segment_summary *ret, struct error *error) MUST_CHECK;
/* An object of the content store that a row refers to. */
struct named_object {
	const char *name;
	const char *owner;  /* certification of an issued file; NULL: content of an event */
	int64_t size_bytes; /* of the complete document, like the digest */
	struct sha256 sha256;
	const char *shared,
		*pieces; /* NULL: the object is the complete document (content/composite.h) */
};
enum object_source { OBJECTS_OF_EVENTS, OBJECTS_ISSUED };
/* Calls `each` for every object, page by page, with constant memory. No connection is held during a
 * call. A non-zero result of `each` ends the iteration and is returned. */
int store_list_objects(struct store *store, enum object_source source,
                       int (*each)(void *context, const struct named_object *object), void *context,
                       struct error *error) MUST_CHECK;

#endif
