/* Recording of the time at which keys were last used. */
#include "base/tuned.h"
#include "store/transaction.h"
#include "store/usage/usage.h"

#define AT_ONCE 500 /* registrations on the embedded store wait for one such batch at most */

static int note_use(struct db_connection *connection, const struct key_use *use,
                    struct error *error)
{
	struct db_query *query =
		db_query(connection, "INSERT INTO key_last_use AS u (account, key, at) VALUES ($1, $2, $3)"
	                         " ON CONFLICT (account, key) DO UPDATE SET at = excluded.at"
	                         " WHERE u.at < excluded.at");
	db_bind(query, use->account, use->key, use->at_us);
	return db_execute(query, NULL, error);
}

/* Durable on this server only: the commit does not wait for a standby and is not delayed by one
 * that does. So a node can end, and another start, while no standby answers. */
static int note_some(struct store *store, const struct key_use *uses, size_t count,
                     struct error *error)
{
	struct db_connection *connection = db_take_local(store->db);
	int result = db_begin(connection, error);
	for (size_t i = 0; i < count && !result; i++)
		result = note_use(connection, &uses[i], error);
	if (!result)
		result = db_commit(connection, error);
	db_give(connection);
	return result;
}

int store_note_key_uses(struct store *store, const struct key_use *uses, size_t count,
                        struct error *error)
{
	const size_t most = (size_t)tuned_up_to("key_uses_noted", AT_ONCE);
	int result = OK;
	for (size_t done = 0; done < count && !result; done += most)
		result = note_some(store, uses + done, count - done < most ? count - done : most, error);
	return result;
}
