/* Internal to the PostgreSQL driver: shared by its files.
 *
 * A connection uses libpq's pipeline mode: statements are sent at once, and their results are
 * collected when one is needed. So all writes of a transaction go to the server together with its
 * COMMIT, and reads take few round trips. */
#ifndef DB_POSTGRES_POSTGRES_INTERNAL_H
#define DB_POSTGRES_POSTGRES_INTERNAL_H

#include <pthread.h>

#include "db/db_driver.h"
#include "libpq.h"

#define QUERIES_MAX 1024 /* statements of a connection, per variant */
#define PARAMETERS_MAX 31
#define WAITING_MAX 1024 /* statements sent, results not collected */
/* Of these, at most this many between two calls of pg_make_room: up to three of a statement, and
 * the syncs before and after a ROLLBACK when the server does not answer any more. */
#define ONE_USE_MAX 8

/* PG_SHARD: a registrar's direct connection to the server of the account's shard (db/citus). */
enum pg_use { PG_WRITER, PG_REGISTRAR, PG_READER, PG_LOCAL, PG_SHARD };
#define PG_USES 5
#define PG_SETTINGS_MAX 1024

struct pg_db;

struct pg_query {
	struct db_query base;
	const char *sql;
	int64_t variant; /* 0: the text is `sql`, else `text` */
	char *text;
	char name[12]; /* of the prepared statement and the cursor */
	bool prepared;
	bool long_result;
	bool cursor_open;
	enum { PG_BINDING, PG_SENT, PG_HERE } state;
	PGresult *result;
	int row;
};

struct pg_connection;
/* Evaluates the result of a sent statement. `sent_us`: clock_boot_us when it was sent. */
typedef void pg_judge_function(struct pg_connection *connection, const PGresult *result,
                               int64_t sent_us);

/* A sent statement. Results arrive in the order of sending. */
enum pg_kind { PG_STATEMENT, PG_PREPARE, PG_SYNC };
struct pg_waiting {
	enum pg_kind kind;
	struct pg_query *query;   /* receives the result or is prepared; NULL: none */
	pg_judge_function *judge; /* evaluates the result; NULL: none */
	bool answered;
	int64_t sent_us; /* clock_boot_us */
};

struct pg_connection {
	struct db_connection base;
	enum pg_use use;
	PGconn *pg; /* NULL: not connected */
	bool in_transaction;
	bool commit_warned; /* the server warned that a commit may not be replicated */
	bool committed;
	bool limited;                  /* db_driver's limit_statements */
	bool holds_schema;             /* PG_SCHEMA_LOCK, shared */
	char host[96], port[8];        /* of a server other than that of the address; empty: none */
	int64_t variant;               /* selects the text of its statements (rewrite); 0: as written */
	int64_t limbo_since_us;        /* start of a commit that is still pending; 0: none */
	int64_t retry_at_us;           /* no attempt to connect before */
	char refusal[ERROR_CAUSE_MAX]; /* why the schema was refused by the last; empty: it was not */
	int64_t wait_limit_us; /* longest wait for a result of this holder; 0: that of its use */
	struct pg_waiting waiting[WAITING_MAX];
	size_t waiting_first, waiting_count;
	/* Parameters of the query being bound. */
	struct pg_query *binding;
	int bound;
	const char *values[PARAMETERS_MAX];
	int lengths[PARAMETERS_MAX];
	int formats[PARAMETERS_MAX];
	Oid types[PARAMETERS_MAX];
	uint64_t integers[PARAMETERS_MAX];
	struct pg_query queries[QUERIES_MAX]; /* open addressing by the address of the text */
	size_t query_count;
	struct pg_connection *next_free;
};

/* A driver that extends this one (db/citus), or this one alone. */
struct pg_extension {
	const struct db_driver *driver;
	size_t db_size, connection_size; /* of its structures, which begin with these */
	/* The following may be NULL. */
	bool (*open)(struct pg_db *db); /* false: no memory; it is then closed */
	void (*close)(struct pg_db *db);
	void (*free_connection)(struct pg_connection *connection);
	/* Before a statement is sent. */
	void (*keep_alive)(struct pg_connection *connection);
	/* After an ordinary statement received no result in time. */
	void (*cancel)(struct pg_connection *connection);
	/* Returns the text of a statement for its variant, which is freed; NULL: no memory. */
	char *(*rewrite)(const struct pg_query *query);
};

#define PG_READERS 8
#define PG_REGISTRARS 4
#define FETCHED_MAX 500 /* rows of a long result per fetch */

struct pg_db {
	struct db base;
	const struct pg_extension *extension;
	char *url;
	unsigned require_replicas;
	unsigned registrar_count; /* at most PG_REGISTRARS */
	int fetched_max;          /* rows of a long result per fetch; at most FETCHED_MAX */
	size_t waiting_max;       /* statements in transit after which all results are collected */
	int64_t commit_timeout_us;
	bool guards_schema;                                  /* each connection holds PG_SCHEMA_LOCK */
	int64_t statement_wait_us[PG_USES];                  /* longest wait for a result, by use */
	char transaction_settings[PG_USES][PG_SETTINGS_MAX]; /* statements, by use */
	/* The server's clock minus one of ours; 0: unknown. */
	atomic_int_fast64_t clock_offset_us; /* clock_monotonic_us when the answer arrived */
	atomic_int_fast64_t clock_latest_us; /* clock_boot_us when the query was sent */
	pthread_mutex_t mutex;
	pthread_cond_t writer_free;
	pthread_cond_t reader_free;
	uint64_t next_ticket, served_ticket; /* the writer is given in FIFO order */
	struct pg_connection *writer;
	struct pg_connection *local; /* its holder holds local_mutex */
	pthread_mutex_t local_mutex;
	struct pg_connection *registrars[PG_REGISTRARS];
	struct pg_connection *readers[PG_READERS];
	struct pg_connection *free_readers;
};

static inline struct pg_db *pg_db(struct db *db)
{
	return (struct pg_db *)db;
}
static inline struct pg_connection *pg_connection(struct db_connection *connection)
{
	return (struct pg_connection *)connection;
}
static inline struct pg_query *pg_query(struct db_query *query)
{
	return (struct pg_query *)query;
}

/* ---- postgres.c ---- */
/* Opens a database for the driver of `extension`, which ends it by pg_close. */
int pg_open(const struct db_options *options, const struct pg_extension *extension,
            struct db **ret_db, struct error *error) MUST_CHECK;
void pg_close(struct db *base);
struct pg_connection *pg_make_connection(struct pg_db *db, enum pg_use use); /* NULL: no memory */
void pg_free_connection(struct pg_connection *connection);                   /* NULL-safe */
/* These are what db/db_driver.h says. */
int pg_check_url(const char *url, struct error *error) MUST_CHECK;
unsigned pg_registrar_count(const struct db *base);
const char *pg_promise(const struct db *base);
int64_t pg_now_us(const struct db *base);
int64_t pg_latest_now_us(const struct db *base);
int pg_ready(struct db *base, struct error *error) MUST_CHECK;
int pg_count_replicas(struct db *base, struct db_replicas *ret, struct error *error) MUST_CHECK;
int pg_await_writes(struct db *base, struct error *error) MUST_CHECK;
struct db_connection *pg_take_writer(struct db *base);
struct db_connection *pg_take_local(struct db *base);
struct db_connection *pg_take_reader(struct db *base);
void pg_give(struct db_connection *base);
void pg_roll_back_base(struct db_connection *base);
int pg_run(struct db_connection *base, const char *sql, struct error *error) MUST_CHECK;

/* Returns whether a commit of the connection promises replication, so that standbys are checked. */
bool pg_is_judged(const struct pg_connection *connection);
/* Sends what every transaction begins with, once connected. */
void pg_begin_transaction(struct pg_connection *connection);
/* Sends a query of the server's clock, for db_now_us, if it is a writer's. */
void pg_query_clock(struct pg_connection *connection);
/* A log record of the transaction makes the commit wait for the standby even if nothing else was
 * written: a batch of replays is acknowledged only when a standby has the events that it found. */
extern const char pg_write_something[];
/* Sends the COMMIT, then the check that the conditions still held after it. */
void pg_send_commit(struct pg_connection *connection);
void pg_send_commit_check(struct pg_connection *connection);
/* Evaluates a COMMIT whose results were collected, `late` if not within the commit timeout. */
int pg_end_commit(struct pg_connection *connection, bool late, struct error *error) MUST_CHECK;
/* Records that the outcome of the commit is unknown. */
int pg_unknown_outcome(struct pg_connection *connection, struct error *error);
/* Rolls back an open transaction and resets the connection. */
void pg_roll_back(struct pg_connection *connection);

/* The writer lock, which serializes the writers of all nodes: an arbitrary number, which must never
 * change. */
#define PG_WRITER_LOCK "4841921623071"
extern const char pg_lock_writer[];
/* Each connection of a program that uses the schema holds this lock, shared, and a `stop` step
 * takes it exclusively: an arbitrary number, which must never change. */
#define PG_SCHEMA_LOCK "4841921623073"
int pg_schema_checked(struct db *base, struct error *error) MUST_CHECK;
int pg_exclude_programs(struct db_connection *writer, char *from, size_t from_size,
                        struct error *error) MUST_CHECK;
int pg_limit_statements(struct db_connection *writer, int64_t spent_us, struct error *error)
	MUST_CHECK;

/* ---- postgres_link.c: a connection to the server ---- */

/* Parses an address into options, which the caller frees (PQconninfoFree). Called first when a
 * database is opened. ERR_VALIDATION, ERR_NO_MEMORY, ERR_UNAVAILABLE (libpq is missing). */
int pg_parse_url(const char *url, PQconninfoOption **ret_options, struct error *error);
#define PG_CLOCK_NOW "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
/* Connects if not connected. First checks a pending commit. While that is pending, and shortly
 * after a failed attempt, returns ERR_UNAVAILABLE at once. */
int pg_connect(struct pg_connection *connection, struct error *error) MUST_CHECK;
/* Builds the statements that set all required settings for one transaction. They are set per
 * transaction because behind a connection pooler it may run in any session. The last column is the
 * server's clock. */
void pg_write_transaction_settings(struct pg_db *db);
/* Returns whether all results of a pending commit arrived; true, too, if the connection is lost. */
bool pg_is_answered(PGconn *pg) MUST_CHECK;
#define PG_LIMBO_TIMEOUTS 6 /* commit timeouts after which a pending commit is given up */
/* Closes the connection; its statements are lost. */
void pg_disconnect(struct pg_connection *connection);
/* Records the connection's first failure. */
int pg_fail(struct pg_connection *connection, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Makes room for another statement in the pipeline. Returns false if the connection has failed. */
bool pg_make_room(struct pg_connection *connection) MUST_CHECK;
void pg_note_sent(struct pg_connection *connection, enum pg_kind kind, struct pg_query *query,
                  pg_judge_function *judge);
void pg_sync(struct pg_connection *connection);
/* Collects results up to that of `until`, or all (NULL). Returns false if the deadline passed or
 * the connection is lost; a loss is recorded and the connection closed. */
bool pg_collect(struct pg_connection *connection, const struct pg_query *until, int64_t deadline_us)
	MUST_CHECK;
/* Disconnects after an ordinary statement whose result did not arrive in time. */
void pg_give_up(struct pg_connection *connection);
/* Record the server's clock from the last column of a result. */
pg_judge_function pg_note_clock, pg_note_latest_clock;
/* Returns the deadline of an ordinary statement that is sent now. */
int64_t pg_deadline(const struct pg_connection *connection);

/* ---- postgres_query.c: statements ---- */
struct db_query *pg_make_query(struct db_connection *connection, const char *literal_sql,
                               bool long_result);
void pg_bind_integer(struct db_query *query, int64_t value);
void pg_bind_text(struct db_query *query, struct slice text);
void pg_bind_blob(struct db_query *query, const void *data, size_t size);
void pg_bind_null(struct db_query *query);
void pg_bind_array(struct db_query *query, struct db_array *array);
void pg_send(struct db_query *query);
bool pg_step(struct db_query *query);
int pg_execute(struct db_query *query, int64_t *ret_changes, struct error *error) MUST_CHECK;
int pg_end(struct db_query *query, struct error *error) MUST_CHECK;
int64_t pg_integer(struct db_query *query, int column);
bool pg_is_null(struct db_query *query, int column);
struct slice pg_text(struct db_query *query, int column);
struct slice pg_blob(struct db_query *query, int column);
/* Sends a literal statement without parameters; `judge` evaluates its result (NULL: ignored). */
void pg_send_text(struct pg_connection *connection, pg_judge_function *judge,
                  const char *literal_sql);
/* As pg_send_text, with a number as $1. */
void pg_send_number(struct pg_connection *connection, pg_judge_function *judge,
                    const char *literal_sql, int64_t number);
void pg_forget_queries(struct pg_connection *connection); /* after a lost connection */
/* Makes room for the statements of another transaction, if they have many variants. */
void pg_make_room_for_queries(struct pg_connection *connection);

/* ---- postgres_backup.c: backup and restore ---- */
int pg_vacant(const struct db_options *options, struct error *error) MUST_CHECK;
int pg_backup(struct db *base, const char *path, struct error *error) MUST_CHECK;
int pg_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
               struct error *error) MUST_CHECK;

/* ---- replicas.c: replication of commits ---- */

/* Returns the number of standbys that a commit waits for, from synchronous_standby_names: "" 0, "a,
 * b" 1, "2 (a, b, c)", "FIRST 2 (…)", "ANY 2 (…)". */
unsigned pg_count_awaited_standbys(const char *names);
extern const char pg_replica_query[];   /* within the transaction */
extern const char pg_committed_query[]; /* after its COMMIT */
/* The number of these standbys and their maximum lag in bytes and in microseconds. */
extern const char pg_lag_query[];
/* The query of both, with `more` columns, for a setting of synchronous_commit. Standbys count only
 * while they stream and the server waits for them. */
#define PG_STANDBYS "FILTER (WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum'))"
#define PG_REPLICAS(synchronous_commit, more)                                                      \
	"SELECT " synchronous_commit ", current_setting('fsync'), "                                    \
	"current_setting('full_page_writes'), current_setting('synchronous_standby_names'), "          \
	"count(*) " PG_STANDBYS ", count(*) FILTER (WHERE state IS NULL)" more                         \
	" FROM pg_stat_get_wal_senders()"
#define PG_REPLICAS_COLUMNS 6
#define PG_OF_TRANSACTION "current_setting('synchronous_commit')"
/* After a COMMIT the setting is that of the session, not of the transaction. */
#define PG_OF_COMMITTED "'on'"
/* Evaluates the row of such a query. Records ERR_UNAVAILABLE with the reason, prefixed with
 * `where`, as the connection's failure if a commit would not be replicated. */
void pg_judge_replicas_at(struct pg_connection *connection, const PGresult *row, const char *where);
pg_judge_function pg_check_replicas;

/* ---- server_facts.c: the description of the server ---- */

int pg_describe(struct db_connection *reader, struct db_facts *ret, struct error *error) MUST_CHECK;

/* The functions of a driver that it and one that extends it have in common. */
#define PG_DRIVER_FUNCTIONS                                                                        \
	.engine = "PostgreSQL", .shared = true, .check_url = pg_check_url, .close = pg_close,          \
	.registrar_count = pg_registrar_count, .promise = pg_promise, .now_us = pg_now_us,             \
	.latest_now_us = pg_latest_now_us, .ready = pg_ready, .describe = pg_describe,                 \
	.schema_checked = pg_schema_checked, .exclude_programs = pg_exclude_programs,                  \
	.limit_statements = pg_limit_statements, .count_replicas = pg_count_replicas,                  \
	.await_writes = pg_await_writes, .take_writer = pg_take_writer, .take_local = pg_take_local,   \
	.take_reader = pg_take_reader, .rollback = pg_roll_back_base, .query = pg_make_query,          \
	.bind_integer = pg_bind_integer, .bind_text = pg_bind_text, .bind_blob = pg_bind_blob,         \
	.bind_null = pg_bind_null, .bind_array = pg_bind_array, .send = pg_send, .step = pg_step,      \
	.execute = pg_execute, .end = pg_end, .integer = pg_integer, .is_null = pg_is_null,            \
	.text = pg_text, .blob = pg_blob,                                                              \
	.table_query = "SELECT count(*) FROM information_schema.tables "                               \
				   "WHERE table_schema = current_schema() AND table_name = $1",                    \
	.neighbour_query =                                                                             \
		"SELECT n.nspname::text FROM pg_catalog.pg_namespace n"                                    \
		" WHERE n.nspname <> current_schema()"                                                     \
		" AND (SELECT count(*) FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid"            \
		" AND c.relkind IN ('r', 'p') AND c.relname::text IN ('settings', $1)) = 2"                \
		" ORDER BY 1 LIMIT 1",                                                                     \
	.backup_name = "constancia.pgdump", .backup = pg_backup, .vacant = pg_vacant,                  \
	.restore = pg_restore

#endif
