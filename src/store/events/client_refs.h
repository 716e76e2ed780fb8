/* Which event of a chain holds a client_ref: the idempotency index.
 *
 * Keys are hashes: a tree of them would have a page of its own rewritten for every registration,
 * and the larger it is the more. So new entries go to a small table in order of arrival and to
 * memory; when enough have come, they are sorted and written as a run, a part with every batch, and
 * runs are merged into larger ones (client_ref_runs.h). Two small tables take turns: one takes new
 * entries while the other's are written. After a restart memory is filled from them.
 *
 * Stores of before have a tree, `client_refs`. Some of its entries are taken out with every batch,
 * as if they were new ones, until nothing is left of it.
 *
 * Used by the one sequencer, inside its transaction; client_refs_look_up by any thread, outside of
 * one. Entries become visible with client_refs_committed and vanish with client_refs_rolled_back,
 * one of which ends every transaction in which client_refs_write was called.
 */
#ifndef STORE_CLIENT_REFS_H
#define STORE_CLIENT_REFS_H

#include "db/db.h"
#include "store/events/client_ref_runs.h"

struct client_refs;

struct client_refs_shape {
	size_t gathered; /* entries that gather before they are written as a run */
	struct ref_shape runs;
};
/* The service's: with a batch more, what gathers just fits into 131,072 slots of 24 bytes, three
 * quarters full; while it is written, it takes 16 bytes an entry beside the next ones. */
extern const struct client_refs_shape client_refs_shape;

/* `shape` may change from one opening to the next but for group_buckets. */
int client_refs_open(struct db_connection *connection, const struct client_refs_shape *shape,
                     struct client_refs **ret, struct error *error) MUST_CHECK;
void client_refs_close(struct client_refs *refs); /* NULL-safe */

/* 64 bits of the client_ref's SHA-256. */
int64_t client_ref_hash(struct slice client_ref);

/* Sequences of the events of a chain whose client_ref has this hash; some may come twice. More than
 * `max` are ERR_INTERNAL. For the sequencer, within its transaction, before client_refs_write. */
int client_refs_find(struct client_refs *refs, struct db_connection *connection, int64_t account,
                     int64_t chain, int64_t ref_hash, int64_t *ret_sequences, size_t max,
                     size_t *ret_count, struct error *error) MUST_CHECK;
/* The same for others, of what is committed when it is called. Without a transaction: each of its
 * statements sees what was committed before it. */
int client_refs_look_up(struct client_refs *refs, struct db_connection *connection, int64_t account,
                        int64_t chain, int64_t ref_hash, int64_t *ret_sequences, size_t max,
                        size_t *ret_count, struct error *error) MUST_CHECK;
int client_refs_add(struct client_refs *refs, int64_t account, int64_t chain, int64_t ref_hash,
                    int64_t sequence) MUST_CHECK;
/* Writes the additions and moves some entries on; once in every batch. */
int client_refs_write(struct client_refs *refs, struct db_connection *connection,
                      struct error *error) MUST_CHECK;
void client_refs_committed(struct client_refs *refs);
void client_refs_rolled_back(struct client_refs *refs);

/* All entries of the store, wherever they stand, each once; for checking, on any connection. */
int client_refs_count(struct db_connection *connection, const struct client_refs_shape *shape,
                      int64_t *ret_count, struct error *error) MUST_CHECK;

#endif
