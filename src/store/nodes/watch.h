/* What tells whether all goes well, of all accounts together. Thread safe. */
#ifndef STORE_NODES_WATCH_H
#define STORE_NODES_WATCH_H

#include "db/db.h"
#include "ledger/bounds.h"
#include "store/store.h"

/* When the event was received that waits for its seal for longest, of all live chains; TIME_NONE:
 * none waits. Costs two look-ups for each chain that has unsealed events. */
int store_oldest_pending(struct store *store, int64_t *ret_received_at_us, struct error *error)
	MUST_CHECK;

/* What holds copies of the store as it is written. */
struct store_replicas {
	int64_t required;          /* store.require_replicas; 0 where there are none */
	int64_t synchronous;       /* standbys that stream and that commits may wait for */
	int64_t lag_bytes, lag_us; /* of that one of them that is furthest behind */
};
int store_count_replicas(struct store *store, struct store_replicas *ret, struct error *error)
	MUST_CHECK;

/* db_ask_shard_servers: those that have accounts' rows, where several do. */
int store_ask_shard_servers(struct store *store, struct db_shard_server *items, size_t max,
                            size_t *ret_count, struct error *error) MUST_CHECK;

/* How far the number goes that is nearest to a bound (ledger/bounds.h). */
struct bound_use {
	int64_t used;
	char about[ID_SIZE]; /* the channel or the account; empty: it is of all */
};
/* Of each bound, at a time whose year counts; stored_max: of an account without a bound of its own
 * (0: any number). Goes over all chains and channels; fails
 * while a server that has some is away. */
int store_read_bounds(struct store *store, int64_t now_us, int64_t stored_max,
                      struct bound_use ret[BOUND_COUNT], struct error *error) MUST_CHECK;

/* A backup was made of what the store was at at_us. */
int store_note_backup(struct store *store, int64_t at_us, struct error *error) MUST_CHECK;
/* TIME_NONE: none was ever noted. */
int store_last_backup(struct store *store, int64_t *ret_at_us, struct error *error) MUST_CHECK;

#endif
