/* Distribution of tables on a server that supports it. Each table has a transaction of its own, so
 * that a later call continues after an interruption. */
#include "store/audit/acts.h"
#include "store/nodes/servers.h"
#include "store/schema/schema.h"
#include "store/shards/reach.h"
#include "store/transaction.h"

#define BY_HASH "hs"
#define WHOLE "ns"

static const struct {
	const char *name;
	const char *kind; /* partition method and replication model in the catalogue */
	const char *statement;
} tables[] = {
#define FIRST_BY_ACCOUNT(table)                                                                    \
	{#table, BY_HASH,                                                                              \
	 "SELECT create_distributed_table('" #table "', 'account', colocate_with => 'none')"},
#define BY_ACCOUNT(table)                                                                          \
	{#table, BY_HASH,                                                                              \
	 "SELECT create_distributed_table('" #table "', 'account', colocate_with => 'accounts')"},
#define ON_NONE(table) {#table, WHOLE, "SELECT citus_add_local_table_to_metadata('" #table "')"},
#include "store/schema/distribution.def"
#undef FIRST_BY_ACCOUNT
#undef BY_ACCOUNT
#undef ON_NONE
};
#define TABLE_COUNT (sizeof tables / sizeof *tables)
#define PLANNED_MAX ((size_t)64 * 1024)

/* The catalogue exists only on a server that supports distribution. */
static int check_offered(struct db_connection *connection, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT to_regclass('pg_catalog.pg_dist_partition') IS NULL");
	bool missing = db_step(query) && db_integer(query, 0) != 0;
	int result = db_end(query, error);
	if (!result && missing)
		result = error_set(error, ERR_REFUSED, MSG_STORE_DISTRIBUTES_NOT, NULL);
	return result;
}

/* Reads whether the table is in the catalogue, and whether it is distributed as required. */
static int read_kind(struct db_connection *connection, size_t number, bool *ret_held,
                     bool *ret_right, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT partmethod::text || repmodel::text"
	                         " FROM pg_catalog.pg_dist_partition"
	                         " WHERE logicalrelid = to_regclass(CAST($1 AS TEXT))");
	db_bind_string(query, tables[number].name);
	*ret_held = db_step(query);
	*ret_right = *ret_held && slice_is(db_text(query, 0), tables[number].kind);
	return db_end(query, error);
}

/* Turns a table with a copy on each server back into a local table. */
static int undistribute(struct db_connection *connection, size_t number, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT undistribute_table(to_regclass(CAST($1 AS TEXT)))");
	db_bind_string(query, tables[number].name);
	return db_execute(query, NULL, error);
}

/* The writer lock excludes other nodes. */
static int distribute_one(struct db *db, size_t number, bool *ret_done, struct error *error)
{
	struct db_connection *connection = db_take_writer(db);
	bool held = false, right = false;
	int result = db_begin(connection, error);
	if (!result)
		result = read_kind(connection, number, &held, &right, error);
	if (!result && held && !right)
		result = undistribute(connection, number, error);
	if (!result && !right)
		result = db_run(connection, tables[number].statement, error);
	if (!result && !right)
		result = db_commit(connection, error);
	db_give(connection);
	*ret_done = !result && !right;
	return result;
}

/* Stores the last numbers, so that accounts can be created while a server is unavailable. */
static int store_last_numbers(struct db *db, struct error *error)
{
	struct db_connection *connection = db_take_writer(db);
	int result = db_begin(connection, error);
	if (!result)
		result = reach_remember_number(connection, REACH_ACCOUNTS, error);
	if (!result)
		result = reach_remember_number(connection, REACH_CHANNELS, error);
	if (!result)
		result = db_commit(connection, error);
	db_give(connection);
	return result;
}

static int distribute(struct db *db, struct buf *out, const struct schema_progress *progress,
                      struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < TABLE_COUNT && !result; i++) {
		bool done;
		result = distribute_one(db, i, &done, error);
		if (!done)
			continue;
		buf_printf(out, "%s\n", tables[i].name);
		progress->tell(progress->context, "tables", (int64_t)i + 1, TABLE_COUNT);
	}
	return result ? result : store_last_numbers(db, error);
}

int servers_list_undistributed(struct db *db, struct buf *out, struct error *error)
{
	struct db_connection *reader = db_take_reader(db);
	int result = check_offered(reader, error);
	for (size_t i = 0; i < TABLE_COUNT && !result; i++) {
		bool held, right;
		result = read_kind(reader, i, &held, &right, error);
		if (!result && !right)
			buf_printf(out, "%s\n", tables[i].name);
	}
	db_give(reader);
	return result ? result : buf_check(out);
}

/* Records the operation before it begins. Each table commits individually; a later call records the
 * tables that were left. */
static int record(struct db *db, struct act *act, const struct buf *names, struct error *error)
{
	struct db_connection *connection = db_take_writer(db);
	int result = db_begin(connection, error);
	if (!result)
		result = act_write_listing(connection, act, "tables", names, error);
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
	int result = db_open(options, &store_schemas, &db, error);
	if (result)
		return result;
	if (!db_is_shared(db))
		result = error_set(error, ERR_REFUSED, MSG_STORE_DISTRIBUTES_NOT, NULL);
	if (!result)
		result = db_check_schema(db, false, error);
	if (!result)
		result = servers_list_undistributed(db, &planned, error);
	if (!result && !dry_run && planned.size)
		result = record(db, act, &planned, error);
	if (!result && !dry_run)
		result = distribute(db, out, progress, error);
	else if (!result)
		buf_add(out, planned.data, planned.size);
	db_close(db);
	return result;
}
