/* Whether the servers of a store are set up as docs/operations.md says, most of all where tables
 * are distributed. Asked of the one that the address names, there the coordinator, and by way of it
 * of the workers, which have the accounts' rows. Nothing is changed, nothing waits for the writer's
 * turn, and the role need not be a superuser. */
#ifndef STORE_NODES_SERVERS_H
#define STORE_NODES_SERVERS_H

#include "db/db.h"

/* What is wrong, and what to do, in a sentence. */
typedef void servers_found(void *context, const char *sentence);

struct servers_coordinator {
	bool distributes; /* the server can, and tables are distributed or are to be */
	char name[128];   /* by which it knows itself; empty: none */
	int64_t workers;  /* that it knows */
	int64_t shards;   /* of the accounts; 0: nothing is distributed yet */
};
/* `sharded`: store.sharded; `has_schema`: there are tables to be distributed. */
int servers_check_coordinator(struct db *db, bool sharded, bool has_schema,
                              struct servers_coordinator *ret, servers_found *found, void *context,
                              struct error *error) MUST_CHECK;
/* `name` as db_ask_shard_servers has it. Settings are looked at as they reach a session that the
 * coordinator opens there. ERR_UNAVAILABLE: it does not answer. */
int servers_check_worker(struct db *db, const char *name, servers_found *found, void *context,
                         struct error *error) MUST_CHECK;

/* servers_pace.c: which settings of the one that the address names make registrations uneven.
 * Nothing that is promised depends on them. */
int servers_check_pace(struct db *db, servers_found *found, void *context, struct error *error)
	MUST_CHECK;

/* The names of the tables that are not distributed as they are to be, one per line. ERR_REFUSED:
 * the server distributes none. */
int servers_list_undistributed(struct db *db, struct buf *out, struct error *error) MUST_CHECK;

#endif
