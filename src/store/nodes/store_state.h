/* State of the store for monitoring, over all accounts. Thread safe. */
#ifndef STORE_NODES_STORE_STATE_H
#define STORE_NODES_STORE_STATE_H

#include "db/db.h"
#include "ledger/bounds.h"
#include "store/store.h"

/* Returns when the oldest event that waits for its seal was received, over all live chains;
 * TIME_NONE: none waits. Costs two lookups for each chain with unsealed events. */
int store_oldest_pending(struct store *store, int64_t *ret_received_at_us, struct error *error)
	MUST_CHECK;

/* Replicas of the store. */
struct store_replicas {
	int64_t required;          /* store.require_replicas; 0: the engine has none */
	int64_t synchronous;       /* streaming standbys that commits may wait for */
	int64_t lag_bytes, lag_us; /* of the synchronous standby that is furthest behind */
};
int store_count_replicas(struct store *store, struct store_replicas *ret, struct error *error)
	MUST_CHECK;

/* Lists the servers that have rows of accounts, if there are several (db_check_shard_servers). */
int store_ask_shard_servers(struct store *store, struct db_shard_server *items, size_t max,
                            size_t *ret_count, struct error *error) MUST_CHECK;

/* Use of a bound (ledger/bounds.h) by the object that is nearest to it. */
struct bound_use {
	int64_t used;
	char about[ID_SIZE]; /* the channel or account; empty: the whole store */
};
/* Reads the use of each bound in the year of now_us. stored_max is the limit of an account without
 * its own limit (0: no limit). Reads all chains and channels. Fails while a server with some of
 * them is unavailable. */
int store_read_bounds(struct store *store, int64_t now_us, int64_t stored_max,
                      struct bound_use ret[BOUND_COUNT], struct error *error) MUST_CHECK;

/* Records that a backup of the state at at_us was made. */
int store_note_backup(struct store *store, int64_t at_us, struct error *error) MUST_CHECK;
/* Returns the time of the last backup; TIME_NONE: none was recorded. */
int store_last_backup(struct store *store, int64_t *ret_at_us, struct error *error) MUST_CHECK;

#endif
