/* Shared by the files of the embedded store's driver alone.
 *
 * One connection writes, and only it and the one that moves the log (log_mover.c) checkpoint, never
 * at once. SQLite 3.40 can corrupt its log when that begins anew while a checkpoint begins: so a
 * reader keeps it from that meanwhile. All others are read-only, automatic checkpoints are off. */
#ifndef DB_SQLITE_INTERNAL_H
#define DB_SQLITE_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>

#include "db/driver.h"

#define READER_COUNT 8
#define QUERY_CACHE_MAX 512
#define PARAMETERS_MAX 31
#define SQLITE_LOG_SUFFIX "-wal"
#define SQLITE_PATH_MAX (PATH_MAX + 16) /* of the file with a suffix */

struct sqlite_query {
	struct db_query base;
	const char *sql;
	sqlite3_stmt *statement;
	int bound;
	uint8_t places[PARAMETERS_MAX + 1]; /* $n -> SQLite's index, which goes by first appearance */
};

struct sqlite_connection {
	struct db_connection base;
	sqlite3 *sqlite; /* NULL: not open yet */
	bool writer;
	bool registers;  /* the writer, and a registrar has it */
	bool overwrites; /* what it frees is overwritten */
	bool in_transaction;
	bool reads_arrivals;
	struct sqlite_query queries[QUERY_CACHE_MAX]; /* open addressing by the text's address */
	struct sqlite_connection *next_free;
};

/* Who moves the log into the file, beside the writer; all under the mutex of the database. */
struct log_mover {
	struct sqlite_connection connection;
	struct sqlite_connection guard; /* reads, so that the log does not begin anew */
	pthread_t thread;
	pthread_cond_t changed;
	bool started, stopping;
	bool wanted;        /* it works, or is about to */
	bool rest_left;     /* it is done, and the writer moves what has come since */
	int result;         /* of its last work, until it is told */
	struct error error; /* of that */
};

/* Bytes. */
struct log_sizes {
	int64_t moved_at_least; /* the log is moved once it has grown by so much */
	/* At most so much is left to the writer, when the thread is done and when the writer comes to
	 * it. */
	int64_t left_max, rest_max;
	/* Where readers needed some of it still, that is tried again after so much more. */
	int64_t tried_again_after;
};

struct sqlite_db {
	struct db base;
	char path[PATH_MAX];
	int lock_file;
	int file; /* the file itself, to pace what is moved into it */
	pthread_mutex_t mutex;
	pthread_cond_t turn_changed;
	uint64_t next_ticket; /* the writer is given in order of arrival */
	uint64_t turn;
	pthread_cond_t reader_free;
	struct sqlite_connection writer;
	bool has_schema; /* readers opened from here on read by its names */
	struct sqlite_connection readers[READER_COUNT]; /* each opened at its first use */
	struct sqlite_connection *free_readers;
	int readers_taken;
	int64_t page_size;  /* bytes: of the file, since it was made */
	int log_pages;      /* in the log after the last commit */
	int moved_pages;    /* of them already moved into the file; never fewer than that are */
	int tried_pages;    /* of them there when it was last tried, whether readers need them still */
	unsigned log_turns; /* how often it began anew */
	struct log_sizes log_sizes;
	pthread_mutex_t maintaining; /* held throughout: two at once could move the log at once */
	struct log_mover mover;
};

static inline struct sqlite_db *sqlite_db(struct db *db)
{
	return (struct sqlite_db *)db;
}

static inline struct sqlite_connection *sqlite_connection(struct db_connection *connection)
{
	return (struct sqlite_connection *)connection;
}

static inline struct sqlite_query *sqlite_query(struct db_query *query)
{
	return (struct sqlite_query *)query;
}

static inline struct sqlite_connection *connection_of(struct sqlite_query *query)
{
	return sqlite_connection(query->base.connection);
}

/* ---- connection.c ---- */
enum sqlite_role { SQLITE_READER, SQLITE_WRITER, SQLITE_MOVER };
int sqlite_connection_open(struct sqlite_db *db, struct sqlite_connection *connection,
                           enum sqlite_role role, struct error *error) MUST_CHECK;
/* A reader's first use: fails as its queries do, and is tried again by the next. */
int sqlite_reader_open(struct sqlite_connection *connection) MUST_CHECK;
void sqlite_connection_close(struct sqlite_connection *connection);
/* What SQLite says went wrong, as one of our codes, in connection->base.error too; a failed sync
 * poisons the database. */
int sqlite_note_error(struct sqlite_connection *connection, const char *what);
/* The same as the connection's failure, unless it has one. */
int sqlite_fail(struct sqlite_connection *connection, const char *what);
int sqlite_begin(struct db_connection *connection, struct error *error) MUST_CHECK;
int sqlite_written(struct db_connection *connection, struct db_written *ret, struct error *error)
	MUST_CHECK;
int sqlite_commit(struct db_connection *connection, struct error *error) MUST_CHECK;
void sqlite_rollback(struct db_connection *connection);
int sqlite_run(struct db_connection *connection, const char *sql, struct error *error) MUST_CHECK;

/* ---- log.c: the write-ahead log ---- */
/* Before SQLite sees the files: what is in them, made durable. */
int sqlite_make_files_durable(struct sqlite_db *db, struct error *error) MUST_CHECK;
/* Before anybody else is connected: moves all of the log into the file. */
int sqlite_move_whole_log(struct sqlite_db *db, struct error *error) MUST_CHECK;
/* After a sync by SQLite that it calls good: whether that can be believed. Poisons the database. */
int sqlite_check_sync(struct sqlite_db *db, struct error *error) MUST_CHECK;

/* ---- log_mover.c ---- */
/* Counts the log's pages at each commit of the writer. */
void sqlite_watch_log(struct sqlite_db *db);
int sqlite_start_mover(struct sqlite_db *db, struct error *error) MUST_CHECK;
/* Before the writer is closed; also when it was not started. */
void sqlite_stop_mover(struct sqlite_db *db);
int sqlite_maintain(struct db *db, struct error *error) MUST_CHECK;

/* ---- log_file.c ---- */
/* The name of what reads and writes files for our connections; NULL without memory. */
const char *sqlite_vfs(void);

/* ---- query.c ---- */
struct db_query *sqlite_make_query(struct db_connection *connection, const char *literal_sql,
                                   bool long_result);
void sqlite_bind_integer(struct db_query *query, int64_t value);
void sqlite_bind_text_slice(struct db_query *query, struct slice text);
void sqlite_bind_bytes(struct db_query *query, const void *data, size_t size);
void sqlite_bind_nothing(struct db_query *query);
bool sqlite_step(struct db_query *query);
int sqlite_execute(struct db_query *query, int64_t *ret_changes, struct error *error) MUST_CHECK;
int sqlite_end(struct db_query *query, struct error *error) MUST_CHECK;
int64_t sqlite_integer(struct db_query *query, int column);
bool sqlite_is_null(struct db_query *query, int column);
struct slice sqlite_text(struct db_query *query, int column);
struct slice sqlite_blob(struct db_query *query, int column);

/* ---- arrivals.c ---- */
/* Lets the connection's queries read by the name that the schema gives it. The schema is there. */
int sqlite_add_arrivals(struct sqlite_connection *connection) MUST_CHECK;

/* ---- copy.c ---- */
int sqlite_backup(struct db *db, const char *path, struct error *error) MUST_CHECK;
int sqlite_vacant(const struct db_options *options, struct error *error) MUST_CHECK;
int sqlite_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
                   struct error *error) MUST_CHECK;

/* For a new file: ERR_REFUSED when a log with something in it stands beside where the file is to
 * be. A rollback journal may: there is one only while a new file is made, and without the file it
 * undoes nothing. */
int sqlite_refuse_lone_log(const struct db_options *options, struct error *error) MUST_CHECK;

#endif
