/* The database contract: one small interface over the embedded engine (SQLite) and the server
 * engine (PostgreSQL). db.c hands each call to the driver that the address names.
 *
 * Nearly all queries are written once, in the SQL that both engines speak: parameters $1, $2, …;
 * BIGINT, TEXT, BLOB; INSERT … ON CONFLICT; RETURNING. A driver adapts what differs (`FOR UPDATE`
 * is dropped on SQLite, where one connection writes). A parameter that may be NULL needs a place
 * that tells its type: a column, or CAST($1 AS TEXT) before IS NULL.
 *
 * Three uses of a connection:
 * - the WRITER of administration and jobs: its transactions exclude each other, over all nodes;
 * - a REGISTRAR, one for each sequencer: on the server its transactions run beside the writer's,
 *   so whoever reads and changes what registration changes locks the account's row first;
 * - READERS: a consistent view from db_begin on.
 * On SQLite registrar and writer are one connection.
 *
 * A connection is used by one thread at a time. Statements are prepared once per connection and
 * cached by the address of their text, so texts must be string literals.
 *
 * Errors are sticky within a transaction: after a failure every later call answers the same error
 * and the transaction can only be rolled back. */
#ifndef DB_DB_H
#define DB_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "db/schema.h"

struct db;            /* a database: file or server */
struct db_connection; /* one connection */
struct db_query;      /* a statement being bound and stepped */

struct db_options {
	const char *url;           /* sqlite:PATH, postgresql://… */
	bool create;               /* SQLite: makes the file and its directory */
	unsigned require_replicas; /* server: synchronous standbys without which nothing is written */
	int64_t commit_timeout_us; /* server: longest wait for a commit; 0: 5 s */
	bool sharded;              /* server: tables are distributed by account */
};
/* Whether an address can be one: OK, or ERR_VALIDATION with a sentence that shows no secret. */
int db_check_url(const char *url, struct error *error) MUST_CHECK;
/* The address as people may see it: without a password. */
void db_shown_url(const char *url, char *text, size_t size);
/* `schemas` stay the caller's and live as long as the database; NULL for work that needs no schema.
 * What is there is not looked at: db_check_schema does. */
int db_open(const struct db_options *options, const struct db_schemas *schemas, struct db **ret_db,
            struct error *error) MUST_CHECK;
void db_close(struct db *db); /* NULL-safe */

/* By these rows, one or none, a server that distributes tables finds the shard of account $1. */
#define DB_ROWS_OF_SHARD "accounts WHERE account = $1"

/* Whether other processes write to it too. */
bool db_is_shared(const struct db *db);
/* db_options.sharded: a statement is planned anew for the account that it is bound to. */
bool db_is_sharded(const struct db *db);
/* How many registrars it serves at a time. */
unsigned db_registrar_count(const struct db *db);
/* "durable": on the disk of one machine; "replicated": on a standby, too, when a commit answers. */
const char *db_promise(const struct db *db);
/* The clock that all processes which write to it share, for leases and due times: microseconds
 * since 1970. The server's own on a server. Never for evidence. */
int64_t db_now_us(const struct db *db);
/* The latest time that this clock may show now, whatever its last answer waited for; asked in each
 * transaction. This machine's while it is not known, and where nobody else writes. */
int64_t db_latest_now_us(const struct db *db);
/* ERR_UNAVAILABLE with the reason in its cause while commits could not be acknowledged. */
int db_ready(struct db *db, struct error *error) MUST_CHECK;

/* What holds copies as they are written; all 0 where nothing does. */
struct db_replicas {
	unsigned required;    /* db_options.require_replicas */
	unsigned synchronous; /* standbys that stream and that commits may wait for */
	int64_t lag_bytes;    /* of the log, that the furthest behind of them has not on its disk */
	int64_t lag_us;       /* how long that takes it; 0: it has all, or was not measured */
};
int db_count_replicas(struct db *db, struct db_replicas *ret, struct error *error) MUST_CHECK;

/* A server that has shards. */
#define DB_SHARD_SERVERS_MAX 64
struct db_shard_server {
	char name[128];              /* host:port, as the others know it */
	bool answered;               /* whatever it said */
	int result;                  /* as db_ready's, of this one; else */
	char cause[ERROR_CAUSE_MAX]; /* the reason */
};
/* Asks each of them, all at once, what db_ready asks; at most `max`. There are none where tables
 * are not distributed. Waits for none longer than a few seconds: one that does not answer goes on
 * being asked the same. By one thread at a time. */
int db_ask_shard_servers(struct db *db, struct db_shard_server *items, size_t max,
                         size_t *ret_count, struct error *error) MUST_CHECK;

/* Whether this process reaches one of them by itself, as its registrars do: ERR_UNAVAILABLE. */
int db_try_shard_server(struct db *db, const char *name, struct error *error) MUST_CHECK;

/* Where tables are distributed, questions to the pieces that each server has of them. */
#define DB_PARTS_MAX 16
struct db_asked {
	bool distributed; /* else nobody was asked */
	bool all;         /* no server failed to answer */
};
/* Asks each server that has accounts' rows, all at once and with one statement, for accounts. Each
 * of the `parts` is a SELECT of an account alone, in which a table in braces, {mails}, stands for
 * the server's pieces of it; DB_PART_ACCOUNTS ends it. `found` is told which part named which
 * account, in any order. A server that fails to answer, or not within a moment, is left out, and
 * until it answers it counts as away (db_check_reach). By any thread; one asks at a time. */
#define DB_PART_ACCOUNTS " ORDER BY account LIMIT 8192"
typedef void db_found_function(void *context, size_t part, int64_t account);
int db_ask_pieces(struct db *db, const char *const *parts, size_t count, db_found_function *found,
                  void *context, struct db_asked *ret, struct error *error) MUST_CHECK;
/* Whether some server is known to be away. */
bool db_misses_servers(const struct db *db);
/* Whether the account's rows are on one of those. */
bool db_misses(struct db_connection *connection, int64_t account);
/* ERR_UNAVAILABLE where they are: who waited for it would hold up the others. db_keep_to_shard
 * looks, too. */
int db_check_reach(struct db_connection *connection, int64_t account, struct error *error)
	MUST_CHECK;
/* From here on every call answers this, as after a failure of the database's. */
int db_fail(struct db_connection *connection, const struct error *error);

/* OK once every transaction that wrote before the call is decided, and what it wrote is seen: a
 * commit that waits for its standby is not. Writes something of its own, replicated as a commit is.
 * ERR_UNAVAILABLE: some are not decided. */
int db_await_writes(struct db *db, struct error *error) MUST_CHECK;

/* The writer: blocks, in order of arrival, until a connection is free. Never fails. */
struct db_connection *db_take_writer(struct db *db);
/* A writer whose commits are durable on the server alone when they return, whatever standbys are
 * asked for; the server's log brings them to the standbys in its order. For what takes rights away,
 * and for what may be lost; never for what acknowledges anything to others. It waits for no other
 * writer: behind a commit that waits for its standby, a row that both change is ERR_UNAVAILABLE
 * after a while. */
struct db_connection *db_take_local(struct db *db);
/* Registrar `number`, counted from 0. Where tables are distributed its transaction is of that
 * account alone; elsewhere it does not matter which. */
struct db_connection *db_take_registrar(struct db *db, unsigned number, int64_t account);
/* A read-only connection; blocks while all are taken, so nobody may take a second one while
 * holding one. */
struct db_connection *db_take_reader(struct db *db);
/* In the middle of a transaction, for what is of no account and committed: the connection itself,
 * or where that has one account's rows alone another one of its holder's, given back with it. */
struct db_connection *db_beside(struct db_connection *connection);
/* Gives back; an open transaction is rolled back. NULL-safe. */
void db_give(struct db_connection *connection);
struct db *db_of(struct db_connection *connection);
/* What its holder wants to find with it again, until it is given back; NULL: nothing. */
void db_keep(struct db_connection *connection, void *kept);
void *db_kept(const struct db_connection *connection);

int db_begin(struct db_connection *connection, struct error *error) MUST_CHECK;
/* In a transaction of the writer's or a registrar's: what its commit acknowledges is that
 * account's, the same one at every call (0: what is on no account). Where tables are distributed,
 * what the commit promises is then judged where the account's rows are, too, before and after, and
 * the commit waits for that server's standbys whatever was written. Elsewhere: nothing. */
void db_keep_to_shard(struct db_connection *connection, int64_t account);
/* Durable on return, and replicated where asked for. ERR_UNKNOWN_OUTCOME: nobody knows. */
int db_commit(struct db_connection *connection, struct error *error) MUST_CHECK;
/* What stays the same for as long as nobody writes: neither by this connection, nor by another one
 * that has committed. Changes of the schema do not count. In a write transaction of the embedded
 * engine alone. */
struct db_written {
	int64_t here, elsewhere;
};
int db_written(struct db_connection *connection, struct db_written *ret, struct error *error)
	MUST_CHECK;
/* The first error since db_begin, 0 if none. */
int db_failure(const struct db_connection *connection);
/* The same, with what was said of it. */
int db_tell_failure(const struct db_connection *connection, struct error *error) MUST_CHECK;
/* Whether the failed transaction lost to another one (deadlock, serialization) and may win when it
 * is tried again from its begin. */
bool db_may_retry(const struct db_connection *connection);

/* OK when the schema is that of the last step, which `create` brings an empty database to;
 * ERR_REFUSED names the step where it is. */
int db_check_schema(struct db *db, bool create, struct error *error) MUST_CHECK;
/* Applies the steps that are missing, in one transaction of the writer; an empty database is
 * refused. Their names go into `out`, one per line; both `out` and `progress` may be NULL. `within`
 * (NULL: nothing) is run behind them, in the same transaction, when there were any. */
int db_migrate(struct db *db, bool dry_run, struct buf *out, const struct schema_progress *progress,
               int (*within)(struct db_connection *connection, void *context, struct error *error),
               void *context, struct error *error) MUST_CHECK;

/* Several statements without parameters; what they answer is not looked at. */
int db_run(struct db_connection *connection, const char *sql, struct error *error) MUST_CHECK;
/* Whether the schema has a table. */
int db_has_table(struct db_connection *connection, const char *name, bool *ret_present,
                 struct error *error) MUST_CHECK;

/* A query: db_query, bind in order, step while it answers true. Finished by db_end, or by the next
 * db_query of the same text. Texts and blobs read stay valid until the next step. */
struct db_query *db_query(struct db_connection *connection, const char *literal_sql);
/* The same for results of any length, which are then read in portions; within a transaction. */
struct db_query *db_query_long(struct db_connection *connection, const char *literal_sql);
void db_bind_integer(struct db_query *query, int64_t value);
void db_bind_text(struct db_query *query, struct slice text);
void db_bind_string(struct db_query *query, const char *text);            /* NULL: NULL */
void db_bind_blob(struct db_query *query, const void *data, size_t size); /* data NULL: NULL */
void db_bind_null(struct db_query *query);
/* Bound as far as it goes: the server may work on it while other queries are made. Several sent
 * queries cost one round trip; each is then stepped as usual. Elsewhere: nothing. */
void db_send(struct db_query *query);
bool db_step(struct db_query *query);
/* Steps to the end and finishes; 0 or the connection's error. Changed rows in *ret_changes. With
 * NULL for ret_changes a server may run it later: what goes wrong then shows at a later call, at
 * the latest at the commit. */
int db_execute(struct db_query *query, int64_t *ret_changes, struct error *error) MUST_CHECK;
int db_end(struct db_query *query, struct error *error) MUST_CHECK;
/* Finishes; an error stays with the connection, whose end of the transaction tells it. */
void db_release(struct db_query *query);

int64_t db_integer(struct db_query *query, int column);
bool db_is_null(struct db_query *query, int column);
struct slice db_text(struct db_query *query, int column); /* empty for NULL */
struct slice db_blob(struct db_query *query, int column);

/* A parameter of many values, for statements that only the server gets: `= ANY($1)`,
 * `unnest($1, …)`. The memory is the array's own. */
#define DB_ARRAY_HEADER_SIZE 20
enum db_type { DB_INTEGERS, DB_TEXTS, DB_BLOBS };
struct db_array {
	enum db_type type;
	size_t count;
	bool has_null;
	struct buf wire; /* room for the header, then for each: 4 bytes of length and the value */
};
void db_array_init(struct db_array *array, enum db_type type);
void db_array_clear(struct db_array *array); /* empties it, keeps the memory */
void db_array_free(struct db_array *array);
void db_array_add_integer(struct db_array *array, int64_t value);
void db_array_add_bytes(struct db_array *array, const void *data, size_t size); /* NULL: NULL */
void db_array_add_null(struct db_array *array);
void db_bind_array(struct db_query *query, struct db_array *array);

/* Housekeeping of the engine between transactions: SQLite moves its log into the file when it has
 * grown past its cap, by a thread of its own, whose last failure is told. Called by the sequencer
 * alone: two at once could move it at once. */
int db_maintain(struct db *db, struct error *error) MUST_CHECK;
/* Copies a consistent snapshot into the file `path`, which must not exist, while serving: all that
 * was committed when it began is in it. Each engine has a format of its own. */
int db_backup(struct db *db, const char *path, struct error *error) MUST_CHECK;
/* What an engine's copies are called: "constancia.db". */
const char *db_backup_name(const struct db *db);
const char *db_backup_name_of(const char *url); /* of a valid address's engine */
/* OK when nothing is where the address says, so that a copy can be brought back; ERR_REFUSED. */
int db_check_vacant(const struct db_options *options, struct error *error) MUST_CHECK;
/* A row of the table `settings`. */
struct db_mark {
	const char *name, *value;
};
/* While a server brings a copy back, and after a crash in the moment behind it, its mark is the one
 * row (name, value) of this table; what is brought back has the mark at any time. Whoever goes by a
 * mark looks here, too. The embedded store never has it. */
#define DB_RESTORING "restoring"
/* Brings a copy back, whole or not at all, into where nothing is, with `mark` in the place of the
 * row of that name: nobody ever sees the copy without it. It is durable on return and
 * replicated as `options` ask for; ERR_UNKNOWN_OUTCOME: it is there, but no standby has said so. */
int db_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
               struct error *error) MUST_CHECK;
/* After an I/O error in a commit nothing may be acknowledged any more: true once that happened. */
bool db_is_poisoned(const struct db *db);

#endif
