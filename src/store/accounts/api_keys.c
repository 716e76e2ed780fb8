/* Administration of keys: creation, lists, expiry and revocation. */
#include "store/accounts/account_bounds.h"
#include "store/accounts/accounts.h"
#include "store/transaction.h"

static int insert_key(struct db_connection *connection, struct slice channel_id,
                      const struct key_record *record, const struct sha256 *key_hash, int64_t most,
                      struct error *error)
{
	int64_t account = 0, channel = 0;
	int result = find_channel_number(connection, channel_id, &account, &channel, error);
	if (!result)
		result = check_account_keys(connection, account, most, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection, "INSERT INTO api_keys (account, channel, key, key_id, key_hash, last_four,"
					" mode, name, created_at, expires_at) SELECT $1, $2, COALESCE(MAX(key), 0) + 1,"
					" $3, $4, $5, $6, $7, $8, $9 FROM api_keys");
	db_bind(query, account, channel, record->key_id, key_hash, record->last_four,
	        mode_text(record->mode), record->name, record->created_at_us,
	        db_null_if(record->expires_at_us, TIME_NONE));
	return db_execute(query, NULL, error);
}

int store_create_key(struct store *store, struct slice channel_id, enum mode mode, const char *name,
                     int64_t expires_at_us, const struct sha256 *key_hash, const char last_four[5],
                     int64_t most, int64_t now_us, char ret_key_id[ID_SIZE], struct error *error)
{
	struct key_record record = {
		.mode = mode, .name = name, .created_at_us = now_us, .expires_at_us = expires_at_us};
	store_fresh_id("key_", record.key_id);
	memcpy(record.last_four, last_four, sizeof record.last_four);
	struct db_connection *connection = begin_write(store, &error);
	int result = insert_key(connection, channel_id, &record, key_hash, most, error);
	audit_add_created(connection, "key_id", record.key_id);
	result = end_write(connection, result, error);
	if (!result)
		memcpy(ret_key_id, record.key_id, ID_SIZE);
	return result;
}

static const struct member key_columns[] =
	COLUMNS_OF(struct key_record, key_id, channel_id, account_id, last_four, mode, name,
               created_at_us, revoked_at_us, last_used_at_us, expires_at_us, reason, channel_name);

static void complete_key(struct row *row, void *to)
{
	struct key_record *record = to;
	row_expect(row, mode_parse(db_text(row->query, 4), &record->mode), "mode", 4, record->key_id);
}

static const struct row_type key_type = ROW_TYPE(struct key_record, key_columns, complete_key);

static int find_key_number(struct db_connection *connection, struct slice key_id, int64_t *ret_key,
                           struct error *error)
{
	struct row row = {.query = db_query(connection, "SELECT key FROM api_keys WHERE key_id = $1")};
	db_bind_text(row.query, key_id);
	bool found = db_step(row.query);
	if (found)
		*ret_key = db_integer(row.query, 0);
	return row_end(&row, found, MSG_STORE_NO_KEY, key_id, error);
}

int store_list_keys(struct store *store, struct slice account_id, struct slice channel_id,
                    struct slice after, int64_t limit, struct arena *arena, struct key_list *ret,
                    struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account, channel, after_key = 0;
	int result = find_filters(connection, account_id, channel_id, &account, &channel, error);
	if (!result && after.size)
		result = find_key_number(connection, after, &after_key, error);
	if (result)
		return end_read(connection, result);
	struct row row = {
		.arena = arena,
		.query = db_query(connection,
	                      "SELECT k.key_id, c.channel_id, a.account_id, k.last_four, k.mode,"
	                      " k.name, k.created_at, k.revoked_at, u.at, k.expires_at,"
	                      " k.revoked_for, v.name FROM (SELECT * FROM api_keys"
	                      " WHERE ($1 = 0 OR account = $1) AND ($2 = 0 OR channel = $2)"
	                      " AND key > $3 ORDER BY key LIMIT $4) k"
	                      " JOIN accounts a ON a.account = k.account"
	                      " JOIN channels c ON c.account = a.account AND c.channel = k.channel"
	                      " JOIN channel_configs v ON v.account = a.account"
	                      " AND v.channel = c.channel AND v.version = c.config_version"
	                      " LEFT JOIN key_last_use u ON u.account = a.account AND u.key = k.key"
	                      " ORDER BY k.key")};
	db_bind(row.query, account, channel, after_key, limit + 1);
	struct key_list list = {0};
	result = end_read(connection, row_list(&row, &key_type, LIST_OF(&list), limit, error));
	if (!result)
		*ret = list;
	return result;
}

static int expire_key(struct db_connection *connection, struct slice key_id, int64_t expires_at_us,
                      struct error *error)
{
	struct row row = {
		.query = db_query(connection, "SELECT revoked_at FROM api_keys WHERE key_id = $1")};
	db_bind_text(row.query, key_id);
	bool found = db_step(row.query);
	bool revoked = found && !db_is_null(row.query, 0);
	int result = row_end(&row, found, MSG_STORE_NO_KEY, key_id, error);
	char text[ID_SIZE];
	store_copy_id(text, key_id);
	if (!result && revoked)
		result = error_set(error, ERR_REFUSED, MSG_STORE_KEY_REVOKED, text, NULL);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "UPDATE api_keys SET expires_at = $2 WHERE key_id = $1");
	db_bind(query, key_id, db_null_if(expires_at_us, TIME_NONE));
	return db_execute(query, NULL, error);
}

int store_expire_key(struct store *store, struct slice key_id, int64_t expires_at_us,
                     struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	return end_write(connection, expire_key(connection, key_id, expires_at_us, error), error);
}

int store_revoke_key(struct store *store, struct slice key_id, const char *reason, int64_t now_us,
                     int64_t *ret_revoked_at_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct row row = {
		.query = db_query(connection, "UPDATE api_keys SET revoked_for ="
	                                  " CASE WHEN revoked_at IS NULL THEN $3 ELSE revoked_for END,"
	                                  " revoked_at = COALESCE(revoked_at, $2)"
	                                  " WHERE key_id = $1 RETURNING revoked_at")};
	db_bind(row.query, key_id, now_us, reason);
	bool found = db_step(row.query);
	int64_t revoked_at_us = found ? db_integer(row.query, 0) : 0;
	int result =
		end_write(connection, row_end(&row, found, MSG_STORE_NO_KEY, key_id, error), error);
	if (!result)
		*ret_revoked_at_us = revoked_at_us;
	return result;
}
