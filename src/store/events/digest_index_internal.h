/* State of the index of digests in memory, shared by its files. Private to src/store. */
#ifndef STORE_DIGEST_INDEX_INTERNAL_H
#define STORE_DIGEST_INDEX_INTERNAL_H

#include <pthread.h>

#include "store/events/digest_runs.h"
#include "store/events/digest_source.h"

#define DIGEST_LAGGING_MAX 64

struct digest_index {
	pthread_mutex_t mutex; /* protects: */
	struct digest_key key;
	bool has_key;
	bool damaged; /* a lookup found damage */
	struct digest_place damaged_place;
	char damage[ERROR_CAUSE_MAX];

	/* Of the job. */
	struct digest_entry *entries; /* twice `room`: half of it to sort them */
	size_t room, count;
	bool before_done; /* no chain of 0.1.0 is left */
	int64_t before_chain, before_account;
	struct digest_place lagging[DIGEST_LAGGING_MAX]; /* chains to visit */
	size_t lagging_count, lagging_next;
};

/* Allocate and free the state, with the store. */
int digest_index_open(struct store *store) MUST_CHECK;
void digest_index_close(struct store *store);
/* Gets the key, if it is known. */
bool digest_index_key(struct digest_index *index, struct digest_key *ret);
/* Does the same, and reads it from the store if it exists there. */
int digest_index_find_key(struct store *store, bool *ret_found, struct digest_key *ret,
                          struct error *error) MUST_CHECK;
/* Makes the job build a series again. */
void digest_index_note_damage(struct digest_index *index, const struct digest_place *place,
                              const char *what);

#endif
