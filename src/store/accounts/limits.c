/* Consumption limits and alert thresholds. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "store/accounts/accounts.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

/* ---- maximum numbers ---- */

/* The caller has locked the account. Ends the query `counted`. */
static int check_maximum(struct db_query *counted, int64_t account, int most, enum message message,
                         struct error *error)
{
	db_bind_integer(counted, account);
	bool full = db_step(counted) && db_integer(counted, 0) >= most;
	int result = db_end(counted, error);
	if (result || !full)
		return result;
	char text[24];
	snprintf(text, sizeof text, "%d", most);
	return error_set(error, ERR_REFUSED, message, text, NULL);
}

/* ---- consumption limits ---- */

struct limit_target {
	int64_t account;
	int64_t channel;
	int64_t key; /* 0: the whole channel */
};

static int find_limit_key(struct db_connection *connection, struct slice key_id,
                          struct limit_target *ret, struct error *error)
{
	struct row row = {.query = db_query(connection, "SELECT account, channel, key, mode, revoked_at"
	                                                " FROM api_keys WHERE key_id = $1")};
	db_bind_text(row.query, key_id);
	bool found = db_step(row.query);
	bool test = false, revoked = false;
	if (found) {
		*ret = (struct limit_target){db_integer(row.query, 0), db_integer(row.query, 1),
		                             db_integer(row.query, 2)};
		test = slice_is(db_text(row.query, 3), mode_text(MODE_TEST));
		revoked = !db_is_null(row.query, 4);
	}
	int result = row_end(&row, found, MSG_STORE_NO_KEY, key_id, error);
	if (result || !(test || revoked))
		return result;
	char id[ID_SIZE];
	store_copy_id(id, key_id);
	return error_set(error, ERR_REFUSED,
	                 test ? MSG_STORE_TEST_KEY_LIMIT : MSG_STORE_REVOKED_KEY_LIMIT, id, NULL);
}

static int insert_limit(struct db_connection *connection, const struct limit_target *target,
                        const char *limit_id, enum period period, int64_t max_events, bool block,
                        int64_t now_us, struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO consumption_limits (account, limit_id, channel, key, period,"
					" max_events, action, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
	db_bind(query, target->account, limit_id, target->channel, db_null_if(target->key, 0),
	        period_text(period), max_events, block ? "block" : "warn", now_us);
	return db_execute(query, NULL, error);
}

int store_create_limit(struct store *store, struct slice channel_id, struct slice key_id,
                       enum period period, int64_t max_events, bool block, int64_t now_us,
                       char ret_limit_id[ID_SIZE], struct error *error)
{
	char limit_id[ID_SIZE];
	store_fresh_id("lim_", limit_id);
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	struct limit_target target = {0};
	if (key_id.size)
		result = find_limit_key(connection, key_id, &target, error);
	else
		result =
			find_channel_number(connection, channel_id, &target.account, &target.channel, error);
	if (!result)
		result = lock_account(connection, target.account, error);
	if (!result)
		result = check_maximum(
			db_query(connection, "SELECT count(*) FROM consumption_limits WHERE account = $1"),
			target.account, LIMITS_MAX, MSG_STORE_LIMITS_MAX, error);
	if (!result)
		result =
			insert_limit(connection, &target, limit_id, period, max_events, block, now_us, error);
	audit_add_created(connection, "limit_id", limit_id);
	result = end_write(connection, result, error);
	if (!result)
		memcpy(ret_limit_id, limit_id, ID_SIZE);
	return result;
}

/* `period` is also in the place of the action. */
static const struct member limit_columns[] =
	COLUMNS_OF(struct limit_record, limit_id, account_id, channel_id, key_id, period, max_events,
               period, created_at_us, used, channel_name, key_name, key_last_four);

static void complete_limit(struct row *row, void *to)
{
	struct limit_record *record = to;
	struct slice action = db_text(row->query, 6);
	record->block = slice_is(action, "block");
	row_expect(row, period_parse(db_text(row->query, 4), &record->period), "period", 4,
	           record->limit_id);
	row_expect(row, record->block || slice_is(action, "warn"), "action", 6, record->limit_id);
}

static const struct row_type limit_type =
	ROW_TYPE(struct limit_record, limit_columns, complete_limit);

/* One lookup for each day; distributed tables do not support this query. */
#define EACH_DAY                                                                                   \
	"WITH RECURSIVE days(number) AS (SELECT CAST($4 AS BIGINT) UNION ALL"                          \
	" SELECT number + 1 FROM days WHERE number < $7) "
#define LIMITS(used, day, of)                                                                      \
	"SELECT l.limit_id, a.account_id, c.channel_id, COALESCE(k.key_id, ''), l.period,"             \
	" l.max_events, l.action, l.created_at, (SELECT COALESCE(SUM(u.events), 0) FROM " used         \
	" AND u.account = l.account AND u.chain = l.channel * 2"                                       \
	" AND (l.key IS NULL OR u.key = l.key) AND (l.period <> 'day' OR " day " = $3)),"              \
	" v.name, k.name, k.last_four"                                                                 \
	" FROM consumption_limits l JOIN accounts a ON a.account = l.account"                          \
	" JOIN channels c ON c.account = l.account AND c.channel = l.channel"                          \
	" JOIN channel_configs v ON v.account = c.account AND v.channel = c.channel"                   \
	" AND v.version = c.config_version"                                                            \
	" LEFT JOIN api_keys k ON k.key = l.key"                                                       \
	" WHERE ($1 = 0 OR l.account = $1) AND ($2 = 0 OR l.channel = $2) AND l.limit_id > $5" of      \
	" ORDER BY l.limit_id LIMIT $6"
#define LIMITS_OF_MONTH(of_used, of)                                                               \
	LIMITS("daily_usage u WHERE u.day >= $4 AND u.day <= $7" of_used, "u.day", of)

#define OF_EACH(parameter)                                                                         \
	WORK_ACCOUNTS("l", parameter)                                                                  \
	WORK_ACCOUNTS("a", parameter) WORK_ACCOUNTS("c", parameter) WORK_ACCOUNTS("v", parameter)

int store_list_limits(struct store *store, struct slice account_id, struct slice channel_id,
                      struct slice after, int64_t limit, int64_t now_us, struct arena *arena,
                      struct limit_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account, channel;
	int result = find_filters(connection, account_id, channel_id, &account, &channel, error);
	if (result)
		return end_read(connection, result);
	const struct routing_value values[] = {
		{.number = channel}, {.number = channel}, {.text = &after}};
	SHARD_WORK_AUTO struct work_accounts of = {0};
	result =
		routing_find_page(connection, account ? account : ROUTING_ALL,
	                      "SELECT account FROM {consumption_limits} WHERE (? = 0 OR channel = ?)"
	                      " AND limit_id > ? ORDER BY limit_id",
	                      values, limit + 1, &of, error);
	if (result)
		return end_read(connection, result);
	int64_t first, last;
	period_days(PERIOD_MONTH, now_us, &first, &last);
	struct row row = {
		.arena = arena,
		.query =
			db_is_sharded(db_of(connection))
				? routing_query(connection, &of, LIMITS_OF_MONTH("", ""),
	                            LIMITS_OF_MONTH(WORK_ACCOUNTS("u", "$8"), OF_EACH("$8")))
				: db_query(connection,
	                       EACH_DAY LIMITS("days CROSS JOIN daily_usage u WHERE u.day = number",
	                                       "number", ""))};
	db_bind(row.query, account, channel, time_day(now_us), first, after, limit + 1, last);
	shard_work_bind(row.query, &of);
	struct limit_list list = {.partial = of.partial};
	result = end_read(connection, row_list(&row, &limit_type, LIST_OF(&list), limit, error));
	if (!result)
		*ret = list;
	return result;
}

#define DELETED(table, column)                                                                     \
	((struct routing_texts){"DELETE FROM " table " WHERE " column " = $1 RETURNING " column,       \
	                        "DELETE FROM " table " WHERE " column                                  \
	                        " = $1 AND account = $2 RETURNING " column})

static int delete_by_id(struct store *store, struct routing_place place, struct routing_texts texts,
                        struct slice id, enum message missing, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct row row = {.query = routing_query_one(connection, place, id, texts)};
	bool found = db_step(row.query);
	return end_write(connection, row_end(&row, found, missing, id, error), error);
}

int store_delete_limit(struct store *store, struct slice limit_id, struct error *error)
{
	return delete_by_id(store, ROUTING_PLACE("consumption_limits", "limit_id"),
	                    DELETED("consumption_limits", "limit_id"), limit_id, MSG_STORE_NO_LIMIT,
	                    error);
}

/* ---- alert thresholds ---- */

static int refuse_same_threshold(struct db_connection *connection, int64_t account, int64_t credits,
                                 struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT threshold_id FROM balance_thresholds"
	                                              " WHERE account = $1 AND credits = $2");
	db_bind(query, account, credits);
	char other[ID_SIZE];
	bool found = db_step(query);
	if (found)
		store_copy_id(other, db_text(query, 0));
	int result = db_end(query, error);
	if (result || !found)
		return result;
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, credits);
	return error_set(error, ERR_REFUSED, MSG_STORE_THRESHOLD_EXISTS, text, other, NULL);
}

int store_create_threshold(struct store *store, struct slice account_id, int64_t credits,
                           char ret_threshold_id[ID_SIZE], struct error *error)
{
	char threshold_id[ID_SIZE];
	store_fresh_id("thr_", threshold_id);
	struct db_connection *connection = begin_write(store, &error);
	int64_t account = 0;
	int result = find_account_number(connection, account_id, &account, error);
	if (!result)
		result = lock_account(connection, account, error);
	if (!result)
		result = refuse_same_threshold(connection, account, credits, error);
	if (!result)
		result = check_maximum(
			db_query(connection, "SELECT count(*) FROM balance_thresholds WHERE account = $1"),
			account, THRESHOLDS_MAX, MSG_STORE_THRESHOLDS_MAX, error);
	if (!result) {
		struct db_query *query = db_query(
			connection, "INSERT INTO balance_thresholds (account, threshold_id, credits, armed)"
						" SELECT account, $2, $3, CASE WHEN balance > $3 THEN 1 ELSE 0 END"
						" FROM accounts WHERE account = $1");
		db_bind(query, account, threshold_id, credits);
		result = db_execute(query, NULL, error);
	}
	audit_add_created(connection, "threshold_id", threshold_id);
	result = end_write(connection, result, error);
	if (!result)
		memcpy(ret_threshold_id, threshold_id, ID_SIZE);
	return result;
}

static const struct member threshold_columns[] =
	COLUMNS_OF(struct threshold_record, threshold_id, account_id, credits, armed);
static const struct row_type threshold_type =
	ROW_TYPE(struct threshold_record, threshold_columns, NULL);

#define THRESHOLDS(of)                                                                             \
	"SELECT t.threshold_id, a.account_id, t.credits, t.armed"                                      \
	" FROM balance_thresholds t JOIN accounts a ON a.account = t.account"                          \
	" WHERE ($1 = 0 OR t.account = $1) AND t.threshold_id > $2" of                                 \
	" ORDER BY t.threshold_id LIMIT $3"

int store_list_thresholds(struct store *store, struct slice account_id, struct slice after,
                          int64_t limit, struct arena *arena, struct threshold_list *ret,
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
	                           "SELECT account FROM {balance_thresholds} WHERE threshold_id > ?"
	                           " ORDER BY threshold_id",
	                           &(struct routing_value){.text = &after}, limit + 1, &of, error);
	if (result)
		return end_read(connection, result);
	struct row row = {
		.arena = arena,
		.query = routing_query(connection, &of, THRESHOLDS(""),
	                           THRESHOLDS(WORK_ACCOUNTS("t", "$4") WORK_ACCOUNTS("a", "$4")))};
	db_bind(row.query, account, after, limit + 1);
	shard_work_bind(row.query, &of);
	struct threshold_list list = {.partial = of.partial};
	result = end_read(connection, row_list(&row, &threshold_type, LIST_OF(&list), limit, error));
	if (!result)
		*ret = list;
	return result;
}

int store_delete_threshold(struct store *store, struct slice threshold_id, struct error *error)
{
	return delete_by_id(store, ROUTING_PLACE("balance_thresholds", "threshold_id"),
	                    DELETED("balance_thresholds", "threshold_id"), threshold_id,
	                    MSG_STORE_NO_THRESHOLD, error);
}
