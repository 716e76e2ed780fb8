#include "store/notices/notices.h"

#include "store/notices/endpoint.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define STATE "COALESCE(d.status, CASE WHEN " WANTS("e.types", "n.type") " THEN 'missed' END)"

#define ENDPOINTS                                                                                  \
	"webhook_endpoints e LEFT JOIN webhook_deliveries d ON d.account = e.account"                  \
	" AND d.endpoint = e.endpoint AND d.notice = n.notice"

/* The notices of `page`, a query with their columns; one row for each of their endpoints. */
#define WITH_STATES(page, where)                                                                   \
	"SELECT n.notice, n.notice_id, a.account_id, n.type, n.mode, n.created_at, n.data,"            \
	" e.endpoint_id, " STATE ", d.attempts, d.next_attempt_at, d.replayed_at FROM (" page ") AS n" \
	" JOIN accounts a ON a.account = n.account"                                                    \
	" LEFT JOIN webhook_endpoints e ON e.account = n.account AND e.deleted_at IS NULL"             \
	" LEFT JOIN webhook_deliveries d ON d.account = e.account AND d.endpoint = e.endpoint"         \
	" AND d.notice = n.notice" where " ORDER BY n.notice DESC, e.endpoint"

static void read_notice(struct row *row, struct notice_view *view)
{
	struct db_query *query = row->query;
	*view = (struct notice_view){
		.notice = db_integer(query, 0),
		.type = row_string(row, 3),
		.mode = row_string(row, 4),
		.created_at_us = db_integer(query, 5),
		.data = slice_of(row_string(row, 6)),
	};
	store_copy_id(view->notice_id, db_text(query, 1));
	store_copy_id(view->account_id, db_text(query, 2));
}

static void read_state(struct row *row, struct notice_view *view)
{
	struct db_query *query = row->query;
	if (db_is_null(query, 7) || db_is_null(query, 8) || view->state_count == WEBHOOKS_MAX)
		return;
	struct notice_state *state = &view->states[view->state_count++];
	*state = (struct notice_state){
		.status = row_string(row, 8),
		.attempts = db_integer(query, 9),
		.due_at_us = row_time(query, 10),
		.replayed_at_us = row_time(query, 11),
	};
	store_copy_id(state->endpoint_id, db_text(query, 7));
}

static void read_rows(struct row *row, int64_t limit, struct notice_list *list)
{
	struct notice_view *item = NULL;
	while (!row->failed && db_step(row->query)) {
		if (!item || item->notice != db_integer(row->query, 0)) {
			item = list_add(row, &list->items, &list->count, &list->more, limit, sizeof *item);
			if (!item)
				return;
			read_notice(row, item);
		}
		read_state(row, item);
	}
}

static int find_endpoint(struct db_connection *connection, int64_t account,
                         struct slice endpoint_id, struct error *error)
{
	struct row row = {.query = db_query(connection, "SELECT 1 FROM webhook_endpoints"
	                                                " WHERE account = $1 AND endpoint_id = $2"
	                                                " AND deleted_at IS NULL")};
	db_bind(row.query, account, endpoint_id);
	return row_end(&row, db_step(row.query), MSG_STORE_NO_WEBHOOK, endpoint_id, error);
}

#define FILTERED                                                                                   \
	"SELECT n.account, n.notice, n.notice_id, n.type, n.mode, n.created_at, NULL AS data"          \
	" FROM notices n WHERE n.account = $1 AND n.notice < $2 AND n.created_at >= $3"                \
	" AND n.created_at < $4 AND ($5 = '' OR ',' || $5 || ',' LIKE '%,' || n.type || ',%')"         \
	" AND (($6 = '' AND $7 = '') OR EXISTS (SELECT 1 FROM " ENDPOINTS                              \
	" WHERE e.account = $1 AND e.deleted_at IS NULL AND ($6 = '' OR e.endpoint_id = $6)"           \
	" AND " STATE " IS NOT NULL AND ($7 = '' OR " STATE " = $7)))"                                 \
	" ORDER BY n.notice DESC LIMIT $8"

int store_list_notices(struct store *store, const struct notice_filter *filter, int64_t limit,
                       struct arena *arena, struct notice_list *ret, struct error *error)
{
	int64_t account = 0;
	struct db_connection *connection = begin_read(store, &error);
	int result = find_account_number(connection, filter->account_id, &account, error);
	if (!result && filter->endpoint_id.size)
		result = find_endpoint(connection, account, filter->endpoint_id, error);
	if (result)
		return end_read(connection, result);
	struct row row = {.arena = arena,
	                  .query =
	                      db_query(connection, WITH_STATES(FILTERED, " WHERE a.account = $1"))};
	db_bind(row.query, account, filter->before ? filter->before : INT64_MAX, filter->since_us,
	        filter->until_us, filter->types, filter->endpoint_id, filter->status, limit + 1);
	struct notice_list list = {0};
	read_rows(&row, limit, &list);
	result = end_read(connection, row_end(&row, true, MSG_NONE, filter->account_id, error));
	if (!result)
		*ret = list;
	return result;
}

#define NAMED                                                                                      \
	"SELECT account, notice, notice_id, type, mode, created_at, data FROM notices"                 \
	" WHERE notice_id = $1"

int store_find_notice(struct store *store, struct slice notice_id, struct arena *arena,
                      struct notice_view *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.arena = arena,
		.query = routing_query_one(
			connection, ROUTING_PLACE("notices", "notice_id"), notice_id,
			(struct routing_texts){WITH_STATES(NAMED, ""), WITH_STATES(NAMED " AND account = $2",
	                                                                   " WHERE a.account = $2")})};
	struct notice_list list = {0};
	read_rows(&row, 1, &list);
	int result = end_read(connection, row_end(&row, row.failed || list.count > 0,
	                                          MSG_STORE_NOTICE_GONE, notice_id, error));
	if (!result)
		*ret = *list.items;
	return result;
}
