/* Housekeeping of notices and their deliveries. */
#include "base/tuned.h"
#include "store/notices/deliveries.h"
#include "store/transaction.h"

#define BATCH_ROWS 500 /* notices or deliveries per transaction */

struct place {
	int64_t account, number;
};

/* Calls `remove` for at most BATCH_ROWS rows, in one transaction. */
static int remove_places(struct store *store, const struct place *places, size_t count,
                         int (*remove)(struct db_connection *connection, const struct place *place,
                                       int64_t *removed, struct error *error),
                         int64_t *removed, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	for (size_t i = 0; i < count && !result; i++)
		result = remove(connection, &places[i], removed, error);
	return end_write(connection, result, error);
}

static size_t read_places(struct db_query *query, struct place places[BATCH_ROWS])
{
	size_t count = 0;
	while (count < BATCH_ROWS && db_step(query))
		places[count++] = (struct place){db_integer(query, 0), db_integer(query, 1)};
	return count;
}

/* ---- old notices ---- */

/* Reads whether a replay has queued the notice since it was found. */
static int is_waiting(struct db_connection *connection, const struct place *place, bool *ret,
                      struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT count(*) FROM webhook_endpoints e JOIN webhook_deliveries d"
					" ON d.account = e.account AND d.endpoint = e.endpoint"
					" WHERE e.account = $1 AND e.disabled_at IS NULL AND e.deleted_at IS NULL"
					" AND d.notice = $2 AND d.status = 'waiting'");
	db_bind(query, place->account, place->number);
	*ret = db_step(query) && db_integer(query, 0) > 0;
	return db_end(query, error);
}

static int remove_notice(struct db_connection *connection, const struct place *place,
                         int64_t *removed, struct error *error)
{
	static const char *const texts[] = {
		"DELETE FROM webhook_attempts WHERE account = $1 AND notice = $2"
		" AND endpoint IN (SELECT endpoint FROM webhook_endpoints WHERE account = $1)",
		"DELETE FROM webhook_deliveries WHERE account = $1 AND notice = $2"
		" AND endpoint IN (SELECT endpoint FROM webhook_endpoints WHERE account = $1)",
		"DELETE FROM notices WHERE account = $1 AND notice = $2",
	};
	bool has_waiting = false;
	int result = is_waiting(connection, place, &has_waiting, error);
	if (result || has_waiting)
		return result;
	for (size_t i = 0; i < sizeof texts / sizeof *texts && !result; i++) {
		struct db_query *query = db_query(connection, texts[i]);
		db_bind(query, place->account, place->number);
		result = db_execute(query, NULL, error);
	}
	++*removed;
	return result;
}

/* Keeps what an enabled endpoint still waits for; with a long schedule it may be older. */
static int forget_old(struct store *store, int64_t before_us, size_t *ret_count, int64_t *removed,
                      struct error *error)
{
	struct place places[BATCH_ROWS];
	const int64_t most = tuned_up_to("forgotten", BATCH_ROWS);
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection,
	             "SELECT n.account, n.notice FROM notices n WHERE n.created_at < $1"
	             " AND NOT EXISTS (SELECT 1 FROM webhook_endpoints e"
	             " JOIN webhook_deliveries d ON d.account = e.account AND d.endpoint = e.endpoint"
	             " WHERE e.account = n.account AND e.disabled_at IS NULL"
	             " AND e.deleted_at IS NULL AND d.notice = n.notice AND d.status = 'waiting')"
	             " ORDER BY n.created_at LIMIT $2");
	db_bind(query, before_us, most);
	*ret_count = read_places(query, places);
	int result = end_read(connection, db_end(query, error));
	return result || *ret_count == 0
	           ? result
	           : remove_places(store, places, *ret_count, remove_notice, removed, error);
}

/* ---- deleted endpoints ---- */

/* Removes a batch of the endpoint's rows, and the endpoint when none is left. */
static int empty_endpoint(struct db_connection *connection, const struct place *place,
                          int64_t *removed, struct error *error)
{
	const int64_t most = tuned_up_to("forgotten", BATCH_ROWS);
	struct db_query *query = db_query(
		connection, "DELETE FROM webhook_attempts WHERE account = $1 AND endpoint = $2"
					" AND notice IN (SELECT notice FROM webhook_deliveries WHERE account = $1"
					" AND endpoint = $2 ORDER BY notice LIMIT $3)");
	db_bind(query, place->account, place->number, most);
	int result = db_execute(query, NULL, error);
	if (result)
		return result;
	query = db_query(connection,
	                 "DELETE FROM webhook_deliveries WHERE account = $1 AND endpoint = $2"
	                 " AND notice IN (SELECT notice FROM webhook_deliveries WHERE account = $1"
	                 " AND endpoint = $2 ORDER BY notice LIMIT $3)");
	db_bind(query, place->account, place->number, most);
	int64_t changes = 0;
	result = db_execute(query, &changes, error);
	*removed += changes;
	if (result || changes == most)
		return result;
	query = db_query(connection, "DELETE FROM webhook_endpoints"
	                             " WHERE account = $1 AND endpoint = $2");
	db_bind(query, place->account, place->number);
	++*removed;
	return db_execute(query, NULL, error);
}

static int forget_deleted(struct store *store, size_t *ret_count, int64_t *removed,
                          struct error *error)
{
	struct place places[BATCH_ROWS];
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT account, endpoint FROM webhook_endpoints"
	                         " WHERE deleted_at IS NOT NULL ORDER BY account, endpoint LIMIT 1");
	*ret_count = read_places(query, places);
	int result = end_read(connection, db_end(query, error));
	return result || *ret_count == 0
	           ? result
	           : remove_places(store, places, *ret_count, empty_endpoint, removed, error);
}

int store_forget_notices(struct store *store, int64_t before_us, int64_t most, int64_t *ret_removed,
                         struct error *error)
{
	int64_t removed = 0;
	size_t count = 1;
	int result = OK;
	while (!result && count > 0 && removed < most)
		result = forget_deleted(store, &count, &removed, error);
	count = 1;
	while (!result && count > 0 && removed < most)
		result = forget_old(store, before_us, &count, &removed, error);
	*ret_removed = removed;
	return result;
}
