/* The log of deliveries. */
#include "store/notices/webhooks.h"
#include "store/shards/reach.h"
#include "store/transaction.h"

#define ATTEMPTS_SHOWN_MAX 1000

static int find_endpoint(struct db_connection *connection, struct slice endpoint_id,
                         int64_t *ret_account, int64_t *ret_endpoint, struct error *error)
{
	struct row row = {.query = reach_query_one(
						  connection, REACH_PLACE("webhook_endpoints", "endpoint_id"), endpoint_id,
						  REACH_TEXTS("SELECT account, endpoint FROM webhook_endpoints"
	                                  " WHERE endpoint_id = $1 AND deleted_at IS NULL",
	                                  ""))};
	bool found = db_step(row.query);
	if (found) {
		*ret_account = db_integer(row.query, 0);
		*ret_endpoint = db_integer(row.query, 1);
	}
	return row_end(&row, found, MSG_STORE_NO_WEBHOOK, endpoint_id, error);
}

/* Reads the columns attempt, at, duration_us, http_status, error, answer from `first` on. */
static void read_attempt(struct row *row, int first, struct attempt_view *view)
{
	struct db_query *query = row->query;
	struct slice answer = db_blob(query, first + 5);
	const char *copy = arena_copy(row->arena, answer.data, answer.size);
	*view = (struct attempt_view){
		.attempt = db_integer(query, first),
		.at_us = db_integer(query, first + 1),
		.duration_us = db_integer(query, first + 2),
		.http_status = db_integer(query, first + 3),
		.error = row_string(row, first + 4),
		.answer = slice_make(copy, answer.size),
	};
	row->failed |= !copy;
}

static void read_delivery(struct row *row, struct delivery_view *view)
{
	struct db_query *query = row->query;
	*view = (struct delivery_view){
		.notice = db_integer(query, 0),
		.type = row_string(row, 2),
		.mode = row_string(row, 3),
		.created_at_us = db_integer(query, 4),
		.status = row_string(row, 5),
		.attempts = db_integer(query, 6),
		.due_at_us = db_integer(query, 7),
		.replayed_at_us = row_time(query, 8),
	};
	store_copy_id(view->notice_id, db_text(query, 1));
	if (!db_is_null(query, 9))
		read_attempt(row, 9, &view->last);
}

int store_list_deliveries(struct store *store, struct slice endpoint_id, const char *status,
                          int64_t before, int64_t limit, struct arena *arena,
                          struct delivery_list *ret, struct error *error)
{
	struct db_connection *connection;
	int code = begin_read(store, &connection, error);
	if (code)
		return code;
	int64_t account = 0, endpoint = 0;
	code = find_endpoint(connection, endpoint_id, &account, &endpoint, error);
	if (code)
		return end_read(connection, code);
	struct row row = {
		.arena = arena,
		.query = db_query(
			connection,
			"SELECT d.notice, n.notice_id, n.type, n.mode, n.created_at, d.status, d.attempts,"
			" d.next_attempt_at, d.replayed_at, t.attempt, t.at, t.duration_us, t.http_status,"
			" t.error, t.answer"
			" FROM webhook_deliveries d"
			" JOIN notices n ON n.account = d.account AND n.notice = d.notice"
			" LEFT JOIN webhook_attempts t ON t.account = d.account AND t.endpoint = d.endpoint"
			" AND t.notice = d.notice AND t.attempt = d.attempts"
			" WHERE d.account = $1 AND d.endpoint = $2 AND d.notice < $3"
			" AND ($4 = '' OR d.status = $4) ORDER BY d.notice DESC LIMIT $5")};
	db_bind_integer(row.query, account);
	db_bind_integer(row.query, endpoint);
	db_bind_integer(row.query, before ? before : INT64_MAX);
	db_bind_string(row.query, status ? status : "");
	db_bind_integer(row.query, limit + 1);
	struct delivery_list list = {0};
	struct delivery_view *item;
	while (!row.failed && db_step(row.query) &&
	       (item = list_add(&row, &list.items, &list.count, &list.more, limit, sizeof *item)))
		read_delivery(&row, item);
	code = end_read(connection, row_end(&row, true, MSG_NONE, endpoint_id, error));
	if (!code)
		*ret = list;
	return code;
}

static int find_delivery(struct db_connection *connection, int64_t account, int64_t endpoint,
                         struct slice notice_id, int64_t *ret_notice, struct error *error)
{
	struct row row = {.query = db_query(connection,
	                                    "SELECT d.notice FROM webhook_deliveries d JOIN notices n"
	                                    " ON n.account = d.account AND n.notice = d.notice"
	                                    " WHERE d.account = $1 AND d.endpoint = $2"
	                                    " AND n.account = $1 AND n.notice_id = $3")};
	db_bind_integer(row.query, account);
	db_bind_integer(row.query, endpoint);
	db_bind_text(row.query, notice_id);
	bool found = db_step(row.query);
	if (found)
		*ret_notice = db_integer(row.query, 0);
	return row_end(&row, found, MSG_STORE_NO_NOTICE, notice_id, error);
}

int store_list_attempts(struct store *store, struct slice endpoint_id, struct slice notice_id,
                        struct arena *arena, struct attempt_list *ret, struct error *error)
{
	struct db_connection *connection;
	int code = begin_read(store, &connection, error);
	if (code)
		return code;
	int64_t account = 0, endpoint = 0, notice = 0;
	code = find_endpoint(connection, endpoint_id, &account, &endpoint, error);
	if (!code)
		code = find_delivery(connection, account, endpoint, notice_id, &notice, error);
	if (code)
		return end_read(connection, code);
	struct row row = {
		.arena = arena,
		.query = db_query(connection, "SELECT attempt, at, duration_us, http_status, error, answer"
	                                  " FROM webhook_attempts WHERE account = $1 AND endpoint = $2"
	                                  " AND notice = $3 ORDER BY attempt LIMIT $4")};
	db_bind_integer(row.query, account);
	db_bind_integer(row.query, endpoint);
	db_bind_integer(row.query, notice);
	db_bind_integer(row.query, ATTEMPTS_SHOWN_MAX + 1);
	struct attempt_list list = {0};
	struct attempt_view *item;
	while (!row.failed && db_step(row.query) &&
	       (item = list_add(&row, &list.items, &list.count, &list.more, ATTEMPTS_SHOWN_MAX,
	                        sizeof *item)))
		read_attempt(&row, 0, item);
	code = end_read(connection, row_end(&row, true, MSG_NONE, notice_id, error));
	if (!code)
		*ret = list;
	return code;
}
