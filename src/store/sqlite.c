#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* SQLite 3.40 can corrupt its log when two connections write or checkpoint at once: so exactly one
 * connection does both, the others are read-only, and automatic checkpoints are off. */

#define READER_COUNT 8
#define QUERY_CACHE_MAX 256
#define PARAMETERS_MAX 31
#define WRITER_CACHE_KIB 16384
#define READER_CACHE_KIB 512
/* The log is moved into the file once it has grown past this many pages of 4 KiB. */
#define LOG_PAGES_MAX 8192

struct db_query {
	struct db_connection *connection;
	const char *sql;
	sqlite3_stmt *statement;
	int bound;
	uint8_t places[PARAMETERS_MAX + 1]; /* $n -> SQLite's index, which goes by first appearance */
};

struct db_connection {
	struct db *db;
	sqlite3 *sqlite;
	bool writer;
	bool in_transaction;
	int failure;
	struct error error;
	struct db_query queries[QUERY_CACHE_MAX]; /* open addressing by the text's address */
	struct db_connection *next_free;
};

struct db {
	char path[PATH_MAX];
	int lock_file;
	pthread_mutex_t mutex;
	pthread_cond_t turn_changed;
	uint64_t next_ticket; /* the writer is given in order of arrival */
	uint64_t turn;
	pthread_cond_t reader_free;
	struct db_connection writer;
	struct db_connection readers[READER_COUNT];
	struct db_connection *free_readers;
	int log_pages;   /* in the log after the last commit */
	int moved_pages; /* of them already moved into the file */
	atomic_bool poisoned;
};

/* ---- errors ---- */

static int error_from_sqlite(struct db_connection *connection, const char *what)
{
	int code = sqlite3_errcode(connection->sqlite) & 0xff; /* without the extension */
	int extended = sqlite3_extended_errcode(connection->sqlite);
	int result = ERR_UNAVAILABLE;
	if (code == SQLITE_FULL)
		result = ERR_NO_SPACE;
	else if (code == SQLITE_IOERR)
		result = sqlite3_system_errno(connection->sqlite) == ENOSPC ? ERR_NO_SPACE : ERR_IO;
	else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
		result = ERR_CORRUPT;
	else if (code == SQLITE_NOMEM)
		result = ERR_NO_MEMORY;
	else if (code == SQLITE_CONSTRAINT)
		result = ERR_REFUSED;
	else if (code == SQLITE_ERROR || code == SQLITE_MISUSE || code == SQLITE_RANGE)
		result = ERR_INTERNAL;
	if (code == SQLITE_IOERR &&
	    (extended == SQLITE_IOERR_FSYNC || extended == SQLITE_IOERR_DIR_FSYNC))
		atomic_store(&connection->db->poisoned, true);
	return error_cause(&connection->error, result, "%s: %s (%d, errno %d)", what,
	                   sqlite3_errmsg(connection->sqlite), extended,
	                   sqlite3_system_errno(connection->sqlite));
}

static int fail(struct db_connection *connection, const char *what)
{
	if (connection->failure == OK)
		connection->failure = error_from_sqlite(connection, what);
	return connection->failure;
}

static int report(struct db_connection *connection, struct error *error)
{
	if (connection->failure != OK && error)
		*error = connection->error;
	return connection->failure;
}

/* ---- opening ---- */

static int run(struct db_connection *connection, const char *sql)
{
	if (sqlite3_exec(connection->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK)
		return fail(connection, sql);
	return OK;
}

static int note_log_size(void *context, sqlite3 *sqlite, const char *name, int pages)
{
	struct db *db = context;
	if (pages < db->log_pages)
		db->moved_pages = 0; /* the log began anew */
	db->log_pages = pages;
	return SQLITE_OK;
}

static int connection_open(struct db *db, struct db_connection *connection, bool writer,
                           struct error *error)
{
	connection->db = db;
	connection->writer = writer;
	int flags = (writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY) |
	            SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
	if (sqlite3_open_v2(db->path, &connection->sqlite, flags, NULL) != SQLITE_OK) {
		fail(connection, "open");
		return report(connection, error);
	}
	sqlite3_extended_result_codes(connection->sqlite, 1);
	char pragmas[256];
	snprintf(pragmas, sizeof pragmas, "PRAGMA cache_size=-%d; PRAGMA temp_store=MEMORY;",
	         writer ? WRITER_CACHE_KIB : READER_CACHE_KIB);
	run(connection, pragmas);
	if (writer) {
		run(connection, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
		                "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=67108864;");
		sqlite3_wal_hook(connection->sqlite, note_log_size, db);
	} else {
		/* A reader meets a busy database only while the writer recovers the log. */
		sqlite3_busy_timeout(connection->sqlite, 5000);
	}
	return report(connection, error);
}

static int make_directory(const char *path, struct error *error)
{
	char directory[PATH_MAX];
	snprintf(directory, sizeof directory, "%s", path);
	char *slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return OK;
	*slash = '\0';
	if (mkdir(directory, 0700) != 0 && errno != EEXIST)
		return error_cause(error, ERR_IO, "mkdir %s: %s", directory, strerror(errno));
	return OK;
}

static int sync_file(const char *path, struct error *error)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	int result = descriptor < 0 || fsync(descriptor) != 0 ? ERR_IO : OK;
	if (result != OK)
		error_cause(error, result, "sync of %s: %s", path, strerror(errno));
	if (descriptor >= 0)
		close(descriptor);
	return result;
}

static int sync_directory(const char *path, struct error *error)
{
	char directory[PATH_MAX];
	snprintf(directory, sizeof directory, "%s", path);
	char *slash = strrchr(directory, '/');
	if (!slash)
		return OK;
	*slash = '\0';
	return sync_file(slash == directory ? "/" : directory, error);
}

/* One process owns the file: a lock beside it, held as long as the process lives. */
static int take_lock(struct db *db, struct error *error)
{
	char path[PATH_MAX + 8];
	snprintf(path, sizeof path, "%s.lock", db->path);
	db->lock_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (db->lock_file < 0)
		return error_cause(error, ERR_IO, "open %s: %s", path, strerror(errno));
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (fcntl(db->lock_file, F_OFD_SETLK, &lock) != 0)
		return error_set(error, ERR_UNAVAILABLE, MSG_STORE_LOCKED, db->path, NULL);
	return OK;
}

static int open_connections(struct db *db, struct error *error)
{
	int result = connection_open(db, &db->writer, true, error);
	for (int i = 0; i < READER_COUNT && result == OK; i++) {
		result = connection_open(db, &db->readers[i], false, error);
		db->readers[i].next_free = db->free_readers;
		db->free_readers = &db->readers[i];
	}
	return result;
}

int db_open(const char *url, bool create, struct db **ret_db, struct error *error)
{
	if (strncmp(url, "sqlite:", 7) != 0 || url[7] == '\0' || strlen(url) > PATH_MAX - 16)
		return error_set(error, ERR_VALIDATION, MSG_STORE_URL, url, NULL);
	struct db *db = calloc(1, sizeof *db);
	if (!db)
		return ERR_NO_MEMORY;
	snprintf(db->path, sizeof db->path, "%s", url + 7);
	db->lock_file = -1;
	pthread_mutex_init(&db->mutex, NULL);
	pthread_cond_init(&db->turn_changed, NULL);
	pthread_cond_init(&db->reader_free, NULL);
	int result = OK;
	if (!create && access(db->path, F_OK) != 0)
		result = error_set(error, ERR_NOT_FOUND, MSG_STORE_ABSENT, db->path, NULL);
	if (result == OK && create)
		result = make_directory(db->path, error);
	if (result == OK)
		result = take_lock(db, error);
	mode_t mask = umask(0077);
	if (result == OK)
		result = open_connections(db, error);
	umask(mask);
	if (result == OK)
		result = sync_directory(db->path, error);
	if (result != OK) {
		db_close(db);
		return result;
	}
	*ret_db = db;
	return OK;
}

static void connection_close(struct db_connection *connection)
{
	for (int i = 0; i < QUERY_CACHE_MAX; i++)
		sqlite3_finalize(connection->queries[i].statement);
	sqlite3_close(connection->sqlite);
}

void db_close(struct db *db)
{
	if (!db)
		return;
	for (int i = 0; i < READER_COUNT; i++)
		connection_close(&db->readers[i]);
	connection_close(&db->writer);
	if (db->lock_file >= 0)
		close(db->lock_file);
	pthread_mutex_destroy(&db->mutex);
	pthread_cond_destroy(&db->turn_changed);
	pthread_cond_destroy(&db->reader_free);
	free(db);
}

/* ---- taking and giving ---- */

struct db_connection *db_take_writer(struct db *db)
{
	pthread_mutex_lock(&db->mutex);
	uint64_t ticket = db->next_ticket++;
	while (ticket != db->turn)
		pthread_cond_wait(&db->turn_changed, &db->mutex);
	pthread_mutex_unlock(&db->mutex);
	return &db->writer;
}

struct db_connection *db_take_reader(struct db *db)
{
	pthread_mutex_lock(&db->mutex);
	while (!db->free_readers)
		pthread_cond_wait(&db->reader_free, &db->mutex);
	struct db_connection *connection = db->free_readers;
	db->free_readers = connection->next_free;
	pthread_mutex_unlock(&db->mutex);
	return connection;
}

void db_give(struct db_connection *connection)
{
	if (!connection)
		return;
	if (connection->in_transaction)
		db_rollback(connection);
	connection->failure = OK;
	struct db *db = connection->db;
	pthread_mutex_lock(&db->mutex);
	if (connection->writer) {
		db->turn++;
		pthread_cond_broadcast(&db->turn_changed);
	} else {
		connection->next_free = db->free_readers;
		db->free_readers = connection;
		pthread_cond_signal(&db->reader_free);
	}
	pthread_mutex_unlock(&db->mutex);
}

/* ---- transactions ---- */

int db_begin(struct db_connection *connection, struct error *error)
{
	connection->failure = OK;
	error_clear(&connection->error);
	if (connection->writer && atomic_load(&connection->db->poisoned))
		return error_cause(error, ERR_UNAVAILABLE, "an earlier sync failed");
	struct db_query *begin =
	    connection->writer ? db_query(connection, "BEGIN IMMEDIATE") : db_query(connection, "BEGIN");
	int result = db_execute(begin, NULL, error);
	connection->in_transaction = result == OK;
	return result;
}

int db_commit(struct db_connection *connection, struct error *error)
{
	if (connection->failure != OK) {
		db_rollback(connection);
		return report(connection, error);
	}
	int result = db_execute(db_query(connection, "COMMIT"), NULL, error);
	if (result == OK) {
		connection->in_transaction = false;
		return OK;
	}
	/* A log that could not be written holds no commit mark: the transaction is not there. One that
	 * could not be synced may come back after a crash: nobody knows. */
	db_rollback(connection);
	if (result == ERR_IO)
		atomic_store(&connection->db->poisoned, true);
	if (db_is_poisoned(connection->db)) {
		if (error)
			error->code = ERR_UNKNOWN_OUTCOME;
		return ERR_UNKNOWN_OUTCOME;
	}
	return result;
}

void db_rollback(struct db_connection *connection)
{
	int failure = connection->failure;
	struct error error = connection->error;
	if (connection->in_transaction && !sqlite3_get_autocommit(connection->sqlite))
		sqlite3_exec(connection->sqlite, "ROLLBACK", NULL, NULL, NULL);
	connection->in_transaction = false;
	connection->failure = failure;
	connection->error = error;
}

int db_failure(const struct db_connection *connection)
{
	return connection->failure;
}

int db_run(struct db_connection *connection, const char *sql, struct error *error)
{
	run(connection, sql);
	return report(connection, error);
}

/* ---- queries ---- */

/* `FOR UPDATE` is for engines where several connections write. */
static int prepare(struct db_query *query)
{
	static const char suffix[] = " FOR UPDATE";
	size_t size = strlen(query->sql);
	if (size > sizeof suffix - 1 && strcmp(query->sql + size - (sizeof suffix - 1), suffix) == 0)
		size -= sizeof suffix - 1;
	if (sqlite3_prepare_v3(query->connection->sqlite, query->sql, (int)size,
	                       SQLITE_PREPARE_PERSISTENT, &query->statement, NULL) != SQLITE_OK)
		return fail(query->connection, query->sql);
	int count = sqlite3_bind_parameter_count(query->statement);
	for (int i = 1; i <= count; i++) {
		int number = atoi(sqlite3_bind_parameter_name(query->statement, i) + 1);
		if (number < 1 || number > PARAMETERS_MAX)
			abort(); /* the program's own text */
		query->places[number] = (uint8_t)i;
	}
	return OK;
}

/* The place of the next parameter; 0, which SQLite refuses, past the last. */
static int next_place(struct db_query *query)
{
	return query->bound < PARAMETERS_MAX ? query->places[++query->bound] : 0;
}

struct db_query *db_query(struct db_connection *connection, const char *literal_sql)
{
	uintptr_t address = (uintptr_t)literal_sql;
	size_t at = (address >> 4 ^ address >> 12) % QUERY_CACHE_MAX;
	size_t tried = 0;
	while (connection->queries[at].sql && connection->queries[at].sql != literal_sql) {
		at = (at + 1) % QUERY_CACHE_MAX;
		if (++tried == QUERY_CACHE_MAX)
			abort(); /* more texts than the program has */
	}
	struct db_query *query = &connection->queries[at];
	if (!query->sql) {
		query->connection = connection;
		query->sql = literal_sql;
	}
	if (!query->statement)
		prepare(query);
	else
		sqlite3_reset(query->statement);
	query->bound = 0;
	return query;
}

void db_bind_integer(struct db_query *query, int64_t value)
{
	sqlite3_bind_int64(query->statement, next_place(query), value);
}

void db_bind_text(struct db_query *query, struct slice text)
{
	sqlite3_bind_text(query->statement, next_place(query), text.data ? text.data : "",
	                  (int)text.size, SQLITE_STATIC);
}

void db_bind_string(struct db_query *query, const char *text)
{
	if (text)
		db_bind_text(query, slice_of(text));
	else
		db_bind_null(query);
}

void db_bind_blob(struct db_query *query, const void *data, size_t size)
{
	sqlite3_bind_blob(query->statement, next_place(query), data, (int)size, SQLITE_STATIC);
}

void db_bind_null(struct db_query *query)
{
	sqlite3_bind_null(query->statement, next_place(query));
}

bool db_step(struct db_query *query)
{
	if (query->connection->failure != OK || !query->statement)
		return false;
	int result = sqlite3_step(query->statement);
	if (result == SQLITE_ROW)
		return true;
	if (result != SQLITE_DONE)
		fail(query->connection, query->sql);
	return false;
}

int db_end(struct db_query *query, struct error *error)
{
	struct db_connection *connection = query->connection;
	if (query->statement)
		sqlite3_reset(query->statement);
	return report(connection, error);
}

int db_execute(struct db_query *query, int64_t *ret_changes, struct error *error)
{
	while (db_step(query))
		continue;
	if (ret_changes)
		*ret_changes = sqlite3_changes64(query->connection->sqlite);
	return db_end(query, error);
}

int64_t db_integer(struct db_query *query, int column)
{
	return sqlite3_column_int64(query->statement, column);
}

bool db_is_null(struct db_query *query, int column)
{
	return sqlite3_column_type(query->statement, column) == SQLITE_NULL;
}

struct slice db_text(struct db_query *query, int column)
{
	const void *data = sqlite3_column_text(query->statement, column);
	return slice_make(data ? data : "", (size_t)sqlite3_column_bytes(query->statement, column));
}

struct slice db_blob(struct db_query *query, int column)
{
	const void *data = sqlite3_column_blob(query->statement, column);
	return slice_make(data ? data : "", (size_t)sqlite3_column_bytes(query->statement, column));
}

/* ---- housekeeping ---- */

int db_maintain(struct db_connection *writer, struct error *error)
{
	struct db *db = writer->db;
	if (db->log_pages - db->moved_pages < LOG_PAGES_MAX)
		return OK;
	int in_log = 0;
	int moved = 0;
	/* PASSIVE waits for nobody: it moves what no reader still needs, and the first commit that
	 * finds the log wholly moved begins it anew. */
	int result = sqlite3_wal_checkpoint_v2(writer->sqlite, NULL, SQLITE_CHECKPOINT_PASSIVE,
	                                       &in_log, &moved);
	if (result == SQLITE_OK || result == SQLITE_BUSY || result == SQLITE_LOCKED) {
		db->moved_pages = in_log;
		return OK;
	}
	error_from_sqlite(writer, "checkpoint");
	if (error)
		*error = writer->error;
	return writer->error.code;
}

int db_backup(struct db *db, const char *path, struct error *error)
{
	struct db_connection *reader = db_take_reader(db);
	struct db_query *query = db_query(reader, "VACUUM INTO $1");
	db_bind_string(query, path);
	int result = db_execute(query, NULL, error);
	db_give(reader);
	if (result == OK)
		result = sync_file(path, error);
	return result == OK ? sync_directory(path, error) : result;
}

bool db_is_poisoned(const struct db *db)
{
	return atomic_load(&db->poisoned);
}
