#include "store/nodes/leases.h"

#include <assert.h>

#include "store/transaction.h"

/* Nodes of other versions use these names. */
static const char *const names[] = {
	[LEASE_SEALER] = "sealer",   [LEASE_DELIVERER] = "deliverer",     [LEASE_SWEEP] = "sweep",
	[LEASE_RENEWER] = "renewer", [LEASE_SIGNER_LIST] = "signer_list", [LEASE_DIGESTS] = "digests",
	[LEASE_LOG] = "log",
};

int store_take_lease(struct store *store, enum lease_name name, const char *holder, int64_t now_us,
                     int64_t duration_us, bool *ret_taken, struct error *error)
{
	assert((size_t)name < sizeof names / sizeof *names);
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "INSERT INTO leases (name, holder, expires_at) VALUES ($1, $2, $3)"
	                         " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
	                         " expires_at = excluded.expires_at"
	                         " WHERE leases.holder = excluded.holder OR leases.expires_at <= $4");
	db_bind(query, names[name], holder, now_us + duration_us, now_us);
	int64_t changes = 0;
	int result = end_write(connection, db_execute(query, &changes, error), error);
	if (!result)
		*ret_taken = changes == 1;
	return result;
}

int store_end_lease(struct store *store, enum lease_name name, const char *holder,
                    struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "DELETE FROM leases WHERE name = $1 AND holder = $2");
	db_bind(query, names[name], holder);
	return end_write(connection, db_execute(query, NULL, error), error);
}
