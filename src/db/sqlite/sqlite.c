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

#include "base/durable.h"
#include "db/driver.h"
#include "db/sqlite/internal.h"

/* SQLite 3.40 can corrupt its log when two connections write or checkpoint at once: so exactly one
 * connection does both, the others are read-only, and automatic checkpoints are off.
 *
 * What the kernel shows of the files when they are opened may never have reached the disk: an
 * earlier process's sync failed, or the process was killed before it. So before anything is read
 * and believed, the log is written again and synced (make_files_durable), then moved into the file
 * and emptied (move_whole_log). In this order: SQLite relies on a page being in a synced log before
 * it is written into the file. */

#define READER_COUNT 8
#define QUERY_CACHE_MAX 512
#define PARAMETERS_MAX 31
#define WRITER_CACHE_KIB 16384
#define READER_CACHE_KIB 512
#define BUSY_PATIENCE_MS 5000
/* Of SQLite's own: other processes stay locked out while it is open, and the index of the log is in
 * memory: no file "-shm", which could be out of date, and whose pages need room on the disk when
 * they are touched. */
#define VFS "unix-excl"
/* The log is moved into the file once it has grown past this many pages of 4 KiB. */
#define LOG_PAGES_MAX 8192

struct sqlite_query {
	struct db_query base;
	const char *sql;
	sqlite3_stmt *statement;
	int bound;
	uint8_t places[PARAMETERS_MAX + 1]; /* $n -> SQLite's index, which goes by first appearance */
};

struct sqlite_connection {
	struct db_connection base;
	sqlite3 *sqlite;
	bool writer;
	bool in_transaction;
	struct sqlite_query queries[QUERY_CACHE_MAX]; /* open addressing by the text's address */
	struct sqlite_connection *next_free;
};

struct sqlite_db {
	struct db base;
	char path[PATH_MAX];
	int lock_file;
	pthread_mutex_t mutex;
	pthread_cond_t turn_changed;
	uint64_t next_ticket; /* the writer is given in order of arrival */
	uint64_t turn;
	pthread_cond_t reader_free;
	struct sqlite_connection writer;
	struct sqlite_connection readers[READER_COUNT];
	struct sqlite_connection *free_readers;
	int log_pages;   /* in the log after the last commit */
	int moved_pages; /* of them already moved into the file */
};

static struct sqlite_db *sqlite_db(struct db *db)
{
	return (struct sqlite_db *)db;
}

static struct sqlite_connection *sqlite_connection(struct db_connection *connection)
{
	return (struct sqlite_connection *)connection;
}

static struct sqlite_query *sqlite_query(struct db_query *query)
{
	return (struct sqlite_query *)query;
}

static struct sqlite_connection *connection_of(struct sqlite_query *query)
{
	return sqlite_connection(query->base.connection);
}

/* ---- errors ---- */

static int io_error(struct sqlite_connection *connection, int extended)
{
	int number = sqlite3_system_errno(connection->sqlite);
	if (extended == SQLITE_IOERR_NOMEM)
		return ERR_NO_MEMORY;
	/* A quota or a limit, for which SQLite knows no code of its own, and at a commit no errno; the
	 * same for a broken disk, as what was not written is not there. */
	if (extended == SQLITE_IOERR_WRITE)
		return ERR_NO_SPACE;
	return number == ENOSPC || number == EDQUOT || number == EFBIG ? ERR_NO_SPACE : ERR_IO;
}

/* SQLite calls it corruption, too, when the system cannot read a page: all reads end so once a file
 * system gave up. The file and its log remember. */
static bool read_failed(struct sqlite_connection *connection)
{
	int of_file = 0, of_log = 0;
	sqlite3_file *log = NULL;
	sqlite3_file_control(connection->sqlite, NULL, SQLITE_FCNTL_LAST_ERRNO, &of_file);
	sqlite3_file_control(connection->sqlite, NULL, SQLITE_FCNTL_JOURNAL_POINTER, &log);
	if (log && log->pMethods)
		log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &of_log);
	return of_file == EIO || of_log == EIO;
}

static int error_from_sqlite(struct sqlite_connection *connection, const char *what)
{
	int code = sqlite3_errcode(connection->sqlite) & 0xff; /* without the extension */
	int extended = sqlite3_extended_errcode(connection->sqlite);
	int result = ERR_UNAVAILABLE;
	if (code == SQLITE_FULL)
		result = ERR_NO_SPACE;
	else if (code == SQLITE_IOERR)
		result = io_error(connection, extended);
	else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
		result = read_failed(connection) ? ERR_IO : ERR_CORRUPT;
	else if (code == SQLITE_NOMEM)
		result = ERR_NO_MEMORY;
	else if (code == SQLITE_CONSTRAINT)
		result = ERR_REFUSED;
	else if (code == SQLITE_ERROR || code == SQLITE_MISUSE || code == SQLITE_RANGE)
		result = ERR_INTERNAL;
	if (code == SQLITE_IOERR &&
	    (extended == SQLITE_IOERR_FSYNC || extended == SQLITE_IOERR_DIR_FSYNC))
		atomic_store(&connection->base.db->poisoned, true);
	return error_cause(&connection->base.error, result, "%s: %s (%d, errno %d)", what,
	                   sqlite3_errmsg(connection->sqlite), extended,
	                   sqlite3_system_errno(connection->sqlite));
}

static int fail(struct sqlite_connection *connection, const char *what)
{
	if (connection->base.failure == OK)
		connection->base.failure = error_from_sqlite(connection, what);
	return connection->base.failure;
}

static int report(struct sqlite_connection *connection, struct error *error)
{
	return db_report(&connection->base, error);
}

/* ---- opening ---- */

static int run(struct sqlite_connection *connection, const char *sql)
{
	if (sqlite3_exec(connection->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK)
		return fail(connection, sql);
	return OK;
}

static int note_log_size(void *context, sqlite3 *sqlite, const char *name, int pages)
{
	struct sqlite_db *db = context;
	if (pages < db->log_pages)
		db->moved_pages = 0; /* the log began anew */
	db->log_pages = pages;
	return SQLITE_OK;
}

static int connection_open(struct sqlite_db *db, struct sqlite_connection *connection, bool writer,
                           struct error *error)
{
	connection->base.db = &db->base;
	connection->writer = writer;
	int flags = (writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY) |
	            SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
	if (sqlite3_open_v2(db->path, &connection->sqlite, flags, VFS) != SQLITE_OK) {
		fail(connection, "open");
		return report(connection, error);
	}
	sqlite3_extended_result_codes(connection->sqlite, 1);
	sqlite3_busy_timeout(connection->sqlite, BUSY_PATIENCE_MS);
	char pragmas[256];
	snprintf(pragmas, sizeof pragmas, "PRAGMA cache_size=-%d; PRAGMA temp_store=MEMORY;",
	         writer ? WRITER_CACHE_KIB : READER_CACHE_KIB);
	run(connection, pragmas);
	if (writer) {
		run(connection, "PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL;"
		                "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=67108864;");
		sqlite3_wal_hook(connection->sqlite, note_log_size, db);
	}
	return report(connection, error);
}

/* One process owns the file: a lock beside it, held as long as the process lives. */
static int take_lock(struct sqlite_db *db, struct error *error)
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

/* Of the file nothing need be written again: pages that a sync failed on are in the log still, and
 * are moved from there once more. It is synced for the sake of whoever copied it here. */
static int make_files_durable(struct sqlite_db *db, struct error *error)
{
	char log[SQLITE_PATH_MAX];
	snprintf(log, sizeof log, "%s" SQLITE_LOG_SUFFIX, db->path);
	int result = durable_rewrite(log, UINT64_MAX, error);
	return result == OK ? durable_rewrite(db->path, 0, error) : result;
}

/* The emptied log is synced too: an older one must not be played into a file that has moved on. */
static int move_whole_log(struct sqlite_db *db, struct error *error)
{
	if (sqlite3_wal_checkpoint_v2(db->writer.sqlite, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
	                              NULL) != SQLITE_OK) {
		fail(&db->writer, "moving the log into the file");
		return report(&db->writer, error);
	}
	char log[SQLITE_PATH_MAX];
	snprintf(log, sizeof log, "%s" SQLITE_LOG_SUFFIX, db->path);
	int result = durable_sync(log, error);
	return result == OK ? durable_sync_above(db->path, error) : result;
}

static int open_connections(struct sqlite_db *db, struct error *error)
{
	int result = make_files_durable(db, error);
	if (result == OK)
		result = connection_open(db, &db->writer, true, error);
	if (result == OK)
		result = move_whole_log(db, error);
	/* Our own lock is not known to other programs that open the file. */
	if (result != OK && (sqlite3_errcode(db->writer.sqlite) & 0xff) == SQLITE_BUSY)
		return error_set(error, ERR_UNAVAILABLE, MSG_STORE_LOCKED, db->path, NULL);
	for (int i = 0; i < READER_COUNT && result == OK; i++) {
		result = connection_open(db, &db->readers[i], false, error);
		db->readers[i].next_free = db->free_readers;
		db->free_readers = &db->readers[i];
	}
	return result;
}

static void sqlite_close(struct db *base);

static int sqlite_check_url(const char *url)
{
	size_t size = strlen(url) - strlen("sqlite:");
	return size == 0 || size > PATH_MAX - 16 ? ERR_VALIDATION : OK;
}

static int sqlite_open(const struct db_options *options, struct db **ret_db, struct error *error)
{
	const char *path = options->url + strlen("sqlite:");
	struct sqlite_db *db = calloc(1, sizeof *db);
	if (!db)
		return ERR_NO_MEMORY;
	db->base.driver = &sqlite_driver;
	snprintf(db->path, sizeof db->path, "%s", path);
	db->lock_file = -1;
	pthread_mutex_init(&db->mutex, NULL);
	pthread_cond_init(&db->turn_changed, NULL);
	pthread_cond_init(&db->reader_free, NULL);
	int result = OK;
	if (!options->create && access(db->path, F_OK) != 0)
		result = error_set(error, ERR_NOT_FOUND, MSG_STORE_ABSENT, db->path, NULL);
	if (result == OK && options->create)
		result = durable_make_parent(db->path, error);
	if (result == OK)
		result = take_lock(db, error);
	/* SQLite deletes a log whose file is gone, and with it what it holds. */
	if (result == OK && access(db->path, F_OK) != 0)
		result = sqlite_refuse_lone_log(options, error);
	mode_t mask = umask(0077);
	if (result == OK)
		result = open_connections(db, error);
	umask(mask);
	if (result != OK) {
		sqlite_close(&db->base);
		return result;
	}
	*ret_db = &db->base;
	return OK;
}

static void connection_close(struct sqlite_connection *connection)
{
	for (int i = 0; i < QUERY_CACHE_MAX; i++)
		sqlite3_finalize(connection->queries[i].statement);
	sqlite3_close(connection->sqlite);
}

static void sqlite_close(struct db *base)
{
	struct sqlite_db *db = sqlite_db(base);
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

static struct db_connection *sqlite_take_writer(struct db *base)
{
	struct sqlite_db *db = sqlite_db(base);
	pthread_mutex_lock(&db->mutex);
	uint64_t ticket = db->next_ticket++;
	while (ticket != db->turn)
		pthread_cond_wait(&db->turn_changed, &db->mutex);
	pthread_mutex_unlock(&db->mutex);
	return &db->writer.base;
}

static struct db_connection *sqlite_take_registrar(struct db *base, unsigned number)
{
	return sqlite_take_writer(base);
}

static struct db_connection *sqlite_take_reader(struct db *base)
{
	struct sqlite_db *db = sqlite_db(base);
	pthread_mutex_lock(&db->mutex);
	while (!db->free_readers)
		pthread_cond_wait(&db->reader_free, &db->mutex);
	struct sqlite_connection *connection = db->free_readers;
	db->free_readers = connection->next_free;
	pthread_mutex_unlock(&db->mutex);
	return &connection->base;
}

static void sqlite_give(struct db_connection *base)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	struct sqlite_db *db = sqlite_db(base->db);
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

static int sqlite_begin(struct db_connection *base, struct error *error)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	if (connection->writer && db_is_poisoned(base->db))
		return error_cause(error, ERR_UNAVAILABLE, "an earlier sync failed");
	struct db_query *begin =
		connection->writer ? db_query(base, "BEGIN IMMEDIATE") : db_query(base, "BEGIN");
	int result = db_execute(begin, NULL, error);
	connection->in_transaction = result == OK;
	return result;
}

static void sqlite_rollback(struct db_connection *base)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	if (connection->in_transaction && !sqlite3_get_autocommit(connection->sqlite))
		sqlite3_exec(connection->sqlite, "ROLLBACK", NULL, NULL, NULL);
	connection->in_transaction = false;
}

static int sqlite_commit(struct db_connection *base, struct error *error)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	if (base->failure != OK) {
		sqlite_rollback(base);
		return db_report(base, error);
	}
	int result = db_execute(db_query(base, "COMMIT"), NULL, error);
	if (result == OK) {
		connection->in_transaction = false;
		return OK;
	}
	/* A log that could not be written holds no commit mark: the transaction is not there. One that
	 * could not be synced, or not be taken note of in memory, may come back after a crash: nobody
	 * knows. */
	sqlite_rollback(base);
	if (result == ERR_IO)
		atomic_store(&base->db->poisoned, true);
	if (db_is_poisoned(base->db) || result == ERR_NO_MEMORY) {
		if (error)
			error->code = ERR_UNKNOWN_OUTCOME;
		return ERR_UNKNOWN_OUTCOME;
	}
	return result;
}

static int sqlite_run(struct db_connection *base, const char *sql, struct error *error)
{
	run(sqlite_connection(base), sql);
	return db_report(base, error);
}

/* ---- queries ---- */

/* `FOR UPDATE` is for engines where several connections write. */
static int prepare(struct sqlite_query *query)
{
	struct sqlite_connection *connection = connection_of(query);
	static const char suffix[] = " FOR UPDATE";
	size_t size = strlen(query->sql);
	if (size > sizeof suffix - 1 && strcmp(query->sql + size - (sizeof suffix - 1), suffix) == 0)
		size -= sizeof suffix - 1;
	if (sqlite3_prepare_v3(connection->sqlite, query->sql, (int)size, SQLITE_PREPARE_PERSISTENT,
	                       &query->statement, NULL) != SQLITE_OK)
		return fail(connection, query->sql);
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
static int next_place(struct sqlite_query *query)
{
	return query->bound < PARAMETERS_MAX ? query->places[++query->bound] : 0;
}

static struct db_query *sqlite_make_query(struct db_connection *base, const char *literal_sql,
                                          bool long_result)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	uintptr_t address = (uintptr_t)literal_sql;
	size_t at = (address >> 4 ^ address >> 12) % QUERY_CACHE_MAX;
	size_t tried = 0;
	while (connection->queries[at].sql && connection->queries[at].sql != literal_sql) {
		at = (at + 1) % QUERY_CACHE_MAX;
		if (++tried == QUERY_CACHE_MAX)
			abort(); /* more texts than the program has */
	}
	struct sqlite_query *query = &connection->queries[at];
	if (!query->sql) {
		query->base.connection = base;
		query->sql = literal_sql;
	}
	if (!query->statement)
		prepare(query);
	else
		sqlite3_reset(query->statement);
	query->bound = 0;
	return &query->base;
}

static void sqlite_bind_integer(struct db_query *base, int64_t value)
{
	struct sqlite_query *query = sqlite_query(base);
	sqlite3_bind_int64(query->statement, next_place(query), value);
}

static void sqlite_bind_text_slice(struct db_query *base, struct slice text)
{
	struct sqlite_query *query = sqlite_query(base);
	sqlite3_bind_text(query->statement, next_place(query), text.data ? text.data : "",
	                  (int)text.size, SQLITE_STATIC);
}

static void sqlite_bind_bytes(struct db_query *base, const void *data, size_t size)
{
	struct sqlite_query *query = sqlite_query(base);
	sqlite3_bind_blob(query->statement, next_place(query), data, (int)size, SQLITE_STATIC);
}

static void sqlite_bind_nothing(struct db_query *base)
{
	struct sqlite_query *query = sqlite_query(base);
	sqlite3_bind_null(query->statement, next_place(query));
}

static bool sqlite_step(struct db_query *base)
{
	struct sqlite_query *query = sqlite_query(base);
	if (base->connection->failure != OK || !query->statement)
		return false;
	int result = sqlite3_step(query->statement);
	if (result == SQLITE_ROW)
		return true;
	if (result != SQLITE_DONE)
		fail(connection_of(query), query->sql);
	return false;
}

static int sqlite_end(struct db_query *base, struct error *error)
{
	if (sqlite_query(base)->statement)
		sqlite3_reset(sqlite_query(base)->statement);
	return db_report(base->connection, error);
}

static int sqlite_execute(struct db_query *base, int64_t *ret_changes, struct error *error)
{
	while (sqlite_step(base))
		continue;
	if (ret_changes)
		*ret_changes = sqlite3_changes64(connection_of(sqlite_query(base))->sqlite);
	return sqlite_end(base, error);
}

static int64_t sqlite_integer(struct db_query *base, int column)
{
	return sqlite3_column_int64(sqlite_query(base)->statement, column);
}

static bool sqlite_is_null(struct db_query *base, int column)
{
	return sqlite3_column_type(sqlite_query(base)->statement, column) == SQLITE_NULL;
}

static struct slice sqlite_text(struct db_query *base, int column)
{
	sqlite3_stmt *statement = sqlite_query(base)->statement;
	const void *data = sqlite3_column_text(statement, column);
	return slice_make(data ? data : "", (size_t)sqlite3_column_bytes(statement, column));
}

static struct slice sqlite_blob(struct db_query *base, int column)
{
	sqlite3_stmt *statement = sqlite_query(base)->statement;
	const void *data = sqlite3_column_blob(statement, column);
	return slice_make(data ? data : "", (size_t)sqlite3_column_bytes(statement, column));
}

/* ---- housekeeping ---- */

static unsigned sqlite_registrar_count(const struct db *base)
{
	return 1;
}

static const char *sqlite_promise(const struct db *base)
{
	return "durable";
}

static int sqlite_ready(struct db *base, struct error *error)
{
	struct db_connection *reader = sqlite_take_reader(base);
	struct db_query *query = db_query(reader, "SELECT value FROM settings WHERE name = 'schema'");
	db_step(query);
	int result = db_end(query, error);
	db_give(reader);
	return result;
}

static int move_log(struct sqlite_db *db, struct error *error)
{
	if (db->log_pages - db->moved_pages < LOG_PAGES_MAX)
		return OK;
	int in_log = 0;
	int moved = 0;
	/* PASSIVE waits for nobody: it moves what no reader still needs, and the first commit that
	 * finds the log wholly moved begins it anew. */
	int result = sqlite3_wal_checkpoint_v2(db->writer.sqlite, NULL, SQLITE_CHECKPOINT_PASSIVE,
	                                       &in_log, &moved);
	if (result == SQLITE_OK || result == SQLITE_BUSY || result == SQLITE_LOCKED) {
		db->moved_pages = in_log;
		return OK;
	}
	error_from_sqlite(&db->writer, "checkpoint");
	if (error)
		*error = db->writer.base.error;
	return db->writer.base.error.code;
}

static int sqlite_maintain(struct db *base, struct error *error)
{
	struct db_connection *writer = sqlite_take_writer(base);
	int result = move_log(sqlite_db(base), error);
	db_give(writer);
	return result;
}

const struct db_driver sqlite_driver = {
	.check_url = sqlite_check_url,
	.open = sqlite_open,
	.close = sqlite_close,
	.registrar_count = sqlite_registrar_count,
	.promise = sqlite_promise,
	.ready = sqlite_ready,
	.take_writer = sqlite_take_writer,
	.take_registrar = sqlite_take_registrar,
	.take_reader = sqlite_take_reader,
	.give = sqlite_give,
	.begin = sqlite_begin,
	.commit = sqlite_commit,
	.rollback = sqlite_rollback,
	.run = sqlite_run,
	.query = sqlite_make_query,
	.bind_integer = sqlite_bind_integer,
	.bind_text = sqlite_bind_text_slice,
	.bind_blob = sqlite_bind_bytes,
	.bind_null = sqlite_bind_nothing,
	.step = sqlite_step,
	.execute = sqlite_execute,
	.end = sqlite_end,
	.integer = sqlite_integer,
	.is_null = sqlite_is_null,
	.text = sqlite_text,
	.blob = sqlite_blob,
	.table_query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1",
	.maintain = sqlite_maintain,
	.backup_name = "constancia.db",
	.backup = sqlite_backup,
	.vacant = sqlite_vacant,
	.restore = sqlite_restore,
};
