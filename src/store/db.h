/* The database driver contract: one small interface over SQLite and, later, PostgreSQL.
 *
 * The store's queries are written once, in the SQL that both engines speak: parameters $1, $2, …;
 * BIGINT, TEXT, BLOB; INSERT … ON CONFLICT; RETURNING. A driver adapts what differs (`FOR UPDATE`
 * is dropped on SQLite, where one connection writes).
 *
 * A database has ONE writer connection per sequencer (SQLite: exactly one for the process, which
 * also checkpoints) and several read-only ones. A connection is used by one thread at a time; the
 * store takes and gives them back. Statements are prepared once per connection and cached by the
 * address of their text, so texts must be string literals.
 *
 * Errors are sticky within a transaction: after a failure every later call answers the same error
 * and the transaction can only be rolled back. */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct db;            /* a database: file or server */
struct db_connection; /* one connection */
struct db_query;      /* a statement being bound and stepped */

/* Opens; for SQLite the file and its directory are created when `create`. */
int db_open(const char *url, bool create, struct db **ret_db, struct error *error);
void db_close(struct db *db);

/* The writer: blocks, in order of arrival, until the connection is free. Never fails. */
struct db_connection *db_take_writer(struct db *db);
/* A read-only connection with a consistent view from db_begin on; blocks while all are taken, so
 * nobody may take a second one while holding one. */
struct db_connection *db_take_reader(struct db *db);
/* Gives back; an open transaction is rolled back. NULL-safe. */
void db_give(struct db_connection *connection);

int db_begin(struct db_connection *connection, struct error *error);
/* Durable on return (and replicated where asked for). ERR_UNKNOWN_OUTCOME: nobody knows. */
int db_commit(struct db_connection *connection, struct error *error);
void db_rollback(struct db_connection *connection);
/* The first error since db_begin, 0 if none. */
int db_failure(const struct db_connection *connection);

/* Several statements without parameters, for schema work. */
int db_run(struct db_connection *connection, const char *sql, struct error *error);

/* A query: db_query, bind in order, step while it answers true. Finished by db_end, or by the next
 * db_query of the same text. Texts and blobs read stay valid until the next step. */
struct db_query *db_query(struct db_connection *connection, const char *literal_sql);
void db_bind_integer(struct db_query *query, int64_t value);
void db_bind_text(struct db_query *query, struct slice text);
void db_bind_string(struct db_query *query, const char *text); /* NULL: NULL */
void db_bind_blob(struct db_query *query, const void *data, size_t size); /* data NULL: NULL */
void db_bind_null(struct db_query *query);
bool db_step(struct db_query *query);
/* Steps to the end and finishes; 0 or the connection's error. Changed rows in *ret_changes (may be
 * NULL). */
int db_execute(struct db_query *query, int64_t *ret_changes, struct error *error);
int db_end(struct db_query *query, struct error *error);

int64_t db_integer(struct db_query *query, int column);
bool db_is_null(struct db_query *query, int column);
struct slice db_text(struct db_query *query, int column); /* empty for NULL */
struct slice db_blob(struct db_query *query, int column);

/* Housekeeping of the engine between transactions: SQLite moves its log into the file when it has
 * grown past its cap. Called by the sequencer with the writer taken. */
int db_maintain(struct db_connection *writer, struct error *error);
/* Copies a consistent snapshot into `path` while serving. */
int db_backup(struct db *db, const char *path, struct error *error);
/* After an I/O error in a commit nothing may be acknowledged any more: true once that happened. */
bool db_is_poisoned(const struct db *db);

#endif
