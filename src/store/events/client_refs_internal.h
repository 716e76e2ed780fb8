/* Shared by client_refs.c and client_refs_repair.c alone. */
#ifndef STORE_CLIENT_REFS_INTERNAL_H
#define STORE_CLIENT_REFS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/events/client_ref_events.h"
#include "store/events/client_refs.h"
#include "store/internal.h"

/* As it also stands in the small tables, many in a row. */
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
	int table; /* which of the two takes new entries */
	/* What is found without the disk, slots, `moving` and `runs`, changes under it; whoever changes
	 * it, the sequencer alone, reads it without. */
	pthread_mutex_t lock;
	struct entry *slots; /* its entries: open addressing, at most three quarters full */
	size_t slot_count;   /* a power of two */
	size_t gathered;
	struct ref_list moving; /* the other table's, in ascending order */
	struct ref_runs *runs;
	/* The tree of an older version has entries: they are taken out of it while this is held, until
	 * the transaction has ended, and whoever else looks something up holds it, too. */
	atomic_bool tree_left;
	pthread_mutex_t taking;
	struct entry_list stale; /* `moving`, of an older store: the tree has some of them, too */
	size_t cleared;          /* of them, the first ones: not any more */
	/* Of the transaction under way. */
	struct entry_list added;
	bool takes;   /* `taking` is held */
	bool emptied; /* the other table was emptied */
	bool turned;  /* the tables change places */
	size_t cleared_next;
	bool felled; /* nothing is left of the tree */
	/* All is made of events, up to a position; until then nothing is found or added by others. */
	struct client_refs_shape shape;
	atomic_bool lost; /* others than the opener set it under `lock` */
	bool unread;      /* a page could not be read, which may have been for once */
	bool emptied_all; /* and that was begun */
	struct ref_events_position position;
	char cause[ERROR_CAUSE_MAX]; /* what was damaged */
	/* Held by those who are not the sequencer while they look something up, and by whoever reads
	 * all from the disk again. */
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

/* The first of `moving` at the place or after it. */
size_t client_refs_moving_from(const struct ref_list *moving, uint64_t place);
int client_refs_list_add(struct entry_list *list, const struct entry *entry) MUST_CHECK;
/* Whether the tree of an older version has an entry. */
int client_refs_tree_has(struct db_connection *connection, const struct entry *entry, bool *ret,
                         struct error *error) MUST_CHECK;
/* Reads all that is on the disk; what memory has is gone. */
int client_refs_load(struct client_refs *refs, struct db_connection *connection,
                     struct error *error) MUST_CHECK;
/* Whether a page of the index's own tables could not be read, which such a result of one of their
 * statements says. */
bool client_refs_page_failed(const struct db_connection *connection, int result);
/* After such a failure: all of it is read again, or made of events. ERR_UNAVAILABLE. */
int client_refs_lose(struct client_refs *refs, struct db_connection *connection,
                     struct error *error);
/* What client_refs_write does, also while all is made of events. */
int client_refs_write_all(struct client_refs *refs, struct db_connection *connection,
                          struct error *error) MUST_CHECK;

#endif
