/* The log is moved into the file while the writer goes on, by a thread with a connection of its
 * own: that takes as long as the disk takes. What the writer adds meanwhile is little, and it moves
 * that itself between two batches: only a log that was moved to its end begins anew. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/thread.h"
#include "base/tuned.h"
#include "db/sqlite/internal.h"

#define MIB ((int64_t)1 << 20)
/* The sizes of struct log_sizes. */
#define MOVED_AT_LEAST (32 * MIB)
#define LEFT_MAX (1 * MIB)
#define REST_MAX (4 * MIB)
#define TRIED_AGAIN_AFTER (4 * MIB)
/* So long at most, then again behind its next batch: what is late is acknowledged all the same. */
#define WAITED_AT_MOST_US (US_PER_SECOND / 2)
/* A part of the file that is written out at a time. */
#define PART_SIZE (32 * MIB)

static int pages_of(const struct sqlite_db *db, int64_t bytes)
{
	return (int)(bytes / db->page_size);
}

static int note_log_size(void *context, sqlite3 *sqlite, const char *name, int pages)
{
	struct sqlite_db *db = context;
	pthread_mutex_lock(&db->mutex);
	if (pages < db->log_pages) {
		db->moved_pages = db->tried_pages = 0;
		db->log_turns++;
	}
	db->log_pages = pages;
	pthread_mutex_unlock(&db->mutex);
	return SQLITE_OK;
}

void sqlite_watch_log(struct sqlite_db *db)
{
	sqlite3_wal_hook(db->writer.sqlite, note_log_size, db);
}

/* PASSIVE waits for nobody: it moves what no reader still needs. The mutex is not held. */
static int move_log(struct sqlite_db *db, struct sqlite_connection *connection, struct error *error)
{
	int in_log = 0;
	int moved = 0;
	pthread_mutex_lock(&db->mutex);
	const unsigned turn = db->log_turns;
	pthread_mutex_unlock(&db->mutex);
	int result = sqlite3_wal_checkpoint_v2(connection->sqlite, NULL, SQLITE_CHECKPOINT_PASSIVE,
	                                       &in_log, &moved);
	if (result != SQLITE_OK && result != SQLITE_BUSY && result != SQLITE_LOCKED) {
		result = sqlite_note_error(connection, "checkpoint");
		if (error)
			*error = connection->base.error;
		return result;
	}
	pthread_mutex_lock(&db->mutex);
	if (turn == db->log_turns && moved > db->moved_pages)
		db->moved_pages = moved;
	pthread_mutex_unlock(&db->mutex);
	return sqlite_check_sync(db, error);
}

/* ---- the thread ---- */

/* What was moved goes to the disk part by part, so that a commit's sync waits for no more. Little
 * is left to the sync that SQLite does when the log has been moved to its end. */
static int write_out(struct sqlite_db *db, struct error *error)
{
	struct stat status;
	bool written = fstat(db->file, &status) == 0;
	for (off_t at = 0; written && at < status.st_size; at += PART_SIZE)
		written = durable_write_out(db->file, at, PART_SIZE);
	if (written)
		return OK;
	atomic_store(&db->base.poisoned, true);
	return file_fail(error, "writing out", db->path);
}

/* While the guard reads, what is moved is believed before the log can begin anew over it. */
static int move_guarded(struct sqlite_db *db, struct error *error)
{
	struct db_connection *guard = &db->mover.guard.base;
	guard->failure = OK;
	int result = sqlite_begin(guard, error);
	if (result)
		return result;
	struct db_query *query = db_query(guard, "PRAGMA schema_version");
	db_step(query);
	result = db_end(query, error);
	if (!result)
		result = move_log(db, &db->mover.connection, error);
	sqlite_rollback(guard);
	return result ? result : write_out(db, error);
}

/* Readers needed some of the pages that were there. */
static void try_again_soon(struct sqlite_db *db, int there)
{
	db->tried_pages =
		there - pages_of(db, db->log_sizes.moved_at_least - db->log_sizes.tried_again_after);
}

/* Again and again, since the writer adds less each time. Never of a log that is moved to its end:
 * the guard would read nothing of it, and so not keep it from beginning anew. */
static void move_most(struct sqlite_db *db)
{
	struct log_mover *mover = &db->mover;
	int there = db->moved_pages;
	while (!mover->result && !mover->stopping && db->moved_pages >= there &&
	       db->log_pages - db->moved_pages > pages_of(db, db->log_sizes.left_max)) {
		there = db->tried_pages = db->log_pages;
		pthread_cond_broadcast(&mover->changed);
		pthread_mutex_unlock(&db->mutex);
		struct error error = {0};
		int result = move_guarded(db, &error);
		pthread_mutex_lock(&db->mutex);
		mover->result = result;
		mover->error = error;
		if (result)
			db->tried_pages = db->moved_pages;
		pthread_cond_broadcast(&mover->changed);
	}
	mover->rest_left = !mover->result && db->moved_pages >= there;
	if (!mover->result && !mover->rest_left)
		try_again_soon(db, there);
}

static void *run_mover(void *argument)
{
	struct sqlite_db *db = argument;
	struct log_mover *mover = &db->mover;
	pthread_setname_np(pthread_self(), "log-mover");
	pthread_mutex_lock(&db->mutex);
	while (!mover->stopping) {
		if (mover->wanted) {
			move_most(db);
			mover->wanted = false;
			pthread_cond_broadcast(&mover->changed);
		} else {
			pthread_cond_wait(&mover->changed, &db->mutex);
		}
	}
	pthread_mutex_unlock(&db->mutex);
	return NULL;
}

int sqlite_start_mover(struct sqlite_db *db, struct error *error)
{
	struct log_mover *mover = &db->mover;
	db->log_sizes = (struct log_sizes){.moved_at_least = tuned("log_moved", MOVED_AT_LEAST),
	                                   .left_max = tuned("log_left", LEFT_MAX),
	                                   .rest_max = tuned("log_rest", REST_MAX),
	                                   .tried_again_after = tuned("log_tried", TRIED_AGAIN_AFTER)};
	int result = sqlite_connection_open(db, &mover->connection, SQLITE_MOVER, error);
	if (!result)
		result = sqlite_connection_open(db, &mover->guard, SQLITE_READER, error);
	if (result)
		return result;
	db->file = open(db->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (db->file < 0)
		return file_fail(error, "opening", db->path);
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	mover->started = pthread_create(&mover->thread, NULL, run_mover, db) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return mover->started
	           ? OK
	           : error_cause(error, ERR_NO_MEMORY, "the thread that moves the log cannot start");
}

void sqlite_stop_mover(struct sqlite_db *db)
{
	struct log_mover *mover = &db->mover;
	if (mover->started) {
		pthread_mutex_lock(&db->mutex);
		mover->stopping = true;
		pthread_cond_broadcast(&mover->changed);
		pthread_mutex_unlock(&db->mutex);
		pthread_join(mover->thread, NULL);
	}
	sqlite_connection_close(&mover->guard);
	sqlite_connection_close(&mover->connection);
}

/* ---- between two batches ---- */

/* How its last work ended, once. */
static int take_result(struct log_mover *mover, struct error *error)
{
	int result = mover->result;
	mover->result = OK;
	if (result && error)
		*error = mover->error;
	return result;
}

/* What the thread left and has come since; or, when that is much, the thread is to come again. The
 * mutex is held. True: the writer is to move it now. */
static bool take_rest(struct sqlite_db *db)
{
	struct log_mover *mover = &db->mover;
	const int rest = db->log_pages - db->moved_pages;
	if (!mover->rest_left || mover->wanted)
		return false;
	mover->rest_left = false;
	mover->wanted = rest > pages_of(db, db->log_sizes.rest_max);
	return rest > 0 && !mover->wanted;
}

/* The writer waits for who moves when it is far ahead; and, once the log is long, when half of what
 * is being moved has come meanwhile, or what is being moved is as little as the rest: where pages
 * are moved more slowly than they come, it would never be moved to its end. */
static bool too_far_ahead(const struct sqlite_db *db)
{
	const int come = db->log_pages - db->tried_pages;
	const int being_moved = db->tried_pages - db->moved_pages;
	return come > pages_of(db, 8 * db->log_sizes.moved_at_least) ||
	       (db->log_pages > pages_of(db, 4 * db->log_sizes.moved_at_least) &&
	        2 * come > being_moved - pages_of(db, db->log_sizes.rest_max));
}

static void ask_mover(struct sqlite_db *db)
{
	struct log_mover *mover = &db->mover;
	if (db->log_pages - db->tried_pages >= pages_of(db, db->log_sizes.moved_at_least) &&
	    !db_is_poisoned(&db->base))
		mover->wanted = true;
	if (mover->wanted)
		pthread_cond_broadcast(&mover->changed);
	const int64_t until_us = clock_monotonic_us() + WAITED_AT_MOST_US;
	while (mover->wanted && too_far_ahead(db) &&
	       thread_wait_until(&mover->changed, &db->mutex, until_us))
		;
}

static int maintain(struct sqlite_db *db, struct error *error)
{
	struct db *base = &db->base;
	pthread_mutex_lock(&db->mutex);
	int result = take_result(&db->mover, error);
	bool rest = !result && take_rest(db);
	if (!result && !rest) {
		ask_mover(db);
		rest = take_rest(db); /* nothing has come, if it was waited for */
	}
	pthread_mutex_unlock(&db->mutex);
	if (!rest)
		return result;
	struct db_connection *writer = db_take_writer(base);
	result = move_log(db, &db->writer, error);
	pthread_mutex_lock(&db->mutex);
	if (!result && db->moved_pages < db->log_pages)
		try_again_soon(db, db->log_pages);
	pthread_mutex_unlock(&db->mutex);
	db_give(writer);
	return result;
}

int sqlite_maintain(struct db *base, struct error *error)
{
	struct sqlite_db *db = sqlite_db(base);
	pthread_mutex_lock(&db->maintaining);
	int result = maintain(db, error);
	pthread_mutex_unlock(&db->maintaining);
	return result;
}
