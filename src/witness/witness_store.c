#include "witness/witness_store.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/durable.h"
#include "base/file.h"

#define LOCK_FILE "witness.lock"
#define SCHEMA_VERSION 1
#define BUSY_TIMEOUT_MS 5000
#define FILE_SIZE_MAX ((uint64_t)1 << 40)

static const char schema[] =
	"CREATE TABLE witness (id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL,"
	" key BLOB NOT NULL) STRICT;"
	"CREATE TABLE logs (origin_hash BLOB PRIMARY KEY, origin TEXT NOT NULL, size INTEGER NOT NULL,"
	" root BLOB NOT NULL, text BLOB NOT NULL, signatures BLOB NOT NULL, cosignature BLOB NOT NULL,"
	" cosigned_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
	"PRAGMA user_version = 1;";

struct witness_store {
	sqlite3 *sqlite;
	int directory, lock; /* descriptors */
	bool failed;         /* a sync failed */
	sqlite3_stmt *find, *put;
};

static int fail(struct witness_store *store, int code, struct error *error)
{
	int result;
	switch (code & 0xff) {
	case SQLITE_BUSY: result = ERR_UNAVAILABLE; break;
	case SQLITE_NOMEM: result = ERR_NO_MEMORY; break;
	case SQLITE_FULL: result = ERR_NO_SPACE; break;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB: result = ERR_CORRUPT; break;
	default: result = ERR_IO;
	}
	return error_cause(error, result, WITNESS_STORE_FILE ": %s",
	                   store->sqlite ? sqlite3_errmsg(store->sqlite) : sqlite3_errstr(code));
}

static int prepare(struct witness_store *store, const char *sql, sqlite3_stmt **ret,
                   const char **ret_rest)
{
	return sqlite3_prepare_v3(store->sqlite, sql, -1, 0, ret, ret_rest);
}

/* Runs statements, and ignores their rows. */
static int run(struct witness_store *store, const char *sql, struct error *error)
{
	int code = SQLITE_DONE;
	while (*sql && (code == SQLITE_DONE || code == SQLITE_ROW)) {
		sqlite3_stmt *query = NULL;
		code = prepare(store, sql, &query, &sql);
		if (code == SQLITE_OK)
			code = sqlite3_step(query);
		sqlite3_finalize(query);
	}
	return code == SQLITE_DONE || code == SQLITE_ROW ? OK : fail(store, code, error);
}

/* ---- opening ---- */

static int read_version(struct witness_store *store, int *ret, struct error *error)
{
	sqlite3_stmt *query = NULL;
	int code = prepare(store, "PRAGMA user_version", &query, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(query);
	*ret = code == SQLITE_ROW ? sqlite3_column_int(query, 0) : 0;
	sqlite3_finalize(query);
	return code == SQLITE_ROW ? OK : fail(store, code, error);
}

/* Makes the tables of a new database. */
static int prepare_schema(struct witness_store *store, struct error *error)
{
	int version = 0;
	int result = witness_store_begin(store, error);
	if (!result)
		result = read_version(store, &version, error);
	if (!result && version > SCHEMA_VERSION)
		result = error_cause(error, ERR_REFUSED,
		                     WITNESS_STORE_FILE " is of a newer version of constancia");
	if (!result && version == 0)
		result = run(store, schema, error);
	if (!result)
		return witness_store_commit(store, error);
	witness_store_rollback(store);
	return result;
}

static int prepare_statement(struct witness_store *store, const char *sql, sqlite3_stmt **ret,
                             struct error *error)
{
	int code = sqlite3_prepare_v3(store->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
	return code == SQLITE_OK ? OK : fail(store, code, error);
}

/* Puts on disk what an earlier process could not sync. */
static int rewrite_files(const char *directory, struct error *error)
{
	static const char *const names[] = {WITNESS_STORE_FILE, WITNESS_STORE_FILE "-wal"};
	int result = OK;
	for (size_t i = 0; !result && i < sizeof names / sizeof *names; i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof path, "%s/%s", directory, names[i]);
		result = durable_rewrite(path, FILE_SIZE_MAX, error);
	}
	return result;
}

static int open_sqlite(struct witness_store *store, const char *directory, int flags,
                       struct error *error)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/" WITNESS_STORE_FILE, directory);
	store->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->directory < 0)
		return file_fail(error, "open", directory);
	int code = sqlite3_open_v2(path, &store->sqlite, SQLITE_OPEN_READWRITE | flags, NULL);
	if (code != SQLITE_OK)
		return fail(store, code, error);
	sqlite3_busy_timeout(store->sqlite, BUSY_TIMEOUT_MS);
	return OK;
}

/* With the lock, no other process changes the files that are rewritten. */
static int open_database(struct witness_store *store, const char *directory, struct error *error)
{
	char lock[PATH_MAX];
	snprintf(lock, sizeof lock, "%s/" LOCK_FILE, directory);
	int result = file_lock(lock, &store->lock, error);
	if (!result)
		result = rewrite_files(directory, error);
	if (!result)
		result = open_sqlite(store, directory, SQLITE_OPEN_CREATE, error);
	if (!result)
		result = run(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", error);
	return result ? result : prepare_schema(store, error);
}

static int prepare_statements(struct witness_store *store, struct error *error)
{
	int result = prepare_statement(store,
	                               "SELECT origin, size, root, text, signatures, cosignature,"
	                               " cosigned_at FROM logs WHERE origin_hash = ?1",
	                               &store->find, error);
	return result ? result
	              : prepare_statement(store,
	                                  "INSERT OR REPLACE INTO logs (origin_hash, origin, size,"
	                                  " root, text, signatures, cosignature, cosigned_at)"
	                                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	                                  &store->put, error);
}

static int open_with(int (*open_files)(struct witness_store *store, const char *directory,
                                       struct error *error),
                     const char *directory, struct witness_store **ret, struct error *error)
{
	struct witness_store *store = calloc(1, sizeof *store);
	if (!store)
		return ERR_NO_MEMORY;
	store->directory = store->lock = -1;
	int result = open_files(store, directory, error);
	if (!result)
		result = prepare_statements(store, error);
	if (result)
		witness_store_close(store);
	else
		*ret = store;
	return result;
}

int witness_store_open(const char *directory, struct witness_store **ret, struct error *error)
{
	return open_with(open_database, directory, ret, error);
}

static int open_existing(struct witness_store *store, const char *directory, struct error *error)
{
	int version;
	int result = open_sqlite(store, directory, 0, error);
	if (!result)
		result = read_version(store, &version, error);
	return !result && version == 0 ? ERR_NOT_FOUND : result;
}

int witness_store_open_to_read(const char *directory, struct witness_store **ret,
                               struct error *error)
{
	return open_with(open_existing, directory, ret, error);
}

void witness_store_close(struct witness_store *store)
{
	if (!store)
		return;
	sqlite3_finalize(store->find);
	sqlite3_finalize(store->put);
	sqlite3_close(store->sqlite);
	descriptor_close(&store->directory);
	descriptor_close(&store->lock);
	free(store);
}

/* ---- transactions ---- */

bool witness_store_has_failed(const struct witness_store *store)
{
	return store->failed;
}

int witness_store_begin(struct witness_store *store, struct error *error)
{
	if (store->failed)
		return error_cause(error, ERR_IO, WITNESS_STORE_FILE ": an earlier sync failed");
	return run(store, "BEGIN IMMEDIATE", error);
}

int witness_store_commit(struct witness_store *store, struct error *error)
{
	int result = run(store, "COMMIT", error);
	if (result)
		witness_store_rollback(store);
	/* See base/durable.h: a sync that succeeds is not enough. */
	else if (!durable_has_working_journal(store->directory))
		result = file_fail(error, "sync", WITNESS_STORE_FILE);
	store->failed = result == ERR_IO;
	return result;
}

void witness_store_rollback(struct witness_store *store)
{
	if (!sqlite3_get_autocommit(store->sqlite))
		(void)sqlite3_exec(store->sqlite, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- the identity ---- */

int witness_store_get_identity(struct witness_store *store, char name[NOTE_NAME_MAX + 1],
                               uint8_t public[NOTE_KEY_SIZE], struct error *error)
{
	sqlite3_stmt *query = NULL;
	int code = prepare(store, "SELECT name, key FROM witness", &query, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(query);
	int result = code == SQLITE_DONE ? ERR_NOT_FOUND : OK;
	if (code != SQLITE_ROW && code != SQLITE_DONE) {
		result = fail(store, code, error);
	} else if (code == SQLITE_ROW) {
		int size = sqlite3_column_bytes(query, 0);
		if (size > NOTE_NAME_MAX || sqlite3_column_bytes(query, 1) != NOTE_KEY_SIZE) {
			result = error_cause(error, ERR_CORRUPT, WITNESS_STORE_FILE ": not a witness");
		} else {
			memcpy(name, sqlite3_column_text(query, 0), (size_t)size + 1);
			memcpy(public, sqlite3_column_blob(query, 1), NOTE_KEY_SIZE);
		}
	}
	sqlite3_finalize(query);
	return result;
}

int witness_store_set_identity(struct witness_store *store, const struct note_key *key,
                               struct error *error)
{
	sqlite3_stmt *query = NULL;
	int result = witness_store_begin(store, error);
	if (result)
		return result;
	int code =
		prepare(store, "INSERT INTO witness (id, name, key) VALUES (1, ?1, ?2)", &query, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(query, 1, key->name, -1, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_bind_blob(query, 2, key->key, NOTE_KEY_SIZE, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_step(query);
	if (code == SQLITE_CONSTRAINT)
		result = error_cause(error, ERR_REFUSED, WITNESS_STORE_FILE " has a name and a key");
	else if (code != SQLITE_DONE)
		result = fail(store, code, error);
	sqlite3_finalize(query);
	if (!result)
		return witness_store_commit(store, error);
	witness_store_rollback(store);
	return result;
}

/* ---- the records ---- */

/* Copies a column into the arena. */
static bool copy_column(sqlite3_stmt *query, int column, struct arena *arena, struct slice *ret)
{
	const void *data = sqlite3_column_blob(query, column);
	size_t size = (size_t)sqlite3_column_bytes(query, column);
	ret->data = arena_copy(arena, data ? data : "", size);
	ret->size = size;
	return ret->data != NULL;
}

/* The columns for a reader of the table say again what the text says. */
static bool is_whole(sqlite3_stmt *query, const struct sha256 *origin_hash,
                     const struct checkpoint *checkpoint)
{
	const struct sha256 hash = sha256_of(checkpoint->origin, strlen(checkpoint->origin));
	return sha256_equal(&hash, origin_hash) &&
	       sqlite3_column_int64(query, 1) == (sqlite3_int64)checkpoint->size &&
	       sqlite3_column_bytes(query, 2) == SHA256_SIZE &&
	       memcmp(sqlite3_column_blob(query, 2), checkpoint->root.bytes, SHA256_SIZE) == 0;
}

static int read_record(sqlite3_stmt *query, const struct sha256 *origin_hash, struct arena *arena,
                       struct witness_record *ret, struct error *error)
{
	struct witness_record record = {.cosigned_at_s = sqlite3_column_int64(query, 6)};
	if (!copy_column(query, 3, arena, &record.text) ||
	    !copy_column(query, 4, arena, &record.signatures) ||
	    !copy_column(query, 5, arena, &record.cosignature))
		return ERR_NO_MEMORY;
	if (checkpoint_parse(record.text, &record.checkpoint, NULL) ||
	    !is_whole(query, origin_hash, &record.checkpoint))
		return error_cause(error, ERR_CORRUPT, WITNESS_STORE_FILE ": a log's row is damaged");
	*ret = record;
	return OK;
}

int witness_store_find(struct witness_store *store, const struct sha256 *origin_hash,
                       struct arena *arena, struct witness_record *ret, struct error *error)
{
	sqlite3_stmt *query = store->find;
	int result = ERR_NOT_FOUND;
	int code = sqlite3_bind_blob(query, 1, origin_hash->bytes, SHA256_SIZE, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_step(query);
	if (code == SQLITE_ROW)
		result = read_record(query, origin_hash, arena, ret, error);
	else if (code != SQLITE_DONE)
		result = fail(store, code, error);
	(void)sqlite3_reset(query);
	(void)sqlite3_clear_bindings(query);
	return result;
}

static int bind_slice(sqlite3_stmt *query, int number, struct slice value)
{
	return sqlite3_bind_blob(query, number, value.data, (int)value.size, SQLITE_STATIC);
}

static int bind_record(sqlite3_stmt *query, const struct witness_record *record,
                       const struct sha256 *origin_hash)
{
	const struct checkpoint *checkpoint = &record->checkpoint;
	const int codes[] = {
		sqlite3_bind_blob(query, 1, origin_hash->bytes, SHA256_SIZE, SQLITE_STATIC),
		sqlite3_bind_text(query, 2, checkpoint->origin, -1, SQLITE_STATIC),
		sqlite3_bind_int64(query, 3, (sqlite3_int64)checkpoint->size),
		sqlite3_bind_blob(query, 4, checkpoint->root.bytes, SHA256_SIZE, SQLITE_STATIC),
		bind_slice(query, 5, record->text),
		bind_slice(query, 6, record->signatures),
		bind_slice(query, 7, record->cosignature),
		sqlite3_bind_int64(query, 8, record->cosigned_at_s),
	};
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i] != SQLITE_OK)
			return codes[i];
	return SQLITE_OK;
}

int witness_store_put(struct witness_store *store, const struct witness_record *record,
                      struct error *error)
{
	sqlite3_stmt *query = store->put;
	const struct sha256 hash =
		sha256_of(record->checkpoint.origin, strlen(record->checkpoint.origin));
	assert(!sqlite3_get_autocommit(store->sqlite));
	int code = bind_record(query, record, &hash);
	if (code == SQLITE_OK)
		code = sqlite3_step(query);
	int result = code == SQLITE_DONE ? OK : fail(store, code, error);
	(void)sqlite3_reset(query);
	(void)sqlite3_clear_bindings(query);
	return result;
}
