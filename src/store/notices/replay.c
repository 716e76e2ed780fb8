#include "store/notices/replay.h"

#include "base/tuned.h"
#include "store/notices/endpoint.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define BATCH_NOTICES 500

static int begin(struct store *store, struct slice endpoint_id,
                 struct db_connection **ret_connection, struct locked_endpoint *ret,
                 struct error *error)
{
	*ret_connection = begin_write(store, &error);
	int result = lock_endpoint_by_id(*ret_connection, endpoint_id, ret, error);
	if (!result && ret->disabled)
		result = error_set(error, ERR_REFUSED, MSG_STORE_WEBHOOK_DISABLED, NULL);
	return result ? end_write(*ret_connection, result, error) : OK;
}

/* ---- one notice ---- */

static int find_notice(struct db_connection *connection, int64_t account, struct slice notice_id,
                       int64_t *ret_notice, struct error *error)
{
	struct row row = {.query = db_query(connection, "SELECT notice FROM notices"
	                                                " WHERE account = $1 AND notice_id = $2")};
	db_bind(row.query, account, notice_id);
	bool found = db_step(row.query);
	if (found)
		*ret_notice = db_integer(row.query, 0);
	return row_end(&row, found, MSG_STORE_NO_NOTICE, notice_id, error);
}

#define WAITS_AGAIN                                                                                \
	" ON CONFLICT (account, endpoint, notice) DO UPDATE SET status = 'waiting', tries = 0,"        \
	" next_attempt_at = excluded.next_attempt_at, replayed = 1,"                                   \
	" replayed_at = excluded.replayed_at"

static int queue_one(struct db_connection *connection, const struct locked_endpoint *locked,
                     int64_t notice, int64_t now_us, struct error *error)
{
	int64_t due_us = due_at_once_us(connection, now_us);
	struct db_query *query = db_query(
		connection, "INSERT INTO webhook_deliveries (account, endpoint, notice, status, attempts,"
					" tries, next_attempt_at, replayed, replayed_at)"
					" VALUES ($1, $2, $3, 'waiting', 0, 0, $4, 1, $4)" WAITS_AGAIN);
	db_bind(query, locked->account, locked->endpoint, notice, due_us);
	int result = db_execute(query, NULL, error);
	return result ? result : make_endpoint_due(connection, locked, due_us, error);
}

int store_replay_notice(struct store *store, struct slice notice_id, struct slice endpoint_id,
                        int64_t now_us, struct error *error)
{
	struct db_connection *connection;
	struct locked_endpoint locked;
	int result = begin(store, endpoint_id, &connection, &locked, error);
	if (result)
		return result;
	int64_t notice = 0;
	result = find_notice(connection, locked.account, notice_id, &notice, error);
	if (!result)
		result = queue_one(connection, &locked, notice, now_us, error);
	return end_write(connection, result, error);
}

/* ---- a range ---- */

struct window {
	int64_t count;
	int64_t last; /* number of the last notice */
};

/* The next notices of the account in any state, with one key lookup for each. Without table
 * statistics, as after a restore, the server would otherwise sort all remaining notices for each
 * batch. Reads before anything is locked. */
static struct db_query *ask_window(struct db_connection *connection, int64_t account)
{
	struct db_query *query =
		db_query(connection, "WITH RECURSIVE next(notice) AS ("
	                         "SELECT MIN(n.notice) FROM notices n"
	                         " WHERE n.account = $1 AND n.notice > $2"
	                         " UNION ALL SELECT (SELECT MIN(n.notice) FROM notices n"
	                         " WHERE n.account = $1 AND n.notice > p.notice)"
	                         " FROM next p WHERE p.notice IS NOT NULL)"
	                         " SELECT count(*), MAX(notice) FROM (SELECT notice FROM next"
	                         " WHERE notice IS NOT NULL LIMIT $3) AS found");
	db_bind_integer(query, account);
	return query;
}

static int64_t account_of(struct db_connection *connection, struct slice endpoint_id)
{
	struct db_query *query = routing_query_one(
		connection, ROUTING_PLACE("webhook_endpoints", "endpoint_id"), endpoint_id,
		ROUTING_TEXTS("SELECT account FROM webhook_endpoints WHERE endpoint_id = $1", ""));
	int64_t account = db_step(query) ? db_integer(query, 0) : 0;
	db_release(query);
	return account;
}

static int find_window(struct store *store, struct slice endpoint_id,
                       const struct replay_place *place, int64_t most, struct window *ret,
                       struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = ask_window(connection, account_of(connection, endpoint_id));
	db_bind(query, place->behind, most);
	if (db_step(query))
		*ret = (struct window){db_integer(query, 0), db_integer(query, 1)};
	return end_read(connection, db_end(query, error));
}

/* Due times differ by a microsecond, and each batch follows the previous one, which keeps the order
 * of the notices. The state of each notice is read by its key, because a join might read all
 * deliveries. */
static int queue_window(struct db_connection *connection, const struct locked_endpoint *locked,
                        const struct replay_range *range, const struct replay_place *place,
                        int64_t last, int64_t due_us, int64_t *ret_queued, struct error *error)
{
	struct db_query *query = db_query(
		connection,
		"INSERT INTO webhook_deliveries (account, endpoint, notice, status, attempts, tries,"
		" next_attempt_at, replayed, replayed_at) SELECT n.account, e.endpoint, n.notice, 'waiting',"
		" 0, 0, $8 + ROW_NUMBER() OVER (ORDER BY n.notice), 1, $8 FROM notices n"
		" JOIN webhook_endpoints e ON e.account = $1 AND e.endpoint = $2"
		" WHERE n.account = $1 AND n.notice > $3 AND n.notice <= $7 AND n.created_at >= $4"
		" AND n.created_at < $5 AND " WANTS(
			"e.types",
			"n.type") " AND COALESCE((SELECT d.status FROM webhook_deliveries d WHERE d.account = $1"
					  " AND d.endpoint = $2 AND d.notice = n.notice), 'missed')"
					  " IN ('failed', CASE WHEN $6 = 1 THEN 'missed' ELSE 'failed' END)" WAITS_AGAIN);
	db_bind(query, locked->account, locked->endpoint, place->behind, range->since_us,
	        range->until_us, range->what == REPLAY_MISSED, last, due_us);
	int result = db_execute(query, ret_queued, error);
	return result || *ret_queued == 0 ? result
	                                  : make_endpoint_due(connection, locked, due_us + 1, error);
}

int store_replay_batch(struct store *store, struct slice endpoint_id,
                       const struct replay_range *range, int64_t now_us, struct replay_place *place,
                       struct error *error)
{
	struct db_connection *connection;
	struct locked_endpoint locked;
	struct window window = {0};
	const int64_t most = tuned_up_to("replayed", BATCH_NOTICES);
	int64_t queued = 0;
	int result = find_window(store, endpoint_id, place, most, &window, error);
	if (!result)
		result = begin(store, endpoint_id, &connection, &locked, error);
	if (result)
		return result;
	int64_t due_us = due_at_once_us(connection, now_us);
	due_us = due_us > place->due_us ? due_us : place->due_us;
	if (window.count)
		result =
			queue_window(connection, &locked, range, place, window.last, due_us, &queued, error);
	result = end_write(connection, result, error);
	if (result)
		return result;
	*place = (struct replay_place){
		.behind = window.count ? window.last : place->behind,
		.due_us = due_us + queued,
		.queued = place->queued + queued,
		.more = window.count == most,
	};
	return OK;
}
