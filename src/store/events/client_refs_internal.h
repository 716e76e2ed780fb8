/* Private to client_refs.c and client_refs_repair.c. */
#ifndef STORE_CLIENT_REFS_INTERNAL_H
#define STORE_CLIENT_REFS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/events/client_ref_events.h"
#include "store/events/client_refs.h"
#include "store/store_internal.h"

/* Also the format in the small tables, where a row has many of them. */
struct entry {
	int64_t account;
	int64_t event; /* chain and sequence; 0: an empty slot */
	int64_t ref_hash;
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the store's files are little-endian");

struct entry_list {
	struct entry *items;
	size_t count;
	size_t capacity;
};

struct client_refs {
	size_t gathered_max;
	struct ref_key key;
	int table; /* index of the table that receives new entries */
	/* Protects the part that is found without the disk: slots, `moving` and `runs`. Only the
	 * sequencer changes it, so the sequencer reads it without the lock. */
	pthread_mutex_t lock;
	struct entry *slots; /* new entries: open addressing, at most three quarters full */
	size_t slot_count;   /* a power of two */
	size_t gathered;
	struct ref_list moving; /* entries of the other table, in ascending order */
	struct ref_runs *runs;
	/* The B-tree of an older version still has entries. `taking` is held while entries are moved
	 * out of it, until the end of the transaction, and by other threads during a lookup. */
	atomic_bool tree_left;
	pthread_mutex_t taking;
	struct entry_list stale; /* `moving` from an older version; partly in the tree */
	size_t cleared;          /* leading entries of `stale` that have left the tree */
	/* State of the current transaction. */
	struct entry_list added;
	bool takes;   /* `taking` is held */
	bool emptied; /* the other table was emptied */
	bool turned;  /* the two tables are exchanged */
	size_t cleared_next;
	bool tree_emptied; /* the tree is empty */
	/* The index is being rebuilt from events, up to a position. Until it is complete, other threads
	 * find and add nothing. */
	struct client_refs_shape shape;
	atomic_bool lost; /* after opening, set under `lock` only */
	bool unread;      /* a page could not be read, which may be temporary */
	bool emptied_all; /* and the rebuild has begun */
	struct ref_events_position position;
	char cause[ERROR_CAUSE_MAX]; /* description of the damage */
	/* Held for reading by threads other than the sequencer during a lookup, and for writing while
	 * the whole index is loaded again from disk. */
	pthread_rwlock_t in_use;
};

static inline int64_t chain_of(const struct entry *entry)
{
	return entry->event >> EVENT_SEQUENCE_BITS;
}

static inline uint64_t place_of(const struct client_refs *refs, const struct entry *entry)
{
	return ref_place(&refs->key, chain_of(entry), entry->ref_hash);
}

/* Returns the index of the first entry of `moving` at or after the place. */
size_t client_refs_moving_from(const struct ref_list *moving, uint64_t place);
int client_refs_list_add(struct entry_list *list, const struct entry *entry) MUST_CHECK;
/* Reads whether the tree of an older version has the entry. */
int client_refs_tree_has(struct db_connection *connection, const struct entry *entry, bool *ret,
                         struct error *error) MUST_CHECK;
/* Loads everything from disk; the contents of memory are discarded. */
int client_refs_load(struct client_refs *refs, struct db_connection *connection,
                     struct error *error) MUST_CHECK;
/* Returns whether a page of the index's own tables could not be read, according to the result of
 * one of their statements. */
bool client_refs_page_failed(const struct db_connection *connection, int result);
/* After such a failure: marks the index to be loaded again or rebuilt from events. Returns
 * ERR_UNAVAILABLE. */
int client_refs_lose(struct client_refs *refs, struct db_connection *connection,
                     struct error *error);
/* Does the work of client_refs_write, also during a rebuild. */
int client_refs_write_all(struct client_refs *refs, struct db_connection *connection,
                          struct error *error) MUST_CHECK;

#endif
