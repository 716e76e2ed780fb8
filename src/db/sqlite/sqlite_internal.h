/* Internal to the SQLite driver: shared by its files.
 *
 * One connection writes. Only it and the checkpointer's connection (checkpointer.c) checkpoint,
 * never at the same time. SQLite 3.40 can corrupt its write-ahead log if a log reset coincides with
 * the start of a checkpoint, so a reader prevents resets meanwhile. All other connections are
 * read-only, and automatic checkpoints are off. */
#ifndef DB_SQLITE_SQLITE_INTERNAL_H
#define DB_SQLITE_SQLITE_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>

#include "db/db_driver.h"

#define READER_COUNT 8
#define QUERY_CACHE_MAX 512
#define PARAMETERS_MAX 31
#define SQLITE_LOG_SUFFIX "-wal"
#define SQLITE_PATH_MAX (PATH_MAX + 16) /* of the path with a suffix */

struct sqlite_query {
	struct db_query base;
	const char *sql;
	sqlite3_stmt *statement;
	int bound;
	uint8_t places[PARAMETERS_MAX + 1]; /* $n -> SQLite's index, by order of first appearance */
};

struct sqlite_connection {
	struct db_connection base;
	sqlite3 *sqlite; /* NULL: not open yet */
	sqlite3_stmt *rollback;
	bool writer;
	bool registers;  /* it is the writer, taken as a registrar */
	bool overwrites; /* freed pages are overwritten */
	bool in_transaction;
	bool has_append_log;
	struct sqlite_query queries[QUERY_CACHE_MAX]; /* open addressing by the text's address */
	struct sqlite_connection *next_free;
};

/* Checkpointer: a thread that checkpoints the write-ahead log concurrently with the writer.
 * Protected by the mutex of the database. */
struct log_mover {
	struct sqlite_connection connection;
	struct sqlite_connection guard; /* a reader that prevents a reset of the log */
	pthread_t thread;
	pthread_cond_t changed;
	bool started, stopping;
	bool wanted;        /* a checkpoint is running or requested */
	bool rest_left;     /* it is done; the writer checkpoints the pages added since */
	int result;         /* result of its last checkpoint, until taken */
	struct error error; /* error of that checkpoint */
};

/* Limits in bytes. */
struct log_sizes {
	int64_t moved_at_least; /* growth of the log that starts a checkpoint */
	/* Maximum left to the writer: when the thread ends, and when the writer takes over. */
	int64_t left_max, rest_max;
	/* Growth until the next attempt, if readers still needed pages. */
	int64_t tried_again_after;
};

struct sqlite_db {
	struct db base;
	char path[PATH_MAX];
	int lock_file;
	int file; /* the database file, for paced writing */
	pthread_mutex_t mutex;
	pthread_cond_t turn_changed;
	uint64_t next_ticket; /* the writer is given in order of arrival */
	uint64_t turn;
	pthread_cond_t reader_free;
	struct sqlite_connection writer;
	bool has_schema;                                /* readers opened from now on use its names */
	struct sqlite_connection readers[READER_COUNT]; /* each is opened on first use */
	struct sqlite_connection *free_readers;
	int readers_taken;
	int64_t page_size;   /* bytes; constant since the file was created */
	int log_pages;       /* pages in the log after the last commit */
	int moved_pages;     /* of them, lower bound of those checkpointed */
	int tried_pages;     /* of them present at the last attempt, even if readers still need them */
	unsigned log_resets; /* number of log resets */
	struct log_sizes log_sizes;
	pthread_mutex_t maintaining; /* held during maintenance, to prevent two checkpoints at once */
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
enum sqlite_role { SQLITE_READER, SQLITE_WRITER, SQLITE_CHECKPOINTER };
int sqlite_connection_open(struct sqlite_db *db, struct sqlite_connection *connection,
                           enum sqlite_role role, struct error *error) MUST_CHECK;
/* Opens a reader on first use. A failure is that of its queries, and the next use retries. */
int sqlite_reader_open(struct sqlite_connection *connection) MUST_CHECK;
void sqlite_connection_close(struct sqlite_connection *connection);
/* Maps SQLite's error to one of our codes and records it in connection->base.error. A failed sync
 * poisons the database. */
int sqlite_note_error(struct sqlite_connection *connection, const char *what);
/* As sqlite_note_error, and sets the connection's failure unless it has one. */
int sqlite_fail(struct sqlite_connection *connection, const char *what);
int sqlite_begin(struct db_connection *connection, struct error *error) MUST_CHECK;
int sqlite_written(struct db_connection *connection, struct db_written *ret, struct error *error)
	MUST_CHECK;
int sqlite_commit(struct db_connection *connection, struct error *error) MUST_CHECK;
void sqlite_rollback(struct db_connection *connection);
int sqlite_run(struct db_connection *connection, const char *sql, struct error *error) MUST_CHECK;

/* ---- wal_recovery.c: the write-ahead log ---- */
/* Makes the contents of the files durable, before SQLite opens them. */
int sqlite_make_files_durable(struct sqlite_db *db, struct error *error) MUST_CHECK;
/* Checkpoints the whole log, before other connections open. */
int sqlite_checkpoint_all(struct sqlite_db *db, struct error *error) MUST_CHECK;
/* Checks whether a successful sync by SQLite can be trusted; otherwise poisons the database. */
int sqlite_check_sync(struct sqlite_db *db, struct error *error) MUST_CHECK;

/* ---- checkpointer.c ---- */
/* Counts the pages of the log at each commit of the writer. */
void sqlite_count_log_pages(struct sqlite_db *db);
int sqlite_start_checkpointer(struct sqlite_db *db, struct error *error) MUST_CHECK;
/* Stops the checkpointer before the writer is closed, also if it was not started. */
void sqlite_stop_checkpointer(struct sqlite_db *db);
int sqlite_maintain(struct db *db, struct error *error) MUST_CHECK;

/* ---- wal_file.c ---- */
/* Returns the name of the VFS of our connections; NULL without memory. */
const char *sqlite_vfs(void);

/* ---- sqlite_query.c ---- */
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

/* ---- append_table.c ---- */
/* Registers the append log's table under the name in the schema, for queries of the connection. The
 * schema must exist. */
int sqlite_add_append_log(struct sqlite_connection *connection) MUST_CHECK;

/* ---- sqlite_backup.c ---- */
int sqlite_backup(struct db *db, const char *path, struct error *error) MUST_CHECK;
int sqlite_vacant(const struct db_options *options, struct error *error) MUST_CHECK;
int sqlite_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
                   struct error *error) MUST_CHECK;
int sqlite_restore_page_chain(const struct db_options *options, const struct db_page_chain *chain,
                              const struct db_mark *mark, struct error *error) MUST_CHECK;
/* Returns whether the write-ahead log changed since *pages, its pages at the last call. */
bool sqlite_has_log_grown(struct sqlite_db *db, int *pages);

/* ---- page_backup.c ---- */
int sqlite_backup_pages(struct db *db, const struct db_page_target *target, struct db_pages *ret,
                        struct error *error) MUST_CHECK;

/* Returns ERR_REFUSED for a new file if a nonempty write-ahead log exists at its path. A rollback
 * journal is ignored: it exists only while a new file is created, and has no effect without the
 * file. */
int sqlite_refuse_orphaned_log(const struct db_options *options, struct error *error) MUST_CHECK;

#endif
