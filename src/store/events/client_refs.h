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
 *
 * All of it is derived from events, and made of them again where it is damaged: a bucket of a run
 * by itself, everything where it is something else. What is looked for and may stand in what is
 * damaged is ERR_UNAVAILABLE meanwhile, without a failure of the connection: "not found" could be a
 * lie. */
#ifndef STORE_CLIENT_REFS_H
#define STORE_CLIENT_REFS_H

#include <stdatomic.h>

#include "db/db.h"
#include "store/events/client_ref_runs.h"

struct client_refs;

struct client_refs_shape {
	size_t gathered; /* entries that gather before they are written as a run */
	struct ref_shape runs;
};
/* The service's: with a batch more, what gathers just fits into 131,072 slots of 24 bytes, three
 * quarters full; while it is written, it takes 16 bytes an entry beside the next ones. */
struct client_refs_shape client_refs_usual_shape(void);

/* `shape` may change from one opening to the next but for group_buckets. What is damaged is no
 * error. */
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

/* All entries of the store, wherever they stand, each once; of refs that were opened in the
 * connection's view, for checking. ERR_CORRUPT: what was damaged. */
int client_refs_count(struct client_refs *refs, struct db_connection *connection,
                      int64_t *ret_count, struct error *error) MUST_CHECK;

/* Whether all of it has to be made of events: nothing is found. */
bool client_refs_is_lost(const struct client_refs *refs);

/* ---- repairing (client_refs_repair.c): by one thread, beside the sequencer ---- */

/* How many parts are known to be damaged, and what of them, in the error's cause. By any thread. */
int64_t client_refs_damaged(struct client_refs *refs, struct error *ret_what);
/* Makes what is damaged of events, which it reads a part at a time; stops between two when
 * *stopping. *ret_repaired: how many parts. */
int client_refs_repair(struct client_refs *refs, struct db *db, const atomic_bool *stopping,
                       int64_t *ret_repaired, struct error *error) MUST_CHECK;

#endif
