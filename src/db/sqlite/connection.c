/* Connections: opening, transactions, and mapping of SQLite's errors. */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/tuned.h"
#include "db/sqlite/sqlite_internal.h"

#define WRITER_CACHE_KIB 4096
#define READER_CACHE_KIB 512
#define BUSY_PATIENCE_MS 5000
/* Page size of a new file; an existing file keeps its own. A batch changes little on the last pages
 * of a dozen tables, and each page is written to the log completely. */
#define NEW_PAGE_SIZE 2048
#define PAGES_MAX "4294967294" /* maximum of SQLite: 8 TiB with this page size */

/* ---- errors ---- */

static int io_error(struct sqlite_connection *connection, int extended)
{
	int number = sqlite3_system_errno(connection->sqlite);
	if (extended == SQLITE_IOERR_NOMEM)
		return ERR_NO_MEMORY;
	/* A quota or a limit: SQLite has no code for it, and no errno after a commit. A broken disk
	 * gives the same code; either way the data was not written. */
	if (extended == SQLITE_IOERR_WRITE)
		return ERR_NO_SPACE;
	return number == ENOSPC || number == EDQUOT || number == EFBIG ? ERR_NO_SPACE : ERR_IO;
}

/* SQLite also reports corruption if the system cannot read a page, as all reads fail after the file
 * system has shut down. The files' last errno shows this. */
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

int sqlite_note_error(struct sqlite_connection *connection, const char *what)
{
	int code = sqlite3_errcode(connection->sqlite) & 0xff; /* primary result code */
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
	/* The statement is last because it may be long. */
	return error_cause(&connection->base.error, result, "%s (%d, errno %d): %s",
	                   sqlite3_errmsg(connection->sqlite), extended,
	                   sqlite3_system_errno(connection->sqlite), what);
}

int sqlite_fail(struct sqlite_connection *connection, const char *what)
{
	if (!connection->base.failure)
		connection->base.failure = sqlite_note_error(connection, what);
	return connection->base.failure;
}

/* ---- opening ---- */

static int run(struct sqlite_connection *connection, const char *sql)
{
	if (sqlite3_exec(connection->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK)
		return sqlite_fail(connection, sql);
	return OK;
}

static int flags_of(enum sqlite_role role)
{
	switch (role) {
	case SQLITE_WRITER: return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	case SQLITE_CHECKPOINTER: return SQLITE_OPEN_READWRITE;
	case SQLITE_READER: break;
	}
	return SQLITE_OPEN_READONLY;
}

/* Overwrites freed pages with zeros, except for registrars. The pages that a registrar frees have
 * entries of client_refs that were moved elsewhere, not data that must be erased. */
static int overwrite_freed(struct sqlite_connection *writer, bool overwrite)
{
	assert(writer->writer);
	if (writer->overwrites == overwrite)
		return OK;
	int result = run(writer, overwrite ? "PRAGMA secure_delete=ON" : "PRAGMA secure_delete=FAST");
	if (!result)
		writer->overwrites = overwrite;
	return result;
}

static void open_writer(struct sqlite_db *db)
{
	struct sqlite_connection *writer = &db->writer;
	char pragmas[256];
	snprintf(pragmas, sizeof pragmas,
	         "PRAGMA page_size=%d; PRAGMA max_page_count=" PAGES_MAX ";"
	         "PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;"
	         "PRAGMA journal_size_limit=67108864;",
	         (int)tuned("page_size", NEW_PAGE_SIZE));
	if (run(writer, pragmas))
		return;
	overwrite_freed(writer, true);
	struct db_query *query = db_query(&writer->base, "PRAGMA page_size");
	db->page_size = db_step(query) ? db_integer(query, 0) : 0;
	if (!db_end(query, NULL)) /* the connection keeps the error */
		sqlite_count_log_pages(db);
}

int sqlite_connection_open(struct sqlite_db *db, struct sqlite_connection *connection,
                           enum sqlite_role role, struct error *error)
{
	assert(!connection->sqlite && !connection->in_transaction);
	connection->base.db = &db->base;
	connection->writer = role == SQLITE_WRITER;
	int flags = flags_of(role) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
	const char *vfs = sqlite_vfs();
	if (!vfs)
		return error_cause(error, ERR_NO_MEMORY, "SQLite cannot be initialized");
	if (sqlite3_open_v2(db->path, &connection->sqlite, flags, vfs) != SQLITE_OK) {
		sqlite_fail(connection, "open");
		return db_report(&connection->base, error);
	}
	sqlite3_extended_result_codes(connection->sqlite, 1);
	sqlite3_busy_timeout(connection->sqlite, BUSY_PATIENCE_MS);
	char pragmas[256];
	snprintf(pragmas, sizeof pragmas, "PRAGMA cache_size=-%d; PRAGMA temp_store=MEMORY;",
	         role == SQLITE_WRITER ? WRITER_CACHE_KIB : READER_CACHE_KIB);
	run(connection, pragmas);
	/* Prepared in advance, because preparing it needs memory. */
	if (sqlite3_prepare_v3(connection->sqlite, "ROLLBACK", -1, SQLITE_PREPARE_PERSISTENT,
	                       &connection->rollback, NULL) != SQLITE_OK)
		sqlite_fail(connection, "ROLLBACK");
	if (role == SQLITE_WRITER) {
		open_writer(db);
	} else if (role == SQLITE_CHECKPOINTER) {
		/* Reading opens the log. */
		run(connection, "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
		                "PRAGMA schema_version;");
	}
	return db_report(&connection->base, error);
}

static void close_handle(struct sqlite_connection *connection)
{
	sqlite3_finalize(connection->rollback);
	sqlite3_close(connection->sqlite);
	connection->rollback = NULL;
	connection->sqlite = NULL;
}

int sqlite_reader_open(struct sqlite_connection *connection)
{
	assert(!connection->writer && !connection->sqlite);
	struct sqlite_db *db = sqlite_db(connection->base.db);
	int result = connection->base.failure;
	if (!result)
		result = sqlite_connection_open(db, connection, SQLITE_READER, NULL);
	if (!result && db->has_schema)
		result = sqlite_add_append_log(connection);
	if (result)
		close_handle(connection);
	return result;
}

void sqlite_connection_close(struct sqlite_connection *connection)
{
	for (int i = 0; i < QUERY_CACHE_MAX; i++)
		sqlite3_finalize(connection->queries[i].statement);
	close_handle(connection);
}

/* ---- transactions ---- */

/* Rolls back what is open. Returns whether nothing is open any more. */
static bool end_transaction(struct sqlite_connection *connection)
{
	if (!connection->sqlite || sqlite3_get_autocommit(connection->sqlite))
		return true;
	sqlite3_step(connection->rollback);
	sqlite3_reset(connection->rollback);
	return sqlite3_get_autocommit(connection->sqlite);
}

int sqlite_begin(struct db_connection *base, struct error *error)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	assert(!connection->in_transaction); /* else the first one would go on */
	if (connection->writer && db_is_poisoned(base->db))
		return error_cause(error, ERR_UNAVAILABLE, "an earlier sync failed");
	if (!end_transaction(connection))
		return error_cause(error, ERR_UNAVAILABLE, "an earlier rollback failed");
	if (connection->writer && overwrite_freed(connection, !connection->registers))
		return db_report(base, error);
	struct db_query *begin =
		connection->writer ? db_query(base, "BEGIN IMMEDIATE") : db_query(base, "BEGIN");
	int result = db_execute(begin, NULL, error);
	connection->in_transaction = !result;
	return result;
}

void sqlite_rollback(struct db_connection *base)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	/* One that fails is repeated before the next transaction. */
	(void)end_transaction(connection);
	connection->in_transaction = false;
}

int sqlite_written(struct db_connection *base, struct db_written *ret, struct error *error)
{
	assert(sqlite_connection(base)->writer && sqlite_connection(base)->in_transaction);
	struct db_query *query = db_query(base, "PRAGMA data_version");
	ret->elsewhere = db_step(query) ? db_integer(query, 0) : 0;
	ret->here = sqlite3_total_changes64(sqlite_connection(base)->sqlite);
	return db_end(query, error);
}

int sqlite_commit(struct db_connection *base, struct error *error)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	if (base->failure) {
		sqlite_rollback(base);
		return db_report(base, error);
	}
	assert(connection->in_transaction);
	int result = db_execute(db_query(base, "COMMIT"), NULL, error);
	if (!result && connection->writer)
		result = sqlite_check_sync(sqlite_db(base->db), error);
	if (!result) {
		connection->in_transaction = false;
		return OK;
	}
	/* If the log could not be written, it has no commit mark, and the transaction does not exist.
	 * If it could not be synced, or the index in memory not updated, the transaction may reappear
	 * after a crash, so the outcome is unknown. */
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

int sqlite_run(struct db_connection *base, const char *sql, struct error *error)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	if (connection->sqlite || !sqlite_reader_open(connection))
		run(connection, sql);
	return db_report(base, error);
}
