/* Database interface over the embedded engine (SQLite) and the server engine (PostgreSQL). db.c
 * passes each call to the driver of the address.
 *
 * Nearly all queries are written once, in the common SQL of both engines: parameters $1, $2, …;
 * BIGINT, TEXT, BLOB; INSERT … ON CONFLICT; RETURNING. A driver adapts the differences (`FOR
 * UPDATE` is removed for SQLite, where one connection writes). A parameter that may be NULL must
 * have a type from its context: a column, or CAST($1 AS TEXT) before IS NULL.
 *
 * Connections have three uses:
 * - the WRITER, for administration and jobs: its transactions exclude each other on all nodes;
 * - a REGISTRAR, one per sequencer: on the server its transactions are concurrent with the
 *   writer's, so a transaction that reads and changes data of registration must lock the account's
 *   row first;
 * - READERS: a consistent snapshot from db_begin.
 * On SQLite registrar and writer are one connection.
 *
 * One thread at a time uses a connection. Statements are prepared once per connection and cached by
 * the address of their text, so texts must be string literals.
 *
 * Errors are sticky within a transaction: after a failure every later call returns the same error,
 * and the transaction can only be rolled back. */
#ifndef DB_DB_H
#define DB_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/for_each.h"
#include "base/setting.h"
#include "db/schema.h"

struct db;            /* a database: file or server */
struct db_connection; /* one connection */
struct db_query;      /* a statement being bound and stepped */

struct db_options {
	const char *url;           /* sqlite:PATH, postgresql://… */
	bool create;               /* SQLite: creates the file and its directory */
	unsigned require_replicas; /* server: minimum of synchronous standbys for writing */
	int64_t commit_timeout_us; /* server: maximum wait for a commit; 0: 5 s */
	bool sharded;              /* server: tables are distributed by account */
};
/* The default of store.url, with the data directory. */
#define DB_URL_DEFAULT_FORMAT "sqlite:%s/constancia.db"

/* Reports what is wrong with the settings of db_settings.def. */
void db_check_settings(const struct db_options *options, const struct setting_check *check);
/* Returns the path of the file of an embedded engine; NULL: the address is of another kind. */
const char *db_url_path(const char *url);
/* Returns the name of the engine for display: "SQLite", "PostgreSQL"; NULL: the address is unknown.
 */
const char *db_url_engine(const char *url);
/* Checks the syntax of an address. Returns OK, or ERR_VALIDATION with a message without secrets. */
int db_check_url(const char *url, struct error *error) MUST_CHECK;
/* Copies an address for display, without a password. */
void db_shown_url(const char *url, char *text, size_t size);
/* Opens a database without checking its schema (see db_check_schema). `schemas` belongs to the
 * caller and must live as long as the database; NULL for uses without a schema. */
int db_open(const struct db_options *options, const struct db_schemas *schemas, struct db **ret_db,
            struct error *error) MUST_CHECK;
void db_close(struct db *db); /* NULL-safe */

/* A server's description of itself and of its standbys. */
struct db_facts {
	char version[64], host[128], name[128], encoding[32];
	char standbys[256]; /* "name (sync), …"; empty: none */
	bool sees_standbys; /* the role may see how each of them is used */
	int64_t clock_us;   /* the server's clock */
};
/* Returns ERR_INTERNAL when the engine is not a server. */
int db_describe(struct db_connection *reader, struct db_facts *ret, struct error *error) MUST_CHECK;

/* Returns whether other processes write to the database. */
bool db_is_shared(const struct db *db);
/* Returns db_options.sharded. A statement is then planned for each account that is bound. */
bool db_is_sharded(const struct db *db);
/* Returns the number of concurrent registrars. */
unsigned db_registrar_count(const struct db *db);
/* Returns "durable": a commit is on the disk of one machine; or "replicated": it is also on a
 * standby. */
const char *db_promise(const struct db *db);
/* Returns the clock shared by all processes that write to the database, for leases and due times,
 * in microseconds since 1970: on a server, the server's clock. Never use it for evidence. */
int64_t db_now_us(const struct db *db);
/* Returns an upper bound of that clock now, independent of the delay of its last answer. Updated in
 * each transaction. Returns this machine's clock while the bound is unknown, and if no other
 * process writes. */
int64_t db_latest_now_us(const struct db *db);
/* Checks whether commits can be acknowledged. ERR_UNAVAILABLE with the reason in the cause. */
int db_ready(struct db *db, struct error *error) MUST_CHECK;

/* State of replication; all 0 without replication. */
struct db_replicas {
	unsigned required;    /* db_options.require_replicas */
	unsigned synchronous; /* streaming standbys that commits may wait for */
	int64_t lag_bytes;    /* bytes of the log not yet on the disk of the slowest of them */
	int64_t lag_us;       /* its delay; 0: none, or not measured */
};
int db_count_replicas(struct db *db, struct db_replicas *ret, struct error *error) MUST_CHECK;

/* State of a shard server. */
#define DB_SHARD_SERVERS_MAX 64
struct db_shard_server {
	char name[128];              /* host:port, as known to the other servers */
	bool answered;               /* with any answer */
	int result;                  /* result of db_ready for this server; else */
	char cause[ERROR_CAUSE_MAX]; /* the reason */
};
/* Checks all shard servers in parallel as db_ready does; at most `max`. None exist if tables are
 * not distributed. Waits at most a few seconds for each; the check of a server that does not answer
 * remains pending. One thread at a time. */
int db_check_shard_servers(struct db *db, struct db_shard_server *items, size_t max,
                           size_t *ret_count, struct error *error) MUST_CHECK;

/* Lists the names of tables that are not distributed as the schema requires, one per line.
 * ERR_REFUSED: the server does not support it. */
int db_list_undistributed(struct db *db, struct buf *out, struct error *error) MUST_CHECK;
/* Distributes them, and lists those that it distributed. A later call continues after an
 * interruption. The database was opened with `sharded`. */
int db_distribute(struct db *db, struct buf *out, const struct schema_progress *progress,
                  struct error *error) MUST_CHECK;
/* Checks the servers of distributed tables, and that this process reaches them. `found` gets one
 * line for each problem, with its setting and remedy, or one for a server without problems.
 * `has_schema`: there are tables to distribute. */
typedef void db_finding_function(void *context, const char *what, const char *setting, bool problem,
                                 const char *sentence);
int db_check_servers(struct db *db, bool has_schema, db_finding_function *found, void *context,
                     struct error *error) MUST_CHECK;

/* Queries of the shards on each server, if tables are distributed. */
#define DB_PARTS_MAX 16
struct db_shard_query_result {
	bool distributed; /* false: no server was queried */
	bool all;         /* all servers answered */
};
/* A query of the accounts of a shard. */
#define DB_PART_ACCOUNTS_MAX 8192
struct db_shard_part {
	/* A SELECT of an account only, without ORDER BY and LIMIT. A table name in braces, {mails}, is
	 * replaced with the server's shards of that table. */
	const char *text;
	int64_t limit; /* accounts of one shard: the first in the order of their numbers, */
	int64_t from;  /* which begins with this one and continues with those before it */
};
/* Called for each account that was found, in any order. `is_limit`: it is the last one within the
 * limit of its shard, which may have more. */
typedef void db_found_function(void *context, size_t part, int64_t account, bool is_limit);
/* Queries accounts on all servers with account shards, in parallel and with one statement per
 * server. A server that fails or does not answer in time is skipped and counts as unreachable until
 * it answers (db_check_reachable). Any thread may call; calls are serialized. */
int db_query_shards(struct db *db, const struct db_shard_part *parts, size_t count,
                    db_found_function *found, void *context, struct db_shard_query_result *ret,
                    struct error *error) MUST_CHECK;
/* Returns whether any shard server is known to be unreachable. */
bool db_has_unreachable(const struct db *db);
/* Returns whether the account's rows are on an unreachable server. */
bool db_is_unreachable(struct db_connection *connection, int64_t account);
/* Returns ERR_UNAVAILABLE if the account's rows are on an unreachable server, because waiting for
 * it would delay other accounts. db_bind_to_shard checks this, too. */
int db_check_reachable(struct db_connection *connection, int64_t account, struct error *error)
	MUST_CHECK;
/* Makes every later call return `error`, as after a failure of the database. */
int db_fail(struct db_connection *connection, const struct error *error);

/* Waits until every transaction that wrote before the call is committed and visible, or rolled
 * back; a commit that still waits for a standby is pending. Writes a transaction of its own,
 * replicated like any commit. ERR_UNAVAILABLE: some are still pending. */
int db_await_writes(struct db *db, struct error *error) MUST_CHECK;

/* Takes the writer. Blocks in FIFO order until the connection is free. Never fails. */
struct db_connection *db_take_writer(struct db *db);
/* Takes a writer whose commits are durable only on the server when they return, regardless of
 * required standbys; the server's log replicates them in order. For revocations, and for data that
 * may be lost; never for an acknowledgement. It does not wait for other writers. If a commit waits
 * for its standby, changing the same row fails with ERR_UNAVAILABLE after a while. */
struct db_connection *db_take_local(struct db *db);
/* Takes registrar `number`, counted from 0. If tables are distributed, its transaction may use only
 * the rows of `account`; otherwise `account` is ignored. */
struct db_connection *db_take_registrar(struct db *db, unsigned number, int64_t account);
/* Takes a read-only connection. Blocks while all are taken, so a thread must never take a second
 * one while it holds one. */
struct db_connection *db_take_reader(struct db *db);
/* Returns a connection for reading committed data of no account within a transaction: the
 * connection itself, or, if it is limited to one account's rows, another connection of the holder,
 * which is given back with it. Only for queries (db_query, db_step, db_end). */
struct db_connection *db_side_connection(struct db_connection *connection);
/* Makes each statement of a reader wait no longer than a commit, until it is given back, if tables
 * are distributed: a server that hangs must not delay a user as long as a report may take.
 * Otherwise no effect. */
void db_limit_wait(struct db_connection *reader);
/* Gives back a connection and rolls back an open transaction. NULL-safe. */
void db_give(struct db_connection *connection);
struct db *db_of(struct db_connection *connection);
/* Attaches data of the holder to the connection until it is given back; NULL: none. */
void db_attach(struct db_connection *connection, void *kept);
void *db_attached(const struct db_connection *connection);

int db_begin(struct db_connection *connection, struct error *error) MUST_CHECK;
/* Declares, in a transaction of the writer or a registrar, the account whose data its commit
 * acknowledges, the same in every call (0: data of no account). If tables are distributed, the
 * promise of the commit is then checked on the account's shard server, before and after, and the
 * commit waits for that server's standbys whatever was written. Otherwise no effect. */
void db_bind_to_shard(struct db_connection *connection, int64_t account);
/* Commits, durably and, if required, replicated on return. ERR_UNKNOWN_OUTCOME: the outcome is
 * unknown. */
int db_commit(struct db_connection *connection, struct error *error) MUST_CHECK;
/* Counters that remain equal while no data is written, neither by this connection nor by another
 * that committed. Schema changes do not count. Only in a write transaction of the embedded
 * engine. */
struct db_written {
	int64_t here, elsewhere;
};
int db_written(struct db_connection *connection, struct db_written *ret, struct error *error)
	MUST_CHECK;
/* Returns the first error since db_begin, 0 if none. */
int db_failure(const struct db_connection *connection);
/* As db_failure, with the details. */
int db_get_failure(const struct db_connection *connection, struct error *error) MUST_CHECK;
/* Returns whether the failed transaction lost a conflict (deadlock, serialization failure), so that
 * a retry from its start may succeed. */
bool db_may_retry(const struct db_connection *connection);

/* Checks that the schema is that of the last step, or a newer one that this program may use
 * (schema.h). `create` brings an empty database to the last step. ERR_REFUSED names the current
 * step. */
int db_check_schema(struct db *db, bool create, struct error *error) MUST_CHECK;
/* Applies all missing steps in one transaction of the writer; refuses an empty database. If all of
 * them are `rolling`, other programs may work meanwhile: locks are held and waited for no longer
 * than half the commit timeout, and the steps are retried for half a minute. Else ERR_REFUSED while
 * other programs use the database. Writes the names of the steps to `out`, one per line; `out` and
 * `progress` may be NULL. If any step was applied, runs `within` (NULL: none) after them in the
 * same transaction. */
int db_migrate(struct db *db, bool dry_run, struct buf *out, const struct schema_progress *progress,
               int (*within)(struct db_connection *connection, void *context, struct error *error),
               void *context, struct error *error) MUST_CHECK;

/* Refuses an empty schema of a database in which another schema has tables `settings` and `table`:
 * the programs of both would exclude each other by the same locks. */
int db_check_alone(struct db *db, const char *table, struct error *error) MUST_CHECK;

/* Runs several statements without parameters; ignores their results. */
int db_run(struct db_connection *connection, const char *sql, struct error *error) MUST_CHECK;
/* Gets whether a table exists. */
int db_has_table(struct db_connection *connection, const char *name, bool *ret_present,
                 struct error *error) MUST_CHECK;

/* Begins a query: db_query, then bind parameters in order, then call db_step while it returns true.
 * db_end, or the next db_query of the same text, finishes it. Texts and blobs are valid until the
 * next step. */
struct db_query *db_query(struct db_connection *connection, const char *literal_sql);
/* As db_query for results of any length, which are fetched in batches; only within a
 * transaction. */
struct db_query *db_query_long(struct db_connection *connection, const char *literal_sql);
void db_bind_integer(struct db_query *query, int64_t value);
void db_bind_text(struct db_query *query, struct slice text);
void db_bind_string(struct db_query *query, const char *text);            /* NULL: NULL */
void db_bind_blob(struct db_query *query, const void *data, size_t size); /* data NULL: NULL */
void db_bind_sha256(struct db_query *query, const struct sha256 *hash);   /* NULL: NULL */
void db_bind_null(struct db_query *query);
/* Values for db_bind of other types than integers, strings, texts (struct slice) and digests. */
struct db_bytes {
	struct slice bytes;
};
static inline struct db_bytes db_bytes(struct slice bytes)
{
	return (struct db_bytes){bytes};
}
struct db_nullable {
	int64_t value;
	bool is_null;
};
/* Returns the value, or NULL unless there is one. */
static inline struct db_nullable db_value_if(bool exists, int64_t value)
{
	return (struct db_nullable){value, !exists};
}
/* Returns the value, or NULL when it is `none`. */
static inline struct db_nullable db_null_if(int64_t value, int64_t none)
{
	return db_value_if(value != none, value);
}
void db_bind_bytes(struct db_query *query, struct db_bytes bytes); /* data NULL: NULL */
void db_bind_nullable(struct db_query *query, struct db_nullable value);
/* Binds the next parameters, in the order of the values, each by its type. */
#define db_bind(query, ...)                                                                        \
	do {                                                                                           \
		FOR_EACH(DB_BIND_ONE, query, __VA_ARGS__)                                                  \
	} while (0)
/* clang-format off */
#define DB_BIND_ONE(query, value)                                                                  \
	_Generic((value), bool: db_bind_integer, int: db_bind_integer, unsigned: db_bind_integer,      \
		long: db_bind_integer, unsigned long: db_bind_integer, long long: db_bind_integer,         \
		char *: db_bind_string, const char *: db_bind_string, struct slice: db_bind_text,          \
		struct sha256 *: db_bind_sha256, const struct sha256 *: db_bind_sha256,                    \
		struct db_bytes: db_bind_bytes, struct db_nullable: db_bind_nullable)(query, value);
/* clang-format on */
/* Sends a query whose parameters are bound, so that the server executes it while others are
 * prepared. Several sent queries cost one round trip; each is then stepped as usual. No effect on
 * other engines. */
void db_send(struct db_query *query);
bool db_step(struct db_query *query);
/* Executes a query to the end and finishes it. Returns 0 or the connection's error, and the number
 * of changed rows in *ret_changes. If ret_changes is NULL a server may execute it later; an error
 * then appears in a later call, at the latest in the commit. */
int db_execute(struct db_query *query, int64_t *ret_changes, struct error *error) MUST_CHECK;
int db_end(struct db_query *query, struct error *error) MUST_CHECK;
/* Finishes a query. An error remains with the connection, and the end of the transaction returns
 * it. */
void db_release(struct db_query *query);

int64_t db_integer(struct db_query *query, int column);
bool db_is_null(struct db_query *query, int column);
struct slice db_text(struct db_query *query, int column); /* empty for NULL */
struct slice db_blob(struct db_query *query, int column);

/* Array parameter, for statements of the server engine only: `= ANY($1)`, `unnest($1, …)`. The
 * array owns the memory. */
#define DB_ARRAY_HEADER_SIZE 20
enum db_type { DB_INTEGERS, DB_TEXTS, DB_BLOBS };
struct db_array {
	enum db_type type;
	size_t count;
	bool has_null;
	struct buf wire; /* space for the header, then per element: 4 bytes of length and the value */
};
void db_array_init(struct db_array *array, enum db_type type);
void db_array_clear(struct db_array *array); /* empties it, keeps the memory */
void db_array_free(struct db_array *array);
void db_array_add_integer(struct db_array *array, int64_t value);
void db_array_add_bytes(struct db_array *array, const void *data, size_t size); /* NULL: NULL */
void db_array_add_null(struct db_array *array);
void db_bind_array(struct db_query *query, struct db_array *array);

/* Maintains the engine between transactions: SQLite checkpoints the write-ahead log when it exceeds
 * its limit, in a separate thread; returns that thread's last failure. Only the sequencer may call
 * it, because two concurrent calls could checkpoint at the same time. */
int db_maintain(struct db *db, struct error *error) MUST_CHECK;
/* Writes a consistent snapshot to the new file `path` while the database is in use. It has
 * everything that was committed at the start. Each engine has its own format. */
int db_backup(struct db *db, const char *path, struct error *error) MUST_CHECK;
/* Returns the file name of an engine's backups: "constancia.db". */
const char *db_backup_name(const struct db *db);
const char *db_backup_name_of(const char *url); /* for the engine of a valid address */
/* Returns OK if no database exists at the address, so that a backup can be restored; else
 * ERR_REFUSED. */
int db_check_vacant(const struct db_options *options, struct error *error) MUST_CHECK;
/* A row of the table `settings`. */
struct db_mark {
	const char *name, *value;
};
/* Table with one row (name, value), the mark, on a server during a restore, and after a crash just
 * after it. The restored data has the mark at all times. Code that depends on a mark must also
 * check this table. The embedded store never has it. */
#define DB_RESTORING "restoring"
/* Restores a backup completely or not at all to an empty database, with `mark` in place of the row
 * of that name. The data is never visible without the mark. Durable on return, and replicated as
 * `options` require. ERR_UNKNOWN_OUTCOME: restored, but no standby has confirmed it. */
int db_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
               struct error *error) MUST_CHECK;
/* Backups by pages, of an embedded engine: a complete copy, then only the pages that changed. */
struct db_pages {
	int64_t page_size, page_count;
	int64_t changed_pages; /* pages that the backup has */
	struct sha256 digest;  /* of the list of the pages' digests */
};
struct db_page_target {
	const char *path;      /* new file: the database, or an increment */
	const char *list_path; /* new file: the digest of each page of the database */
	const char *before;    /* such a list of an earlier backup; NULL: a complete copy */
	struct db_pages base;  /* of that backup */
};
/* A complete copy and its increments. */
struct db_page_chain {
	const char *database;
	const char *const *increments; /* oldest first */
	size_t count;
	const char *list_path; /* of the newest */
	struct db_pages pages; /* of the newest */
};
/* Returns whether the engine has backups by pages. */
bool db_has_page_backups(const struct db *db);
/* Writes a snapshot as db_backup does, complete or relative to an earlier one. ERR_REFUSED: no
 * increment is possible, because the page size changed; ERR_CORRUPT: the earlier list is damaged.
 * Durable on return. */
int db_backup_pages(struct db *db, const struct db_page_target *target, struct db_pages *ret,
                    struct error *error) MUST_CHECK;
/* Reads all files of a chain and compares each page with its digest. `url` names the engine.
 * ERR_CORRUPT. */
int db_check_page_chain(const char *url, const struct db_page_chain *chain, struct error *error)
	MUST_CHECK;
/* As db_restore, from a chain. */
int db_restore_page_chain(const struct db_options *options, const struct db_page_chain *chain,
                          const struct db_mark *mark, struct error *error) MUST_CHECK;
/* Returns true after an I/O error in a commit. Nothing may be acknowledged from then on. */
bool db_is_poisoned(const struct db *db);

#endif
