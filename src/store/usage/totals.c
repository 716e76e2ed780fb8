/* Lists of what was sealed and delivered on each day. */
#include "store/usage/totals.h"

#include "store/transaction.h"
#include "store/usage/count.h"

static struct delays read_delays(struct db_query *query, int first)
{
	struct delays delays = {db_integer(query, first), db_integer(query, first + 1), {0}};
	for (int i = 0; i < DELAY_BOUNDS; i++)
		delays.within[i] = db_integer(query, first + 2 + i);
	return delays;
}

/* ---- seals ---- */

int store_list_seals(struct store *store, const struct days *days, int64_t limit,
                     struct arena *arena, struct seal_list *ret, struct error *error)
{
	struct db_connection *connection;
	int64_t account = 0;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	result = find_account_number(connection, days->account_id, &account, error);
	if (result)
		return end_read(connection, result);
	struct row row = {.arena = arena,
	                  .query =
	                      db_query(connection, "SELECT day, segments, events, " DELAY_COLUMNS
	                                           " FROM daily_seals WHERE account = $1 AND day >= $2"
	                                           " AND day <= $3 ORDER BY day LIMIT $4")};
	db_bind_integer(row.query, account);
	db_bind_integer(row.query, days->first_day);
	db_bind_integer(row.query, days->last_day);
	db_bind_integer(row.query, limit + 1);
	struct seal_list list = {0};
	struct seal_day *item;
	while (!row.failed && db_step(row.query) &&
	       (item = list_add(&row, &list.items, &list.count, &list.more, limit, sizeof *item)))
		*item = (struct seal_day){db_integer(row.query, 0), db_integer(row.query, 1),
		                          db_integer(row.query, 2), read_delays(row.query, 3)};
	result = end_read(connection, row_end(&row, true, MSG_NONE, days->account_id, error));
	if (!result)
		*ret = list;
	return result;
}

/* ---- deliveries ---- */

static int find_endpoint(struct db_connection *connection, struct slice endpoint_id,
                         int64_t account, int64_t *ret_endpoint, struct error *error)
{
	struct row row = {.query = db_query(connection, "SELECT endpoint FROM webhook_endpoints"
	                                                " WHERE account = $1 AND endpoint_id = $2"
	                                                " AND deleted_at IS NULL")};
	db_bind_integer(row.query, account);
	db_bind_text(row.query, endpoint_id);
	bool found = db_step(row.query);
	if (found)
		*ret_endpoint = db_integer(row.query, 0);
	return row_end(&row, found, MSG_STORE_NO_WEBHOOK, endpoint_id, error);
}

static void read_delivery_day(struct row *row, struct delivery_day *item)
{
	*item = (struct delivery_day){
		.day = db_integer(row->query, 0),
		.endpoint = db_integer(row->query, 1),
		.endpoint_id = row_string(row, 2),
		.url = row_string(row, 3),
		.attempts = db_integer(row->query, 4),
		.delivered = db_integer(row->query, 5),
		.failed = db_integer(row->query, 6),
		.delays = read_delays(row->query, 7),
	};
}

int store_list_delivery_days(struct store *store, const struct days *days, struct slice endpoint_id,
                             int64_t after_endpoint, int64_t limit, struct arena *arena,
                             struct delivery_day_list *ret, struct error *error)
{
	struct db_connection *connection;
	int64_t account = 0, endpoint = 0;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	result = find_account_number(connection, days->account_id, &account, error);
	if (!result && endpoint_id.size)
		result = find_endpoint(connection, endpoint_id, account, &endpoint, error);
	if (result)
		return end_read(connection, result);
	struct row row = {
		.arena = arena,
		.query = db_query(connection,
	                      "SELECT t.day, t.endpoint, e.endpoint_id, e.url, t.attempts, t.delivered,"
	                      " t.failed, " DELAY_COLUMNS " FROM daily_deliveries t"
	                      " LEFT JOIN webhook_endpoints e ON e.account = t.account"
	                      " AND e.endpoint = t.endpoint AND e.deleted_at IS NULL"
	                      " WHERE t.account = $1 AND (t.day > $2 OR (t.day = $2"
	                      " AND t.endpoint > $3)) AND t.day <= $4 AND ($5 = 0 OR t.endpoint = $5)"
	                      " ORDER BY t.day, t.endpoint LIMIT $6")};
	db_bind_integer(row.query, account);
	db_bind_integer(row.query, days->first_day);
	db_bind_integer(row.query, after_endpoint);
	db_bind_integer(row.query, days->last_day);
	db_bind_integer(row.query, endpoint);
	db_bind_integer(row.query, limit + 1);
	struct delivery_day_list list = {0};
	struct delivery_day *item;
	while (!row.failed && db_step(row.query) &&
	       (item = list_add(&row, &list.items, &list.count, &list.more, limit, sizeof *item)))
		read_delivery_day(&row, item);
	result = end_read(connection, row_end(&row, true, MSG_NONE, days->account_id, error));
	if (!result)
		*ret = list;
	return result;
}
