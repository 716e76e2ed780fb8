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
	/* The tree of before has entries: they are taken out of it while this is held, until the
	 * transaction has ended, and whoever else looks something up holds it, too. */
	atomic_bool tree_left;
	pthread_mutex_t taking;
	struct entry_list stale; /* `moving`, of a store of before: the tree has some of them, too */
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
	atomic_bool lost;
	bool emptied_all; /* and that was begun */
	struct ref_events_position position;
	char cause[ERROR_CAUSE_MAX]; /* what was damaged */
};

static inline int64_t chain_of(const struct entry *entry)
{
	return entry->event >> EVENT_SEQUENCE_BITS;
}

static inline uint64_t place_of(const struct client_refs *refs, const struct entry *entry)
{
	return ref_place(&refs->key, chain_of(entry), entry->ref_hash);
}

/* The first of `moving` at the place or behind it. */
size_t client_refs_moving_from(const struct ref_list *moving, uint64_t place);
int client_refs_list_add(struct entry_list *list, const struct entry *entry) MUST_CHECK;
/* Whether the tree of before has an entry. */
int client_refs_tree_has(struct db_connection *connection, const struct entry *entry, bool *ret,
                         struct error *error) MUST_CHECK;
/* Reads all that is on the disk; what memory has is gone. */
int client_refs_load(struct client_refs *refs, struct db_connection *connection,
                     struct error *error) MUST_CHECK;
/* What client_refs_write does, also while all is made of events. */
int client_refs_write_all(struct client_refs *refs, struct db_connection *connection,
                          struct error *error) MUST_CHECK;

#endif
