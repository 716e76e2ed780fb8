/* The SQLite driver: opening and closing of a database, and the table of the driver's functions. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/thread.h"
#include "base/tuned.h"
#include "db/sqlite/page_chain.h"
#include "db/sqlite/sqlite_internal.h"

#define OPENING_PATIENCE_US 5000

/* ---- opening ---- */

/* Takes the lock file next to the database, which ensures that only one process uses it. The lock
 * is held until the process ends. */
static int take_lock(struct sqlite_db *db, struct error *error)
{
	char path[PATH_MAX + 8];
	snprintf(path, sizeof path, "%s.lock", db->path);
	int result = file_lock(path, &db->lock_file, error);
	if (result == ERR_UNAVAILABLE)
		return error_set(error, result, MSG_STORE_LOCKED, db->path, NULL);
	return result;
}

static int open_connections(struct sqlite_db *db, struct error *error)
{
	int result = sqlite_make_files_durable(db, error);
	if (!result)
		result = sqlite_connection_open(db, &db->writer, SQLITE_WRITER, error);
	if (!result)
		result = sqlite_checkpoint_all(db, error);
	/* Other programs that open the file do not check our lock file. */
	if (result && (sqlite3_errcode(db->writer.sqlite) & 0xff) == SQLITE_BUSY)
		return error_set(error, ERR_UNAVAILABLE, MSG_STORE_LOCKED, db->path, NULL);
	const int count = (int)tuned_up_to("readers", READER_COUNT);
	for (int i = 0; i < count; i++) {
		db->readers[i].base.db = &db->base;
		db->readers[i].next_free = db->free_readers;
		db->free_readers = &db->readers[i];
	}
	return result ? result : sqlite_start_checkpointer(db, error);
}

static void sqlite_close(struct db *base)
{
	struct sqlite_db *db = sqlite_db(base);
	sqlite_stop_checkpointer(db);
	/* After a failed sync the only good copy of some pages is in the log, even if a later sync
	 * succeeds. */
	if (db_is_poisoned(base) && db->writer.sqlite)
		sqlite3_db_config(db->writer.sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	for (int i = 0; i < READER_COUNT; i++)
		sqlite_connection_close(&db->readers[i]);
	sqlite_connection_close(&db->writer);
	if (db->file >= 0)
		close(db->file); /* last, because closing it releases SQLite's locks */
	if (db->lock_file >= 0)
		close(db->lock_file);
	pthread_mutex_destroy(&db->mutex);
	pthread_mutex_destroy(&db->maintaining);
	pthread_cond_destroy(&db->turn_changed);
	pthread_cond_destroy(&db->reader_free);
	pthread_cond_destroy(&db->mover.changed);
	free(db);
}

static int sqlite_check_url(const char *url, struct error *error)
{
	size_t size = strlen(url) - strlen("sqlite:");
	return size == 0 || size > PATH_MAX - 16 ? ERR_VALIDATION : OK;
}

static int sqlite_open(const struct db_options *options, struct db **ret_db, struct error *error)
{
	const char *path = options->url + strlen("sqlite:");
	assert(strlen(path) <= PATH_MAX - 16); /* by db_check_url: else it would be cut */
	struct sqlite_db *db = calloc(1, sizeof *db);
	if (!db)
		return ERR_NO_MEMORY;
	db->base.driver = &sqlite_driver;
	snprintf(db->path, sizeof db->path, "%s", path);
	db->lock_file = db->file = -1;
	pthread_mutex_init(&db->mutex, NULL);
	pthread_mutex_init(&db->maintaining, NULL);
	pthread_cond_init(&db->turn_changed, NULL);
	pthread_cond_init(&db->reader_free, NULL);
	pthread_cond_init(&db->mover.changed, NULL);
	int result = OK;
	if (!options->create && access(db->path, F_OK) != 0)
		result = error_set(error, ERR_NOT_FOUND, MSG_STORE_ABSENT, db->path, NULL);
	if (!result && options->create)
		result = durable_make_parent(db->path, error);
	if (!result)
		result = take_lock(db, error);
	/* SQLite deletes a log whose database file is missing, with all its data. */
	if (!result && access(db->path, F_OK) != 0)
		result = sqlite_refuse_orphaned_log(options, error);
	mode_t mask = umask(0077);
	if (!result)
		result = open_connections(db, error);
	umask(mask);
	if (result) {
		sqlite_close(&db->base);
		return result;
	}
	*ret_db = &db->base;
	return OK;
}

/* ---- taking and giving back connections ---- */

static struct db_connection *take_turn(struct sqlite_db *db, bool registers)
{
	pthread_mutex_lock(&db->mutex);
	uint64_t ticket = db->next_ticket++;
	while (ticket != db->turn)
		pthread_cond_wait(&db->turn_changed, &db->mutex);
	pthread_mutex_unlock(&db->mutex);
	db->writer.registers = registers;
	return &db->writer.base;
}

static struct db_connection *sqlite_take_writer(struct db *base)
{
	return take_turn(sqlite_db(base), false);
}

static struct db_connection *sqlite_take_registrar(struct db *base, unsigned number,
                                                   int64_t account)
{
	return take_turn(sqlite_db(base), true);
}

/* Opening a connection and reading the schema takes as long as most reads, and each connection uses
 * 256 KiB more. So this waits for an open reader. Open readers are first in the list. */
static void await_open_reader(struct sqlite_db *db)
{
	const int64_t until_us = clock_monotonic_us() + OPENING_PATIENCE_US;
	while ((!db->free_readers || !db->free_readers->sqlite) &&
	       thread_wait_until(&db->reader_free, &db->mutex, until_us))
		;
}

static struct db_connection *sqlite_take_reader(struct db *base)
{
	struct sqlite_db *db = sqlite_db(base);
	pthread_mutex_lock(&db->mutex);
	if (db->readers_taken)
		await_open_reader(db);
	while (!db->free_readers)
		pthread_cond_wait(&db->reader_free, &db->mutex);
	struct sqlite_connection *connection = db->free_readers;
	db->free_readers = connection->next_free;
	db->readers_taken++;
	assert(db->readers_taken <= READER_COUNT && !connection->writer);
	pthread_mutex_unlock(&db->mutex);
	return &connection->base;
}

static void sqlite_give(struct db_connection *base)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	struct sqlite_db *db = sqlite_db(base->db);
	assert(!connection->in_transaction); /* the next holder would go on with it */
	pthread_mutex_lock(&db->mutex);
	if (connection->writer) {
		assert(db->turn < db->next_ticket);
		db->turn++;
		pthread_cond_broadcast(&db->turn_changed);
	} else {
		assert(db->readers_taken > 0);
		connection->next_free = db->free_readers;
		db->free_readers = connection;
		db->readers_taken--;
		pthread_cond_signal(&db->reader_free);
	}
	pthread_mutex_unlock(&db->mutex);
}

/* ---- the driver ---- */

/* The schema is checked before other threads get a connection. */
static int sqlite_schema_checked(struct db *base, struct error *error)
{
	struct sqlite_db *db = sqlite_db(base);
	db->has_schema = true;
	if (sqlite_add_append_log(&db->writer))
		return db_report(&db->writer.base, error);
	for (int i = 0; i < READER_COUNT; i++)
		if (db->readers[i].sqlite && sqlite_add_append_log(&db->readers[i]))
			return db_report(&db->readers[i].base, error);
	return OK;
}

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
	struct db_connection *reader = db_take_reader(base);
	struct db_query *query = db_query(reader, "SELECT value FROM settings WHERE name = 'schema'");
	db_step(query);
	int result = db_end(query, error);
	db_give(reader);
	return result;
}

const struct db_driver sqlite_driver = {
	.engine = "SQLite",
	.check_url = sqlite_check_url,
	.open = sqlite_open,
	.close = sqlite_close,
	.registrar_count = sqlite_registrar_count,
	.promise = sqlite_promise,
	.ready = sqlite_ready,
	.schema_checked = sqlite_schema_checked,
	.take_writer = sqlite_take_writer,
	.take_registrar = sqlite_take_registrar,
	.take_reader = sqlite_take_reader,
	.give = sqlite_give,
	.begin = sqlite_begin,
	.commit = sqlite_commit,
	.rollback = sqlite_rollback,
	.written = sqlite_written,
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
	.backup_pages = sqlite_backup_pages,
	.check_page_chain = page_chain_check,
	.restore_page_chain = sqlite_restore_page_chain,
};
