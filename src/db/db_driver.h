/* Interface of a database driver; only for db.c and the drivers. Each function has the meaning of
 * its namesake in db.h. The driver's structures start with the structures below. An "optional"
 * member may be NULL, with the stated meaning. */
#ifndef DB_DB_DRIVER_H
#define DB_DB_DRIVER_H

#include <stdatomic.h>

#include "db/db.h"

#define DB_SCHEMA_NAME_SIZE 64

struct db_driver {
	const char *engine; /* for messages: "SQLite" */
	bool shared;
	int (*check_url)(const char *url, struct error *error);
	int (*open)(const struct db_options *options, struct db **ret_db, struct error *error);
	void (*close)(struct db *db);
	unsigned (*registrar_count)(const struct db *db);
	const char *(*promise)(const struct db *db);
	/* Optional: this machine's clock. */
	int64_t (*now_us)(const struct db *db);
	/* Optional: this machine's clock. */
	int64_t (*latest_now_us)(const struct db *db);
	int (*ready)(struct db *db, struct error *error);
	/* Optional: not a server. */
	int (*describe)(struct db_connection *reader, struct db_facts *ret, struct error *error);
	/* Called by db_check_schema when this program may use the schema. On a server, every connection
	 * then holds a lock that excludes `stop` steps, and is refused after such a step. Optional: no
	 * action. */
	int (*schema_checked)(struct db *db, struct error *error);
	/* Excludes all programs that use the database (schema_checked) until the end of the writer's
	 * transaction. ERR_UNAVAILABLE: some are connected, and `from` gets their addresses. Optional:
	 * no other program can use the database. */
	int (*exclude_programs)(struct db_connection *writer, char *from, size_t from_size,
	                        struct error *error);
	/* Limits the next statement of db_run in the writer's transaction to what is left of half the
	 * commit timeout after `spent_us`, and its waits for locks to less; negative: no limit. At the
	 * limit this function and db_run return ERR_UNAVAILABLE. Optional: no effect. */
	int (*limit_statements)(struct db_connection *writer, int64_t spent_us, struct error *error);
	/* Optional: there are none. */
	int (*count_replicas)(struct db *db, struct db_replicas *ret, struct error *error);
	/* Optional: there are none. */
	int (*ask_shard_servers)(struct db *db, struct db_shard_server *items, size_t max,
	                         size_t *ret_count, struct error *error);
	/* Optional: the server does not support distributed tables. */
	int (*list_undistributed)(struct db *db, struct buf *out, struct error *error);
	int (*distribute)(struct db *db, struct buf *out, const struct schema_progress *progress,
	                  struct error *error);
	int (*check_servers)(struct db *db, bool has_schema, db_finding_function *found, void *context,
	                     struct error *error);
	/* All optional: tables are never distributed. */
	int (*query_shards)(struct db *db, const struct db_shard_part *parts, size_t count,
	                    db_found_function *found, void *context, struct db_shard_query_result *ret,
	                    struct error *error);
	bool (*is_unreachable)(struct db_connection *connection, int64_t account);
	bool (*has_unreachable)(const struct db *db);
	/* Optional: the connection itself. */
	struct db_connection *(*side_connection)(struct db_connection *connection);
	/* Optional: commits are never in doubt. */
	int (*await_writes)(struct db *db, struct error *error);
	struct db_connection *(*take_writer)(struct db *db);
	/* Optional: the writer. */
	struct db_connection *(*take_local)(struct db *db);
	struct db_connection *(*take_registrar)(struct db *db, unsigned number, int64_t account);
	struct db_connection *(*take_reader)(struct db *db);
	/* Optional: no effect. */
	void (*limit_wait)(struct db_connection *reader);
	void (*give)(struct db_connection *connection);
	int (*begin)(struct db_connection *connection, struct error *error);
	/* Optional: tables are never distributed. */
	void (*restrict_to_shard)(struct db_connection *connection, int64_t account);
	int (*commit)(struct db_connection *connection, struct error *error);
	void (*rollback)(struct db_connection *connection);
	/* Only for the embedded engine. */
	int (*written)(struct db_connection *connection, struct db_written *ret, struct error *error);
	int (*run)(struct db_connection *connection, const char *sql, struct error *error);
	struct db_query *(*query)(struct db_connection *connection, const char *literal_sql,
	                          bool long_result);
	void (*bind_integer)(struct db_query *query, int64_t value);
	void (*bind_text)(struct db_query *query, struct slice text);
	void (*bind_blob)(struct db_query *query, const void *data, size_t size);
	void (*bind_null)(struct db_query *query);
	/* Optional: no arrays. */
	void (*bind_array)(struct db_query *query, struct db_array *array);
	/* Optional: no effect. */
	void (*send)(struct db_query *query);
	bool (*step)(struct db_query *query);
	int (*execute)(struct db_query *query, int64_t *ret_changes, struct error *error);
	int (*end)(struct db_query *query, struct error *error);
	int64_t (*integer)(struct db_query *query, int column);
	bool (*is_null)(struct db_query *query, int column);
	struct slice (*text)(struct db_query *query, int column);
	struct slice (*blob)(struct db_query *query, int column);
	const char *table_query; /* counts the tables named $1 */
	/* Names a schema of the database, not that of this store, with tables `settings` and $1.
	 * Optional: a database has one schema. */
	const char *neighbour_query;
	/* Optional: no maintenance. */
	int (*maintain)(struct db *db, struct error *error);
	const char *backup_name;
	int (*backup)(struct db *db, const char *path, struct error *error);
	int (*vacant)(const struct db_options *options, struct error *error);
	int (*restore)(const struct db_options *options, const char *path, const struct db_mark *mark,
	               struct error *error);
	/* Optional, all three: no backups by pages. */
	int (*backup_pages)(struct db *db, const struct db_page_target *target, struct db_pages *ret,
	                    struct error *error);
	int (*check_page_chain)(const struct db_page_chain *chain, struct error *error);
	int (*restore_page_chain)(const struct db_options *options, const struct db_page_chain *chain,
	                          const struct db_mark *mark, struct error *error);
};

/* Checks whether this program may use a database with these values of the rows "schema" and
 * "schema_programs" (schema.h); empty: there is no such row. */
int db_judge_schema(const struct db *db, const char *name, const char *programs,
                    struct error *error) MUST_CHECK;

extern const struct db_driver sqlite_driver;
extern const struct db_driver postgres_driver;
extern const struct db_driver citus_driver; /* postgres_driver with distributed tables */

struct db {
	const struct db_driver *driver;
	const struct schema *schema;              /* of its engine */
	const struct schema_append_log *arrivals; /* NULL: none */
	const struct schema_table *tables;
	int (*fill)(struct db_connection *connection, const char *step,
	            const struct schema_progress *progress, struct error *error);
	bool sharded;
	char shown_url[512]; /* for messages (db_shown_url) */
	atomic_bool poisoned;
};
struct db_connection {
	struct db *db;
	int failure; /* first error since the start of the transaction */
	bool may_retry;
	void *kept;    /* db_attach */
	bool is_taken; /* from db_take_* to db_give */
	struct error error;
};
struct db_query {
	struct db_connection *connection;
};

/* Returns the sticky failure of a connection, with its details. */
static inline int db_report(const struct db_connection *connection, struct error *error)
{
	if (connection->failure && error)
		*error = connection->error;
	return connection->failure;
}

#endif
