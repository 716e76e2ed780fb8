/* The log of deliveries. */
#include "store/notices/webhooks.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define ATTEMPTS_SHOWN_MAX 1000

static int find_endpoint(struct db_connection *connection, struct slice endpoint_id,
                         int64_t *ret_account, int64_t *ret_endpoint, struct error *error)
{
	struct row row = {
		.query = routing_query_one(connection, ROUTING_PLACE("webhook_endpoints", "endpoint_id"),
	                               endpoint_id,
	                               ROUTING_TEXTS("SELECT account, endpoint FROM webhook_endpoints"
	                                             " WHERE endpoint_id = $1 AND deleted_at IS NULL",
	                                             ""))};
	bool found = db_step(row.query);
	if (found) {
		*ret_account = db_integer(row.query, 0);
		*ret_endpoint = db_integer(row.query, 1);
	}
	return row_end(&row, found, MSG_STORE_NO_WEBHOOK, endpoint_id, error);
}

static const struct member attempt_columns[] =
	COLUMNS_OF(struct attempt_view, attempt, at_us, duration_us, http_status, error, answer);
static const struct row_type attempt_type = ROW_TYPE(struct attempt_view, attempt_columns, NULL);

static const struct member delivery_columns[] =
	COLUMNS_OF(struct delivery_view, notice, notice_id, type, mode, created_at_us, status, attempts,
               due_at_us, replayed_at_us);

static void complete_delivery(struct row *row, void *to)
{
	struct delivery_view *view = to;
	if (!db_is_null(row->query, 9))
		row_read(row, &attempt_type, 9, &view->last);
}

static const struct row_type delivery_type =
	ROW_TYPE(struct delivery_view, delivery_columns, complete_delivery);

int store_list_deliveries(struct store *store, struct slice endpoint_id, const char *status,
                          int64_t before, int64_t limit, struct arena *arena,
                          struct delivery_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account = 0, endpoint = 0;
	int code = find_endpoint(connection, endpoint_id, &account, &endpoint, error);
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
	db_bind(row.query, account, endpoint, before ? before : INT64_MAX, status ? status : "",
	        limit + 1);
	struct delivery_list list = {0};
	code = end_read(connection, row_list(&row, &delivery_type, LIST_OF(&list), limit, error));
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
	db_bind(row.query, account, endpoint, notice_id);
	bool found = db_step(row.query);
	if (found)
		*ret_notice = db_integer(row.query, 0);
	return row_end(&row, found, MSG_STORE_NO_NOTICE, notice_id, error);
}

int store_list_attempts(struct store *store, struct slice endpoint_id, struct slice notice_id,
                        struct arena *arena, struct attempt_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account = 0, endpoint = 0, notice = 0;
	int code = find_endpoint(connection, endpoint_id, &account, &endpoint, error);
	if (!code)
		code = find_delivery(connection, account, endpoint, notice_id, &notice, error);
	if (code)
		return end_read(connection, code);
	struct row row = {
		.arena = arena,
		.query = db_query(connection, "SELECT attempt, at, duration_us, http_status, error, answer"
	                                  " FROM webhook_attempts WHERE account = $1 AND endpoint = $2"
	                                  " AND notice = $3 ORDER BY attempt LIMIT $4")};
	db_bind(row.query, account, endpoint, notice, ATTEMPTS_SHOWN_MAX + 1);
	struct attempt_list list = {0};
	code = end_read(connection,
	                row_list(&row, &attempt_type, LIST_OF(&list), ATTEMPTS_SHOWN_MAX, error));
	if (!code)
		*ret = list;
	return code;
}
