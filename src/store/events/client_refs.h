/* Which event of a chain holds a client_ref: the idempotency index.
 *
 * client_refs is a tree keyed by hashes, so every insertion would dirty a page of its own, which
 * was half of what a registration costs. So new entries go to a small table in order of arrival and
 * to memory; when enough have come, they are sorted and moved into the tree, a few with every
 * batch, neighbours together. Two small tables take turns: one takes new entries while the other's
 * are moved. After a restart memory is filled from them; entries moved before a crash are moved
 * again, which changes nothing.
 *
 * Used by the one sequencer, inside its transaction; client_refs_find by any thread, outside of
 * one. Entries become visible with client_refs_committed and vanish with client_refs_rolled_back.
 */
#ifndef STORE_CLIENT_REFS_H
#define STORE_CLIENT_REFS_H

#include "db/db.h"

struct client_refs;

/* Entries that gather before they are moved: the more, the more neighbours share a page. With a
 * batch more they just fit into 131,072 slots of 24 bytes, three quarters full; while they are
 * moved, they take 24 bytes each beside the next ones. */
#define CLIENT_REFS_GATHERED ((size_t)97000)

int client_refs_open(struct db_connection *connection, size_t gathered_max,
                     struct client_refs **ret, struct error *error) MUST_CHECK;
void client_refs_close(struct client_refs *refs); /* NULL-safe */

/* 64 bits of the client_ref's SHA-256. */
int64_t client_ref_hash(struct slice client_ref);

/* Sequences of the events of a chain whose client_ref has this hash; some may come twice. More than
 * `max` are ERR_INTERNAL. The connection's view of the tree must not be older than the call: an
 * entry leaves memory once the tree has it. */
int client_refs_find(struct client_refs *refs, struct db_connection *connection, int64_t account,
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
int client_refs_count(struct db_connection *connection, int64_t *ret_count, struct error *error)
	MUST_CHECK;

#endif
