#include "store/notices/webhooks.h"

#include <stdio.h>

#include "store/notices/endpoint.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define BY_ENDPOINT ROUTING_PLACE("webhook_endpoints", "endpoint_id")

/* ---- reading ---- */

#define COLUMNS(of_waiting)                                                                        \
	"SELECT e.endpoint_id, a.account_id, e.url, e.types, e.created_at,"                            \
	" e.secret_version, e.previous_secret_until, e.failures, e.disabled_at, e.disabled_by,"        \
	" (SELECT count(*) FROM webhook_deliveries d WHERE d.account = e.account"                      \
	" AND d.endpoint = e.endpoint AND d.status = 'waiting'" of_waiting ")"                         \
	" FROM webhook_endpoints e JOIN accounts a ON a.account = e.account"                           \
	" WHERE e.deleted_at IS NULL"
#define NAMED " AND e.endpoint_id = $1"
#define LISTED(of_waiting, of)                                                                     \
	COLUMNS(of_waiting)                                                                            \
	" AND ($1 = 0 OR e.account = $1) AND e.endpoint_id > $2" of " ORDER BY e.endpoint_id LIMIT $3"

static const struct member webhook_columns[] = COLUMNS_OF(
	struct webhook_record, endpoint_id, account_id, url, types, created_at_us, secret_version,
	previous_secret_until_us, failures, disabled_at_us, disabled_by, waiting);

/* The types are stored with a comma before the first and after the last one. */
static void complete_webhook(struct row *row, void *to)
{
	struct webhook_record *record = to;
	if (db_is_null(row->query, 3))
		return;
	struct slice types = db_text(row->query, 3);
	record->types = types.size < 2 ? arena_text(row->arena, "")
	                               : arena_copy(row->arena, types.data + 1, types.size - 2);
	row->failed |= !record->types;
}

static const struct row_type webhook_type =
	ROW_TYPE(struct webhook_record, webhook_columns, complete_webhook);

int store_find_webhook(struct store *store, struct slice endpoint_id, struct arena *arena,
                       struct webhook_record *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.arena = arena,
		.query = routing_query_one(connection, BY_ENDPOINT, endpoint_id,
	                               (struct routing_texts){COLUMNS("") NAMED,
	                                                      COLUMNS(" AND d.account = $2") NAMED
	                                                      " AND e.account = $2"})};
	bool found = db_step(row.query);
	struct webhook_record record;
	if (found)
		row_read(&row, &webhook_type, 0, &record);
	int result =
		end_read(connection, row_end(&row, found, MSG_STORE_NO_WEBHOOK, endpoint_id, error));
	if (!result)
		*ret = record;
	return result;
}

int store_list_webhooks(struct store *store, struct slice account_id, struct slice after,
                        int64_t limit, struct arena *arena, struct webhook_list *ret,
                        struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int result = OK;
	int64_t account = 0;
	if (account_id.size)
		result = find_account_number(connection, account_id, &account, error);
	if (result)
		return end_read(connection, result);
	SHARD_WORK_AUTO struct work_accounts of = {0};
	result = routing_find_page(connection, account ? account : ROUTING_ALL,
	                           "SELECT account FROM {webhook_endpoints} WHERE deleted_at IS NULL"
	                           " AND endpoint_id > ? ORDER BY endpoint_id",
	                           &(struct routing_value){.text = &after}, limit + 1, &of, error);
	if (result)
		return end_read(connection, result);
	struct row row = {.arena = arena,
	                  .query =
	                      routing_query(connection, &of, LISTED("", ""),
	                                    LISTED(WORK_ACCOUNTS("d", "$4"),
	                                           WORK_ACCOUNTS("e", "$4") WORK_ACCOUNTS("a", "$4")))};
	db_bind(row.query, account, after, limit + 1);
	shard_work_bind(row.query, &of);
	struct webhook_list list = {.partial = of.partial};
	result = end_read(connection, row_list(&row, &webhook_type, LIST_OF(&list), limit, error));
	if (!result)
		*ret = list;
	return result;
}

/* ---- changing ---- */

/* Locking a row by its identifier would ask every shard, so the row is found first and then
 * locked. */
int lock_endpoint_by_id(struct db_connection *connection, struct slice endpoint_id,
                        struct locked_endpoint *ret, struct error *error)
{
	struct db_query *query = routing_query_one(
		connection, BY_ENDPOINT, endpoint_id,
		ROUTING_TEXTS("SELECT account, endpoint FROM webhook_endpoints WHERE endpoint_id = $1",
	                  ""));
	bool found = db_step(query);
	struct locked_endpoint locked = {0};
	if (found)
		locked = (struct locked_endpoint){db_integer(query, 0), db_integer(query, 1), false};
	db_release(query);
	struct row row = {.query = db_query(connection,
	                                    "SELECT disabled_at FROM webhook_endpoints WHERE account"
	                                    " = $1 AND endpoint = $2 AND deleted_at IS NULL"
	                                    " FOR UPDATE")};
	db_bind(row.query, locked.account, locked.endpoint);
	found = db_step(row.query);
	locked.disabled = found && !db_is_null(row.query, 0);
	if (found)
		*ret = locked;
	return row_end(&row, found, MSG_STORE_NO_WEBHOOK, endpoint_id, error);
}

int make_endpoint_due(struct db_connection *connection, const struct locked_endpoint *locked,
                      int64_t due_us, struct error *error)
{
	struct db_query *query = db_query(connection, "UPDATE webhook_endpoints SET next_at = $3"
	                                              " WHERE account = $1 AND endpoint = $2"
	                                              " AND (next_at IS NULL OR next_at > $3)");
	db_bind(query, locked->account, locked->endpoint, due_us);
	return db_execute(query, NULL, error);
}

static int change_locked(struct store *store, struct slice endpoint_id,
                         struct db_connection **ret_connection, struct locked_endpoint *ret,
                         struct error *error)
{
	*ret_connection = begin_write(store, &error);
	int result = lock_endpoint_by_id(*ret_connection, endpoint_id, ret, error);
	return result ? end_write(*ret_connection, result, error) : OK;
}

static int refuse_too_many(struct db_connection *connection, int64_t account, struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT count(*) FROM webhook_endpoints"
	                                              " WHERE account = $1 AND deleted_at IS NULL");
	db_bind_integer(query, account);
	bool full = db_step(query) && db_integer(query, 0) >= WEBHOOKS_MAX;
	int result = db_end(query, error);
	if (result || !full)
		return result;
	char most[24];
	snprintf(most, sizeof most, "%d", WEBHOOKS_MAX);
	return error_set(error, ERR_REFUSED, MSG_STORE_WEBHOOKS_MAX, most, NULL);
}

static void bind_types(struct db_query *query, const char *types, char text[512])
{
	snprintf(text, 512, ",%s,", types ? types : "");
	db_bind_string(query, types && *types ? text : NULL);
}

int store_create_webhook(struct store *store, struct slice account_id, const char *url,
                         const char *types, int64_t now_us, char ret_endpoint_id[ID_SIZE],
                         struct error *error)
{
	char endpoint_id[ID_SIZE], stored_types[512];
	store_fresh_id("whk_", endpoint_id);
	struct db_connection *connection = begin_write(store, &error);
	int64_t account = 0;
	int result = find_account_number(connection, account_id, &account, error)
	                 ?: refuse_too_many(connection, account, error);
	if (!result) {
		struct db_query *query =
			db_query(connection, "INSERT INTO webhook_endpoints (account, endpoint_id, url, types,"
		                         " created_at) VALUES ($1, $2, $3, $4, $5)");
		db_bind(query, account, endpoint_id, url);
		bind_types(query, types, stored_types);
		db_bind_integer(query, now_us);
		result = db_execute(query, NULL, error);
	}
	audit_add_created(connection, "endpoint_id", endpoint_id);
	result = end_write(connection, result, error);
	if (!result)
		memcpy(ret_endpoint_id, endpoint_id, ID_SIZE);
	return result;
}

int store_change_webhook(struct store *store, struct slice endpoint_id, const char *url,
                         const char *types, struct error *error)
{
	struct db_connection *connection;
	struct locked_endpoint locked;
	char stored_types[512];
	int result = change_locked(store, endpoint_id, &connection, &locked, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "UPDATE webhook_endpoints SET url = COALESCE($3, url),"
	                         " types = CASE WHEN $4 = 1 THEN $5 ELSE types END"
	                         " WHERE account = $1 AND endpoint = $2");
	db_bind(query, locked.account, locked.endpoint, url, types != NULL);
	bind_types(query, types, stored_types);
	return end_write(connection, db_execute(query, NULL, error), error);
}

/* Two secrets sign at a time. A third one would immediately end the first, which may be the only
 * one that a receiver has. */
static int refuse_while_both_sign(struct db_connection *connection,
                                  const struct locked_endpoint *locked, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT previous_secret_until FROM webhook_endpoints"
	                         " WHERE account = $1 AND endpoint = $2");
	db_bind(query, locked->account, locked->endpoint);
	int64_t until_us = db_step(query) ? row_time(query, 0) : TIME_NONE;
	int result = db_end(query, error);
	if (result || until_us == TIME_NONE || until_us <= db_now_us(db_of(connection)))
		return result;
	char until[TIME_TEXT_SIZE];
	time_format(until_us, until);
	return error_set(error, ERR_CONFLICT, MSG_STORE_WEBHOOK_ROTATED, until, NULL);
}

int store_rotate_webhook(struct store *store, struct slice endpoint_id, int64_t previous_until_us,
                         bool end_previous, struct error *error)
{
	struct db_connection *connection;
	struct locked_endpoint locked;
	int result = change_locked(store, endpoint_id, &connection, &locked, error);
	if (result)
		return result;
	if (!end_previous)
		result = refuse_while_both_sign(connection, &locked, error);
	if (result)
		return end_write(connection, result, error);
	struct db_query *query =
		db_query(connection, "UPDATE webhook_endpoints SET secret_version = secret_version + 1,"
	                         " previous_secret_until = $3 WHERE account = $1 AND endpoint = $2");
	db_bind(query, locked.account, locked.endpoint, previous_until_us);
	return end_write(connection, db_execute(query, NULL, error), error);
}

static int enable(struct db_connection *connection, const struct locked_endpoint *locked,
                  struct error *error)
{
	struct db_query *query = db_query(
		connection, "UPDATE webhook_endpoints SET disabled_at = NULL, disabled_by = NULL,"
					" failures = 0, next_at = " FIRST_DUE " WHERE account = $1 AND endpoint = $2");
	db_bind(query, locked->account, locked->endpoint);
	return db_execute(query, NULL, error);
}

static int disable(struct db_connection *connection, const struct locked_endpoint *locked,
                   const char *by, int64_t now_us, struct error *error)
{
	struct db_query *query =
		db_query(connection, "UPDATE webhook_endpoints SET disabled_at = $3, disabled_by = $4,"
	                         " next_at = NULL WHERE account = $1 AND endpoint = $2");
	db_bind(query, locked->account, locked->endpoint, now_us, by);
	return db_execute(query, NULL, error);
}

int store_switch_webhook(struct store *store, struct slice endpoint_id, const char *disabled_by,
                         int64_t now_us, struct error *error)
{
	struct db_connection *connection;
	struct locked_endpoint locked;
	int result = change_locked(store, endpoint_id, &connection, &locked, error);
	if (result)
		return result;
	if (!disabled_by)
		result = enable(connection, &locked, error);
	else if (!locked.disabled) /* an endpoint disabled because of failures stays so */
		result = disable(connection, &locked, disabled_by, now_us, error);
	return end_write(connection, result, error);
}

int store_delete_webhook(struct store *store, struct slice endpoint_id, int64_t now_us,
                         struct error *error)
{
	struct db_connection *connection;
	struct locked_endpoint locked;
	int result = change_locked(store, endpoint_id, &connection, &locked, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "UPDATE webhook_endpoints SET deleted_at = $3, next_at = NULL"
	                         " WHERE account = $1 AND endpoint = $2");
	db_bind(query, locked.account, locked.endpoint, now_us);
	return end_write(connection, db_execute(query, NULL, error), error);
}
