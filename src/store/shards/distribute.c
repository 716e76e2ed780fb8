/* Distribution of tables on a server that supports it. */
#include "store/audit/audit_log.h"
#include "store/schema/store_schemas.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define PLANNED_MAX ((size_t)64 * 1024)

/* Stores the last numbers, so that accounts can be created while a server is unavailable. */
static int store_last_numbers(struct db *db, struct error *error)
{
	struct db_connection *connection = db_take_writer(db);
	int result = db_begin(connection, error);
	if (!result)
		result = routing_store_number(connection, ROUTING_ACCOUNTS, error);
	if (!result)
		result = routing_store_number(connection, ROUTING_CHANNELS, error);
	if (!result)
		result = db_commit(connection, error);
	db_give(connection);
	return result;
}

/* Records the operation before it begins. Each table commits individually; a later call records the
 * tables that were left. */
static int record(struct db *db, struct act *act, const struct buf *names, struct error *error)
{
	struct db_connection *connection = db_take_writer(db);
	int result = db_begin(connection, error);
	if (!result)
		result = audit_write_list(connection, act, "tables", names, error);
	if (!result)
		result = db_commit(connection, error);
	db_give(connection);
	return result;
}

int store_distribute(const struct db_options *options, bool dry_run, struct act *act,
                     struct buf *out, const struct schema_progress *progress, struct error *error)
{
	struct db *db;
	BUF_AUTO struct buf planned;
	buf_init(&planned, PLANNED_MAX);
	struct db_options sharded = *options;
	sharded.sharded = true;
	int result = db_open(&sharded, &store_schemas, &db, error);
	if (result)
		return result;
	if (!db_is_shared(db))
		result = error_set(error, ERR_REFUSED, MSG_STORE_DISTRIBUTES_NOT, NULL);
	if (!result)
		result = db_check_schema(db, false, error);
	if (!result)
		result = db_list_undistributed(db, &planned, error);
	if (!result && !dry_run && planned.size)
		result = record(db, act, &planned, error);
	if (!result && !dry_run)
		result = db_distribute(db, out, progress, error);
	if (!result && !dry_run)
		result = store_last_numbers(db, error);
	if (!result && dry_run)
		buf_add(out, planned.data, planned.size);
	db_close(db);
	return result;
}
