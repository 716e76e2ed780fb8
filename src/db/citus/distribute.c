/* Distribution of tables. Each table has a transaction of its own, so that a later call continues
 * after an interruption. */
#include <stdio.h>

#include "db/citus/internal.h"

#define STATEMENT_MAX 256

/* The catalog exists only with the extension. */
static int check_offered(struct db_connection *connection, struct error *error)
{
	bool offered, distributed;
	int result = citus_find_distributed(connection, &offered, &distributed, error);
	if (!result && !offered)
		result = error_set(error, ERR_REFUSED, MSG_STORE_DISTRIBUTES_NOT, NULL);
	return result;
}

/* Reads whether the table is in the catalog, and whether it is distributed as required: by hash, or
 * whole on the coordinator (partition method and replication model). */
static int read_kind(struct db_connection *connection, const struct schema_table *table,
                     bool *ret_held, bool *ret_right, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT partmethod::text || repmodel::text"
	                         " FROM pg_catalog.pg_dist_partition"
	                         " WHERE logicalrelid = to_regclass(CAST($1 AS TEXT))");
	db_bind_string(query, table->name);
	*ret_held = db_step(query);
	*ret_right = *ret_held && slice_is(db_text(query, 0), table->by_account ? "hs" : "ns");
	return db_end(query, error);
}

/* A table without accounts is registered as a table of the coordinator, because only then does a
 * transaction that also writes to a shard commit in two phases. */
static int place(struct db_connection *connection, const struct schema_table *table, bool first,
                 struct error *error)
{
	char sql[STATEMENT_MAX];
	if (table->by_account)
		snprintf(sql, sizeof sql,
		         "SELECT create_distributed_table('%s', 'account', colocate_with => '%s')",
		         table->name, first ? "none" : "accounts");
	else
		snprintf(sql, sizeof sql, "SELECT citus_add_local_table_to_metadata('%s')", table->name);
	return db_run(connection, sql, error);
}

/* The writer lock excludes other nodes. A table with a copy on each server is made local first. */
static int distribute_one(struct db *db, const struct schema_table *table, bool *ret_done,
                          struct error *error)
{
	struct db_connection *connection = db_take_writer(db);
	bool held = false, right = false;
	int result = db_begin(connection, error);
	if (!result)
		result = read_kind(connection, table, &held, &right, error);
	if (!result && held && !right) {
		struct db_query *query =
			db_query(connection, "SELECT undistribute_table(to_regclass(CAST($1 AS TEXT)))");
		db_bind_string(query, table->name);
		result = db_execute(query, NULL, error);
	}
	if (!result && !right)
		result = place(connection, table, table == db->tables, error);
	if (!result && !right)
		result = db_commit(connection, error);
	db_give(connection);
	*ret_done = !result && !right;
	return result;
}

int citus_distribute(struct db *db, struct buf *out, const struct schema_progress *progress,
                     struct error *error)
{
	int64_t count = 0;
	int result = OK;
	while (db->tables[count].name)
		count++;
	for (int64_t i = 0; i < count && !result; i++) {
		bool done;
		result = distribute_one(db, &db->tables[i], &done, error);
		if (!done)
			continue;
		buf_printf(out, "%s\n", db->tables[i].name);
		progress->tell(progress->context, "tables", i + 1, count);
	}
	return result;
}

int citus_list_undistributed(struct db *db, struct buf *out, struct error *error)
{
	struct db_connection *reader = db_take_reader(db);
	int result = check_offered(reader, error);
	for (const struct schema_table *table = db->tables; table->name && !result; table++) {
		bool held, right;
		result = read_kind(reader, table, &held, &right, error);
		if (!result && !right)
			buf_printf(out, "%s\n", table->name);
	}
	db_give(reader);
	return result ? result : buf_check(out);
}
