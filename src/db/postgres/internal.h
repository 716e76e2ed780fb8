/* Internal to the PostgreSQL driver: shared by its files.
 *
 * A connection uses libpq's pipeline mode: statements are sent at once, and their results are
 * collected when one is needed. So all writes of a transaction go to the server together with its
 * COMMIT, and reads take few round trips. */
#ifndef DB_POSTGRES_INTERNAL_H
#define DB_POSTGRES_INTERNAL_H

#include <libpq-fe.h>
#include <pthread.h>

#include "db/driver.h"

#define QUERIES_MAX 1024 /* statements of a connection, per shard */
#define PARAMETERS_MAX 31
#define WAITING_MAX 1024 /* statements sent, results not collected */

/* PG_STRAIGHT: a registrar's direct connection to the shard server of the account (straight.c). */
enum pg_use { PG_WRITER, PG_REGISTRAR, PG_READER, PG_LOCAL, PG_STRAIGHT };
#define PG_USES 5
#define PG_SETTINGS_MAX 1024

struct pg_query {
	struct db_query base;
	const char *sql;
	int64_t shard; /* PG_STRAIGHT: shard named in `text`, used for `sql`; 0: none */
	char *text;
	char name[12]; /* of the prepared statement and the cursor */
	bool prepared;
	bool long_result;
	bool cursor_open;
	enum { PG_BINDING, PG_SENT, PG_HERE } state;
	PGresult *result;
	int row;
};

/* Kind of a sent statement. Results arrive in the order of sending. */
enum pg_kind {
	PG_STATEMENT,
	PG_PREPARE,
	PG_COMMIT,
	PG_REPLICA_CHECK,
	PG_SHARD_CHECK,
	PG_SHARD_WRITE,
	PG_HERE_CHECK,
	PG_SETTINGS,
	PG_CLOCK,
	PG_SYNC,
};
struct pg_waiting {
	enum pg_kind kind;
	struct pg_query *query; /* receives the result or is prepared; NULL: none */
	bool answered;
	int64_t sent_us; /* clock_boot_us */
};

/* A pending commit of one account, detached so that the registrar can continue. */
struct pg_aside {
	PGconn *pg; /* NULL: none */
	int64_t account;
	int64_t since_us;
};
#define PG_ASIDE_MAX 8

/* The shards of all tables with the rows of the same accounts (co-located shards), which are always
 * moved together. */
#define PG_TABLES_MAX 64
struct pg_piece_set {
	int64_t shard; /* of the table of accounts */
	struct pg_table_piece {
		char table[48];
		int64_t shard;
	} pieces[PG_TABLES_MAX];
	size_t count;
	bool outdated;                    /* it was moved */
	struct pg_connection *connection; /* to its shard server */
};

struct pg_connection {
	struct db_connection base;
	enum pg_use use;
	PGconn *pg; /* NULL: not connected */
	bool in_transaction;
	bool commit_warned; /* the server warned that a commit may not be replicated */
	bool committed;
	char host[96], port[8];      /* PG_STRAIGHT: replaces those of the address */
	struct pg_piece_set *set;    /* PG_STRAIGHT: the shards in use */
	struct pg_connection *asker; /* PG_STRAIGHT: connection that holds the fence */
	struct error refusal;        /* PG_REGISTRAR: why no direct connection was available */
	bool on_shard; /* db_keep_to_shard was called in this transaction, for `account` */
	int64_t account;
	int64_t process;        /* id of the server process, when the writer commits */
	uint64_t written;       /* position in the log of its shard's server after its last write */
	int64_t limbo_since_us; /* start of a commit that is still pending; 0: none */
	int64_t retry_at_us;    /* no attempt to connect before */
	struct pg_aside aside[PG_ASIDE_MAX]; /* of a registrar, if tables are distributed */
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

/* A shard server and the connection for its checks; one query at a time. */
struct pg_shard_server {
	char name[128];
	struct pg_connection *connection;
	struct pg_query *question; /* sent, not answered; NULL: none */
};

/* A server with account shards, and the connection for queries of its shards. */
struct pg_piece_server {
	char name[128];
	bool listed;     /* in the last list of shards */
	bool away;       /* it did not answer */
	int64_t account; /* an account number that maps to this server */
	struct pg_connection *connection;
	struct pg_query *question; /* sent, not answered; NULL: none */
	bool late;                 /* `question` is from an earlier round */
	struct pg_connection *trying;
	struct pg_query *trial; /* a test commit that is pending; NULL: none */
};

/* `mutex` serializes queries; `away_mutex` protects only the names. */
struct pg_pieces {
	pthread_mutex_t mutex;
	struct pg_connection *lister;
	int64_t listed_us; /* monotonic; 0: never */
	bool distributed, outdated;
	struct pg_piece *items; /* sorted by server, then by shard of the accounts */
	size_t count;
	struct pg_piece_server servers[DB_SHARD_SERVERS_MAX];
	size_t server_count;
	struct buf text; /* text of a query */
	pthread_mutex_t away_mutex;
	char away[DB_SHARD_SERVERS_MAX][128];
	atomic_size_t away_count;
	atomic_bool doubted; /* it is in doubt whether all servers commit */
};

#define PG_READERS 8
#define PG_REGISTRARS 4

struct pg_db {
	struct db base;
	char *url;
	unsigned require_replicas;
	int64_t commit_timeout_us;
	char transaction_settings[PG_USES][PG_SETTINGS_MAX]; /* statements, by use */
	/* The server's clock minus one of ours; 0: unknown. */
	atomic_int_fast64_t clock_offset_us; /* clock_monotonic_us when the answer arrived */
	atomic_int_fast64_t clock_latest_us; /* clock_boot_us when the query was sent */
	pthread_mutex_t mutex;
	pthread_cond_t turn_changed;
	pthread_cond_t reader_free;
	uint64_t next_ticket; /* the writer is given in FIFO order */
	uint64_t turn;
	struct pg_connection *writer;
	struct pg_connection *turn_holder; /* private to turn.c, like: */
	int64_t turn_process, turn_kept_us;
	struct pg_connection *local; /* its holder holds local_mutex */
	pthread_mutex_t local_mutex;
	struct pg_connection *registrars[PG_REGISTRARS];
	struct pg_straight *straight[PG_REGISTRARS]; /* one per registrar; private to straight.c */
	struct pg_connection *readers[PG_READERS];
	struct pg_connection *free_readers;
	struct pg_shard_server shard_servers[DB_SHARD_SERVERS_MAX]; /* private to shards.c */
	size_t shard_server_count;
	struct pg_connection *shard_lister; /* queries the list of them */
	struct pg_pieces pieces;            /* private to pieces.c */
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
struct pg_connection *pg_make_connection(struct pg_db *db, enum pg_use use); /* NULL: no memory */
void pg_free_connection(struct pg_connection *connection);                   /* NULL-safe */
/* Rolls back an open transaction and resets the connection. */
void pg_roll_back(struct pg_connection *connection);

/* ---- turn.c: the writer lock ---- */
/* Locks within the writer's own transaction, if tables are not distributed. */
extern const char pg_lock_turn[];
extern const char pg_try_lock_turn[];
/* If tables are distributed: pg_take_turn acquires the writer lock until pg_end_turn. Only the
 * holder of the writer may call these functions. */
int pg_take_turn(struct pg_db *db, struct error *error) MUST_CHECK;
void pg_end_turn(struct pg_db *db);
/* Keeps the lock alive for the next statement of the writer: for the usual time, or for any
 * time. */
void pg_keep_turn(struct pg_db *db, bool however_long);
/* Confirms the lock after all statements of the transaction and directly before COMMIT. If the
 * transaction is on several servers, the commit is in two phases. ERR_UNAVAILABLE: the lock was
 * lost. */
int pg_confirm_turn(struct pg_connection *writer, struct error *error) MUST_CHECK;
/* Makes the server cancel a COMMIT that waits for another server. Returns true once all statements
 * are answered. */
bool pg_break_off(struct pg_connection *writer) MUST_CHECK;

/* ---- libpq.c ---- */

/* Loads libpq. Call it before any libpq function (base/library.h). */
int libpq_load(struct error *error) MUST_CHECK;

/* ---- link.c: a connection to the server ---- */

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
/* Detaches a pending commit of one account, so that the next transaction gets a new connection.
 * Returns false if there is no room. */
bool pg_set_aside(struct pg_connection *connection) MUST_CHECK;
/* Returns whether a detached commit of the account is still pending. */
bool pg_waits_aside(struct pg_connection *connection, int64_t account);
void pg_drop_aside(struct pg_connection *connection);
/* Closes the connection; its statements are lost. */
void pg_disconnect(struct pg_connection *connection);
/* Records the connection's first failure. */
int pg_fail(struct pg_connection *connection, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Makes room for another statement in the pipeline. Returns false if the connection has failed. */
bool pg_make_room(struct pg_connection *connection) MUST_CHECK;
void pg_note_sent(struct pg_connection *connection, enum pg_kind kind, struct pg_query *query);
void pg_sync(struct pg_connection *connection);
/* Collects results up to that of `until`, or all (NULL). Returns false if the deadline passed or
 * the connection is lost; a loss is recorded and the connection closed. */
bool pg_collect(struct pg_connection *connection, const struct pg_query *until, int64_t deadline_us)
	MUST_CHECK;
/* Cancels the late statement on the server; never after a COMMIT. If tables are distributed, the
 * server could otherwise wait for another server and hold the transaction's locks. */
void pg_give_up_statement(struct pg_connection *connection);
/* Returns the deadline of an ordinary statement that is sent now. */
int64_t pg_deadline(const struct pg_connection *connection);

/* ---- query.c: statements ---- */
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
/* Sends a literal statement without parameters; `kind` determines how its result is evaluated. */
void pg_send_text(struct pg_connection *connection, enum pg_kind kind, const char *literal_sql);
/* As pg_send_text, with the transaction's account as $1, so that its shard executes it. */
void pg_send_to_shard(struct pg_connection *connection, enum pg_kind kind, const char *literal_sql);
void pg_send_number(struct pg_connection *connection, enum pg_kind kind, const char *literal_sql,
                    int64_t number);
void pg_forget_queries(struct pg_connection *connection); /* after a lost connection */
/* Makes room for the statements of another transaction, if they are of many shards. */
void pg_make_room_for_queries(struct pg_connection *connection);

/* ---- copy.c: backup and restore ---- */
int pg_vacant(const struct db_options *options, struct error *error) MUST_CHECK;
int pg_backup(struct db *base, const char *path, struct error *error) MUST_CHECK;
int pg_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
               struct error *error) MUST_CHECK;

/* ---- shards.c: checks of the shard servers ---- */
int pg_ask_shard_servers(struct db *base, struct db_shard_server *items, size_t max,
                         size_t *ret_count, struct error *error) MUST_CHECK;
void pg_forget_shard_servers(struct pg_db *db);

/* ---- pieces.c: queries of all shard servers ---- */
void pg_pieces_init(struct pg_db *db);
void pg_pieces_free(struct pg_db *db);
int pg_ask_pieces(struct db *base, const char *const *parts, size_t count, db_found_function *found,
                  void *context, struct db_asked *ret, struct error *error) MUST_CHECK;
/* Reports a commit that took too long. In the next query each server must also make a test commit.
 * A server that does not, because it or its standby hangs, counts as unreachable until it does. */
void pg_doubt_servers(struct pg_db *db);
bool pg_misses_servers(const struct db *base);
bool pg_is_away(struct pg_pieces *pieces, struct slice name); /* "host:port" */
bool pg_misses(struct db_connection *base, int64_t account);

/* ---- straight.c: direct connections of registrars to shard servers ---- */
struct pg_straight *pg_make_straight(void);          /* NULL: no memory */
void pg_free_straight(struct pg_straight *straight); /* NULL-safe */
/* Returns the connection for a transaction of the account. Returns `asker`, which locates the
 * account's rows and locks their placement, if tables are not distributed or no direct connection
 * is available; its `refusal` then has the reason. */
struct pg_connection *pg_go_straight(struct pg_straight *straight, struct pg_connection *asker,
                                     int64_t account);
int pg_try_server(struct db *base, const char *name, struct error *error) MUST_CHECK;
/* Returns whether the placement of the rows was locked until now, and releases the lock. */
bool pg_end_fence(struct pg_connection *connection);
/* Locks the placement of the account's rows within the transaction, and requests the check that
 * they are on this server. */
void pg_hold_pieces(struct pg_connection *connection);
void pg_judge_here(struct pg_connection *connection, const PGresult *row);
/* Returns the statement with shard names in place of table names; the caller frees it. NULL: no
 * memory. */
char *pg_name_pieces(const struct pg_piece_set *set, const char *sql);

/* ---- replicas.c: replication of commits ---- */

/* Returns the number of standbys that a commit waits for, from synchronous_standby_names: "" 0, "a,
 * b" 1, "2 (a, b, c)", "FIRST 2 (…)", "ANY 2 (…)". */
unsigned pg_standbys_waited_for(const char *names);
extern const char pg_replica_query[];   /* within the transaction */
extern const char pg_committed_query[]; /* after its COMMIT */
/* The same on the server of account $1; the second also returns the position of its standbys. */
extern const char pg_shard_replica_query[];
extern const char pg_shard_committed_query[];
/* The same on a shard server, through the coordinator: name $1, port $2, query $3. The result
 * columns are one text, followed by whether the server answered and its error. */
extern const char pg_shard_server_question[];
extern const char pg_shard_server_query[];
/* Writes to the shard and returns the position in the log. */
extern const char pg_shard_write[];
/* The number of these standbys and their maximum lag in bytes and in microseconds. */
extern const char pg_lag_query[];
/* Evaluates the row of the first two queries. Records ERR_UNAVAILABLE with the reason, prefixed
 * with `where`, as the connection's failure if a commit would not be replicated. */
void pg_judge_replicas(struct pg_connection *connection, const PGresult *row, const char *where);
/* Evaluates the row of the shard queries. The shard server does not report a cancelled wait for
 * standbys. So after a commit the standbys must be past the last write, else the outcome is
 * unknown. */
void pg_judge_shard(struct pg_connection *connection, const PGresult *row);

/* server_facts.c */
int pg_describe(struct db_connection *reader, struct db_facts *ret, struct error *error);

#endif
