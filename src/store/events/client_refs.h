/* The idempotency index: which event of a chain has a given client_ref.
 *
 * Keys are hashes. A B-tree would rewrite one page for every registration, and more so the larger
 * it is. Therefore new entries go to memory and to a small table in insertion order. When enough
 * entries are collected, they are sorted and written as a run, a part with each batch, and runs are
 * merged into larger ones (client_ref_runs.h). Two small tables alternate: one receives new entries
 * while those of the other are written. After a restart memory is filled from the tables.
 *
 * Databases of older versions have a B-tree, `client_refs`. Each batch moves some of its entries,
 * as if they were new, until the tree is empty.
 *
 * Used by the one sequencer inside its transaction; client_refs_lookup may be called by any
 * thread, outside a transaction. Entries become visible with client_refs_committed and vanish with
 * client_refs_rolled_back. One of these ends every transaction in which client_refs_write was
 * called.
 *
 * The index is derived from events and rebuilt from them when damaged: a bucket of a run
 * individually, otherwise the whole index. In the meantime a lookup that may concern the damaged
 * part returns ERR_UNAVAILABLE, without a failure of the connection, because "not found" could be
 * wrong. */
#ifndef STORE_CLIENT_REFS_H
#define STORE_CLIENT_REFS_H

#include <stdatomic.h>

#include "db/db.h"
#include "store/events/client_ref_runs.h"

struct client_refs;

struct client_refs_shape {
	size_t gathered; /* number of entries that are collected before they are written as a run */
	struct ref_shape runs;
};
/* Returns the values that the service uses. With one more batch the collected entries just fit into
 * 131,072 slots of 24 bytes, three quarters full. While they are written, they take 16 bytes per
 * entry in addition to the next ones. */
struct client_refs_shape client_refs_usual_shape(void);

/* Opens the index. `shape` may change between two openings, except group_buckets. Damage is not an
 * error. */
int client_refs_open(struct db_connection *connection, const struct client_refs_shape *shape,
                     struct client_refs **ret, struct error *error) MUST_CHECK;
void client_refs_close(struct client_refs *refs); /* NULL-safe */

/* Returns the first 64 bits of the SHA-256 of the client_ref. */
int64_t client_ref_hash(struct slice client_ref);

/* Finds the sequences of the events of a chain whose client_ref has this hash; duplicates are
 * possible. Returns ERR_INTERNAL when there are more than `max`. For the sequencer, within its
 * transaction, before client_refs_write. */
int client_refs_find(struct client_refs *refs, struct db_connection *connection, int64_t account,
                     int64_t chain, int64_t ref_hash, int64_t *ret_sequences, size_t max,
                     size_t *ret_count, struct error *error) MUST_CHECK;
/* Like client_refs_find for other threads, over the entries committed before the call. Outside a
 * transaction: each statement sees the commits before it. */
int client_refs_lookup(struct client_refs *refs, struct db_connection *connection, int64_t account,
                       int64_t chain, int64_t ref_hash, int64_t *ret_sequences, size_t max,
                       size_t *ret_count, struct error *error) MUST_CHECK;
int client_refs_add(struct client_refs *refs, int64_t account, int64_t chain, int64_t ref_hash,
                    int64_t sequence) MUST_CHECK;
/* Writes the additions and moves some entries; called once in every batch. */
int client_refs_write(struct client_refs *refs, struct db_connection *connection,
                      struct error *error) MUST_CHECK;
void client_refs_committed(struct client_refs *refs);
void client_refs_rolled_back(struct client_refs *refs);

/* Counts all entries, each once, wherever they are stored. For a check: `refs` was opened in the
 * view of the connection. Returns ERR_CORRUPT, with the cause, when something is damaged. */
int client_refs_count(struct client_refs *refs, struct db_connection *connection,
                      int64_t *ret_count, struct error *error) MUST_CHECK;

/* Returns whether the whole index has to be rebuilt from events; nothing is found until then. */
bool client_refs_is_lost(const struct client_refs *refs);

/* ---- repair (client_refs_repair.c): by one thread, in parallel with the sequencer ---- */

/* Returns the number of damaged parts and describes the damage in the cause of the error. Any
 * thread. */
int64_t client_refs_damaged(struct client_refs *refs, struct error *ret_what);
/* Rebuilds the damaged parts from events, which it reads in batches. Stops between two batches when
 * *stopping is set. *ret_repaired is the number of repaired parts. */
int client_refs_repair(struct client_refs *refs, struct db *db, const atomic_bool *stopping,
                       int64_t *ret_repaired, struct error *error) MUST_CHECK;

#endif
