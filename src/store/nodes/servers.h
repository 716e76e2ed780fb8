/* Checks that the servers of a store are configured as docs/operate/sharding.md requires, in
 * particular with distributed tables. Asks the server of the address, which is then the
 * coordinator, and through it the workers, which have the rows of accounts. Changes nothing and
 * does not wait for the writer lock. The role need not be a superuser. */
#ifndef STORE_NODES_SERVERS_H
#define STORE_NODES_SERVERS_H

#include "db/db.h"

/* Receives a sentence with a problem and its remedy. */
typedef void servers_found(void *context, const char *sentence);

struct servers_coordinator {
	bool distributes; /* the server supports it, and tables are or will be distributed */
	char name[128];   /* of its own entry; empty: none */
	int64_t workers;  /* number of registered workers */
	int64_t shards;   /* of table accounts; 0: not distributed yet */
};
/* Checks the coordinator. `sharded`: the setting store.sharded; `has_schema`: there are tables to
 * distribute. */
int servers_check_coordinator(struct db *db, bool sharded, bool has_schema,
                              struct servers_coordinator *ret, servers_found *found, void *context,
                              struct error *error) MUST_CHECK;
/* Checks a worker. `name` as from db_ask_shard_servers. Settings are checked as they apply to a
 * session that the coordinator opens there. Returns ERR_UNAVAILABLE when the worker does not
 * answer. */
int servers_check_worker(struct db *db, const char *name, servers_found *found, void *context,
                         struct error *error) MUST_CHECK;

/* Checks the server of the address for settings that make the speed of registrations uneven
 * (servers_pace.c). No guarantee depends on them. */
int servers_check_pace(struct db *db, servers_found *found, void *context, struct error *error)
	MUST_CHECK;

/* Lists the names of the tables that are not distributed as required, one per line. Returns
 * ERR_REFUSED when the server does not support distribution. */
int servers_list_undistributed(struct db *db, struct buf *out, struct error *error) MUST_CHECK;

#endif
