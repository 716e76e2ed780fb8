/* Shared by the files of the PostgreSQL driver alone.
 *
 * A connection works in libpq's pipeline mode: statements are sent as they come and their results
 * are collected when somebody needs one. So all that a transaction writes goes to the server
 * together with its COMMIT, and what it reads in few round trips. */
#ifndef DB_POSTGRES_INTERNAL_H
#define DB_POSTGRES_INTERNAL_H

#include <libpq-fe.h>
#include <pthread.h>

#include "db/driver.h"

#define QUERIES_MAX 1024 /* texts of a connection, by pieces */
#define PARAMETERS_MAX 31
#define WAITING_MAX 1024 /* statements sent whose results were not collected */

/* PG_STRAIGHT: a registrar's, to the server that has the account's rows (straight.c). */
enum pg_use { PG_WRITER, PG_REGISTRAR, PG_READER, PG_LOCAL, PG_STRAIGHT };
#define PG_USES 5
#define PG_SETTINGS_MAX 1024

struct pg_query {
	struct db_query base;
	const char *sql;
	int64_t shard; /* PG_STRAIGHT: whose pieces `text` names, in place of `sql`; 0: none */
	char *text;
	char name[12]; /* of the prepared statement, of the cursor */
	bool prepared;
	bool long_result;
	bool cursor_open;
	enum { PG_BINDING, PG_SENT, PG_HERE } state;
	PGresult *result;
	int row;
};

/* What was sent, in order; its results come in the same order. */
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
	struct pg_query *query; /* who gets the result or is prepared, NULL: nobody */
	bool answered;
	int64_t sent_us; /* clock_boot_us */
};

/* A commit of one account that was left waiting while others go on. */
struct pg_aside {
	PGconn *pg; /* NULL: none */
	int64_t account;
	int64_t since_us;
};
#define PG_ASIDE_MAX 8

/* The pieces of all tables that have the rows of the same accounts; they are moved together. */
#define PG_TABLES_MAX 64
struct pg_piece_set {
	int64_t shard; /* of the accounts themselves */
	struct pg_table_piece {
		char table[48];
		int64_t shard;
	} pieces[PG_TABLES_MAX];
	size_t count;
	bool outdated;                    /* it is not where it was */
	struct pg_connection *connection; /* to the server that has it */
};

struct pg_connection {
	struct db_connection base;
	enum pg_use use;
	PGconn *pg; /* NULL: not connected */
	bool in_transaction;
	bool commit_warned; /* the server said that a commit may not be replicated */
	bool committed;
	char host[96], port[8];      /* PG_STRAIGHT: in place of the address's */
	struct pg_piece_set *set;    /* the same: what it works on */
	struct pg_connection *asker; /* the same: holds the fence */
	struct error refusal;        /* PG_REGISTRAR: why no other could be taken in its place */
	bool on_shard;               /* db_keep_to_shard was called in this transaction, for: */
	int64_t account;
	int64_t process;                     /* of the server's, as the writer commits */
	uint64_t written;                    /* where in the log of its shard's server it wrote last */
	int64_t limbo_since_us;              /* a commit is still waiting since then; 0: none */
	int64_t retry_at_us;                 /* no new attempt to connect before */
	struct pg_aside aside[PG_ASIDE_MAX]; /* a registrar's, where tables are distributed */
	struct pg_waiting waiting[WAITING_MAX];
	size_t waiting_first, waiting_count;
	/* Parameters of the query that is being bound. */
	struct pg_query *binding;
	int bound;
	const char *values[PARAMETERS_MAX];
	int lengths[PARAMETERS_MAX];
	int formats[PARAMETERS_MAX];
	Oid types[PARAMETERS_MAX];
	uint64_t integers[PARAMETERS_MAX];
	struct pg_query queries[QUERIES_MAX]; /* open addressing by the text's address */
	size_t query_count;
	struct pg_connection *next_free;
};

/* A server that has shards, and the connection by which it is asked: one question at a time. */
struct pg_shard_server {
	char name[128];
	struct pg_connection *connection;
	struct pg_query *question; /* asked, and not answered yet; NULL: none */
};

/* A server that has accounts' rows, and the connection by which its pieces are asked about. */
struct pg_piece_server {
	char name[128];
	bool listed;     /* when the pieces were listed last */
	bool away;       /* it did not answer */
	int64_t account; /* the number of some account whose rows it would have */
	struct pg_connection *connection;
	struct pg_query *question; /* asked, and not answered yet; NULL: none */
	bool late;                 /* that is what was asked an earlier time */
	struct pg_connection *trying;
	struct pg_query *trial; /* a commit there that is not over; NULL: none */
};

/* Whoever asks holds `mutex`; `away_mutex` is for the names alone. */
struct pg_pieces {
	pthread_mutex_t mutex;
	struct pg_connection *lister;
	int64_t listed_us; /* monotonic; 0: never */
	bool distributed, outdated;
	struct pg_piece *items; /* by server, then by piece of the accounts */
	size_t count;
	struct pg_piece_server servers[DB_SHARD_SERVERS_MAX];
	size_t server_count;
	struct buf text; /* of a question */
	pthread_mutex_t away_mutex;
	char away[DB_SHARD_SERVERS_MAX][128];
	atomic_size_t away_count;
	atomic_bool doubted; /* whether all of them commit */
};

#define PG_READERS 8
#define PG_REGISTRARS 4

struct pg_db {
	struct db base;
	char *url;
	unsigned require_replicas;
	int64_t commit_timeout_us;
	char transaction_settings[PG_USES][PG_SETTINGS_MAX]; /* statements, by use */
	/* The server's clock less one of ours; 0: unknown. */
	atomic_int_fast64_t clock_offset_us; /* clock_monotonic_us when its answer was here */
	atomic_int_fast64_t clock_latest_us; /* clock_boot_us when it was asked */
	pthread_mutex_t mutex;
	pthread_cond_t turn_changed;
	pthread_cond_t reader_free;
	uint64_t next_ticket; /* the writer is given in order of arrival */
	uint64_t turn;
	struct pg_connection *writer;
	struct pg_connection *turn_holder; /* turn.c's own, as are: */
	int64_t turn_process, turn_kept_us;
	struct pg_connection *local; /* whoever takes it holds local_mutex */
	pthread_mutex_t local_mutex;
	struct pg_connection *registrars[PG_REGISTRARS];
	struct pg_straight *straight[PG_REGISTRARS]; /* theirs, each; straight.c's own */
	struct pg_connection *readers[PG_READERS];
	struct pg_connection *free_readers;
	struct pg_shard_server shard_servers[DB_SHARD_SERVERS_MAX]; /* shards.c's own */
	size_t shard_server_count;
	struct pg_connection *shard_lister; /* finds out which they are */
	struct pg_pieces pieces;            /* pieces.c's own */
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
/* Puts the connection back between transactions, whatever was under way. */
void pg_roll_back(struct pg_connection *connection);

/* ---- turn.c: writers exclude each other ---- */
/* Within the writer's own transaction, where tables are not distributed. */
extern const char pg_lock_turn[];
extern const char pg_try_lock_turn[];
/* Elsewhere: until pg_end_turn, by whoever was given the writer; all of these. */
int pg_take_turn(struct pg_db *db, struct error *error) MUST_CHECK;
void pg_end_turn(struct pg_db *db);
/* For the next statement of the writer's, which may take as long as any, or however long. */
void pg_keep_turn(struct pg_db *db, bool however_long);
/* Behind all that was asked in the transaction and right before its COMMIT, which is in two phases
 * where it is of several servers. ERR_UNAVAILABLE: the turn was lost. */
int pg_confirm_turn(struct pg_connection *writer, struct error *error) MUST_CHECK;
/* Has the server give up a COMMIT that waits for another one. True once all is answered. */
bool pg_break_off(struct pg_connection *writer) MUST_CHECK;

/* ---- libpq.c ---- */

/* Before any of libpq's own functions (base/library.h). */
int libpq_load(struct error *error) MUST_CHECK;

/* ---- link.c: one connection to the server ---- */

/* The parts of an address, which the caller frees (PQconninfoFree); whoever opens a database begins
 * with it. ERR_VALIDATION, ERR_NO_MEMORY, ERR_UNAVAILABLE (there is no libpq). */
int pg_parse_url(const char *url, PQconninfoOption **ret_options, struct error *error);
#define PG_CLOCK_NOW "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
/* Connects unless connected. A commit that waits in limbo is looked at first: while it waits, and
 * shortly after a failed attempt, the answer is ERR_UNAVAILABLE at once. */
int pg_connect(struct pg_connection *connection, struct error *error) MUST_CHECK;
/* Fills in the statements that set, for one transaction, what it depends on: behind a pooler it may
 * run in a session that never heard of this program. Their last column is the server's clock. */
void pg_write_transaction_settings(struct pg_db *db);
/* Leaves what waits to itself, where it is of one account: the next transaction has a connection of
 * its own. False: there is no room. */
bool pg_set_aside(struct pg_connection *connection) MUST_CHECK;
/* Whether a commit of the account that was set aside still waits. */
bool pg_waits_aside(struct pg_connection *connection, int64_t account);
void pg_drop_aside(struct pg_connection *connection);
/* Forgets the connection; open statements are gone with it. */
void pg_disconnect(struct pg_connection *connection);
/* Records the connection's first failure. */
int pg_fail(struct pg_connection *connection, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Room for one more statement in the pipeline; false once the connection has failed. */
bool pg_make_room(struct pg_connection *connection) MUST_CHECK;
void pg_note_sent(struct pg_connection *connection, enum pg_kind kind, struct pg_query *query);
void pg_sync(struct pg_connection *connection);
/* Collects results up to that of `until`, or all (NULL). False when the deadline passed or the
 * connection is lost, which is then recorded and closed. */
bool pg_collect(struct pg_connection *connection, const struct pg_query *until, int64_t deadline_us)
	MUST_CHECK;
/* Has the server give up the statement that was too late; never behind a COMMIT. Where tables are
 * distributed it would else go on waiting for another server, with the transaction's locks. */
void pg_give_up_statement(struct pg_connection *connection);
/* The deadline of an ordinary statement sent now. */
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
/* Sends a literal text without parameters whose result is judged by its kind, if at all. */
void pg_send_text(struct pg_connection *connection, enum pg_kind kind, const char *literal_sql);
/* The same with the transaction's account as $1, so that its shard answers. */
void pg_send_to_shard(struct pg_connection *connection, enum pg_kind kind, const char *literal_sql);
void pg_send_number(struct pg_connection *connection, enum pg_kind kind, const char *literal_sql,
                    int64_t number);
void pg_forget_queries(struct pg_connection *connection); /* after a lost connection */
/* Room for the texts of one more transaction, where they are of many pieces. */
void pg_make_room_for_queries(struct pg_connection *connection);

/* ---- copy.c: backup and restore ---- */
int pg_vacant(const struct db_options *options, struct error *error) MUST_CHECK;
int pg_backup(struct db *base, const char *path, struct error *error) MUST_CHECK;
int pg_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
               struct error *error) MUST_CHECK;

/* ---- shards.c: the servers that have shards ---- */
int pg_ask_shard_servers(struct db *base, struct db_shard_server *items, size_t max,
                         size_t *ret_count, struct error *error) MUST_CHECK;
void pg_forget_shard_servers(struct pg_db *db);

/* ---- pieces.c: who has what, asked of all those servers ---- */
void pg_pieces_init(struct pg_db *db);
void pg_pieces_free(struct pg_db *db);
int pg_ask_pieces(struct db *base, const char *const *parts, size_t count, db_found_function *found,
                  void *context, struct db_asked *ret, struct error *error) MUST_CHECK;
/* A commit took too long. The next time that they are asked, each has to commit something, too; one
 * that does not, as it or its standby hangs, counts as away until it has. */
void pg_doubt_servers(struct pg_db *db);
bool pg_misses_servers(const struct db *base);
bool pg_is_away(struct pg_pieces *pieces, struct slice name); /* "host:port" */
bool pg_misses(struct db_connection *base, int64_t account);

/* ---- straight.c: registrars at the servers that have the rows ---- */
struct pg_straight *pg_make_straight(void);          /* NULL: no memory */
void pg_free_straight(struct pg_straight *straight); /* NULL-safe */
/* The connection for a transaction of that account; `asker`, which finds out where its rows are and
 * holds them there, where nothing is distributed or it can't be had: then it says why in its
 * `refusal`. */
struct pg_connection *pg_go_straight(struct pg_straight *straight, struct pg_connection *asker,
                                     int64_t account);
int pg_try_server(struct db *base, const char *name, struct error *error) MUST_CHECK;
/* Whether the rows were held there until now; lets go of them. */
bool pg_end_fence(struct pg_connection *connection);
/* In a transaction: keeps the account's rows where they are, and has it judged whether that is
 * here. */
void pg_hold_pieces(struct pg_connection *connection);
void pg_judge_here(struct pg_connection *connection, const PGresult *row);
/* The text with the pieces in place of the tables; the caller frees it. NULL: no memory. */
char *pg_name_pieces(const struct pg_piece_set *set, const char *sql);

/* ---- replicas.c: what a commit can promise ---- */

/* How many standbys a commit waits for, by a value of synchronous_standby_names: "" 0,
 * "a, b" 1, "2 (a, b, c)", "FIRST 2 (…)", "ANY 2 (…)". */
unsigned pg_standbys_waited_for(const char *names);
extern const char pg_replica_query[];   /* within the transaction */
extern const char pg_committed_query[]; /* behind its COMMIT */
/* The same of the server that has account $1; the latter tells, too, how far its standbys are. */
extern const char pg_shard_replica_query[];
extern const char pg_shard_committed_query[];
/* The same of a server that has shards, by way of the one that they belong to: of the name $1, the
 * port $2, with the question $3. Behind the columns, which are one text there, come whether it
 * answered, and what was said where it did not. */
extern const char pg_shard_server_question[];
extern const char pg_shard_server_query[];
/* Writes something there, and tells where in the log. */
extern const char pg_shard_write[];
/* Of those standbys how many there are, and their largest lag in bytes and in microseconds. */
extern const char pg_lag_query[];
/* Judges the one row of the first two; OK, or ERR_UNAVAILABLE with the reason, behind `where`, as
 * the connection's failure. */
void pg_judge_replicas(struct pg_connection *connection, const PGresult *row, const char *where);
/* Of the other two. A wait for the standbys that was cancelled there is told to nobody: behind a
 * commit they have to be beyond what it wrote last, else the outcome is unknown. */
void pg_judge_shard(struct pg_connection *connection, const PGresult *row);

#endif
