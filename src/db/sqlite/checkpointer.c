/* Checkpointer: checkpoints the write-ahead log concurrently with the writer, on its own thread and
 * connection, at the speed of the disk. The writer itself checkpoints the few pages that it added
 * meanwhile, between two batches, because the log is reset only after a complete checkpoint. */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/thread.h"
#include "base/tuned.h"
#include "db/sqlite/sqlite_internal.h"

#define MIB ((int64_t)1 << 20)
/* Defaults of struct log_sizes. */
#define MOVED_AT_LEAST (32 * MIB)
#define LEFT_MAX (1 * MIB)
#define REST_MAX (4 * MIB)
#define TRIED_AGAIN_AFTER (4 * MIB)
/* Maximum wait; the writer waits again after its next batch. Late batches are still
 * acknowledged. */
#define WAITED_AT_MOST_US (US_PER_SECOND / 2)
/* Bytes of the database file to write out at a time. */
#define PART_SIZE (32 * MIB)

static int pages_of(const struct sqlite_db *db, int64_t bytes)
{
	assert(db->page_size > 0);
	return (int)(bytes / db->page_size);
}

static int note_log_size(void *context, sqlite3 *sqlite, const char *name, int pages)
{
	struct sqlite_db *db = context;
	pthread_mutex_lock(&db->mutex);
	if (pages < db->log_pages) {
		db->moved_pages = db->tried_pages = 0;
		db->log_resets++;
	}
	db->log_pages = pages;
	pthread_mutex_unlock(&db->mutex);
	return SQLITE_OK;
}

void sqlite_count_log_pages(struct sqlite_db *db)
{
	sqlite3_wal_hook(db->writer.sqlite, note_log_size, db);
}

/* PASSIVE blocks on no reader and checkpoints only pages that no reader needs. Called without the
 * mutex. */
static int checkpoint_log(struct sqlite_db *db, struct sqlite_connection *connection,
                          struct error *error)
{
	int in_log = 0;
	int moved = 0;
	pthread_mutex_lock(&db->mutex);
	const unsigned turn = db->log_resets;
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
	if (turn == db->log_resets && moved > db->moved_pages)
		db->moved_pages = moved;
	pthread_mutex_unlock(&db->mutex);
	return sqlite_check_sync(db, error);
}

/* ---- the thread ---- */

/* Writes checkpointed pages to disk in parts, so that the sync of a commit waits for one part at
 * most. SQLite's own sync at the end of a complete checkpoint then has little to write. */
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

/* Checkpoints while the guard reads, so that the sync is verified before a log reset can overwrite
 * the checkpointed pages. */
static int checkpoint_guarded(struct sqlite_db *db, struct error *error)
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
		result = checkpoint_log(db, &db->mover.connection, error);
	sqlite_rollback(guard);
	return result ? result : write_out(db, error);
}

/* Schedules an early retry, because readers needed some of the pages. */
static void schedule_retry(struct sqlite_db *db, int there)
{
	assert(there >= 0);
	db->tried_pages =
		there - pages_of(db, db->log_sizes.moved_at_least - db->log_sizes.tried_again_after);
}

/* Repeats, because the writer adds fewer pages each time. Never starts on a fully checkpointed log:
 * the guard would not read from it, and so would not prevent a reset. */
static void checkpoint_most(struct sqlite_db *db)
{
	struct log_mover *mover = &db->mover;
	int there = db->moved_pages;
	while (!mover->result && !mover->stopping && db->moved_pages >= there &&
	       db->log_pages - db->moved_pages > pages_of(db, db->log_sizes.left_max)) {
		there = db->tried_pages = db->log_pages;
		pthread_cond_broadcast(&mover->changed);
		pthread_mutex_unlock(&db->mutex);
		struct error error = {0};
		int result = checkpoint_guarded(db, &error);
		pthread_mutex_lock(&db->mutex);
		mover->result = result;
		mover->error = error;
		if (result)
			db->tried_pages = db->moved_pages;
		pthread_cond_broadcast(&mover->changed);
	}
	mover->rest_left = !mover->result && db->moved_pages >= there;
	if (!mover->result && !mover->rest_left)
		schedule_retry(db, there);
}

static void *run_checkpointer(void *argument)
{
	struct sqlite_db *db = argument;
	struct log_mover *mover = &db->mover;
	pthread_setname_np(pthread_self(), "log-mover");
	pthread_mutex_lock(&db->mutex);
	while (!mover->stopping) {
		if (mover->wanted) {
			checkpoint_most(db);
			mover->wanted = false;
			pthread_cond_broadcast(&mover->changed);
		} else {
			pthread_cond_wait(&mover->changed, &db->mutex);
		}
	}
	pthread_mutex_unlock(&db->mutex);
	return NULL;
}

int sqlite_start_checkpointer(struct sqlite_db *db, struct error *error)
{
	struct log_mover *mover = &db->mover;
	db->log_sizes = (struct log_sizes){.moved_at_least = tuned("log_moved", MOVED_AT_LEAST),
	                                   .left_max = tuned("log_left", LEFT_MAX),
	                                   .rest_max = tuned("log_rest", REST_MAX),
	                                   .tried_again_after = tuned("log_tried", TRIED_AGAIN_AFTER)};
	int result = sqlite_connection_open(db, &mover->connection, SQLITE_CHECKPOINTER, error);
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
	mover->started = pthread_create(&mover->thread, NULL, run_checkpointer, db) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return mover->started
	           ? OK
	           : error_cause(error, ERR_NO_MEMORY, "cannot start the checkpointer thread");
}

void sqlite_stop_checkpointer(struct sqlite_db *db)
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

/* Takes the result of the last checkpoint; it is returned once. */
static int take_result(struct log_mover *mover, struct error *error)
{
	int result = mover->result;
	mover->result = OK;
	if (result && error)
		*error = mover->error;
	return result;
}

/* Decides about the pages that the thread left or that were added since: if there are many,
 * requests the thread again. Called with the mutex held. Returns true if the writer must checkpoint
 * them now. */
static bool take_remainder(struct sqlite_db *db)
{
	struct log_mover *mover = &db->mover;
	const int rest = db->log_pages - db->moved_pages;
	if (!mover->rest_left || mover->wanted)
		return false;
	mover->rest_left = false;
	mover->wanted = rest > pages_of(db, db->log_sizes.rest_max);
	return rest > 0 && !mover->wanted;
}

/* Back-pressure: returns whether the writer must block until the checkpointer catches up. It must
 * if it is far ahead. It must also if the log is long, and either half as many pages were added as
 * are being checkpointed, or few are being checkpointed. Otherwise, if pages are added faster than
 * checkpointed, a checkpoint would never be complete. */
static bool must_throttle(const struct sqlite_db *db)
{
	const int come = db->log_pages - db->tried_pages;
	const int being_moved = db->tried_pages - db->moved_pages;
	return come > pages_of(db, 8 * db->log_sizes.moved_at_least) ||
	       (db->log_pages > pages_of(db, 4 * db->log_sizes.moved_at_least) &&
	        2 * come > being_moved - pages_of(db, db->log_sizes.rest_max));
}

static void request_checkpoint(struct sqlite_db *db)
{
	struct log_mover *mover = &db->mover;
	if (db->log_pages - db->tried_pages >= pages_of(db, db->log_sizes.moved_at_least) &&
	    !db_is_poisoned(&db->base))
		mover->wanted = true;
	if (mover->wanted)
		pthread_cond_broadcast(&mover->changed);
	const int64_t until_us = clock_monotonic_us() + WAITED_AT_MOST_US;
	while (mover->wanted && must_throttle(db) &&
	       thread_wait_until(&mover->changed, &db->mutex, until_us))
		;
}

static int maintain(struct sqlite_db *db, struct error *error)
{
	struct db *base = &db->base;
	pthread_mutex_lock(&db->mutex);
	int result = take_result(&db->mover, error);
	bool rest = !result && take_remainder(db);
	if (!result && !rest) {
		request_checkpoint(db);
		rest = take_remainder(db); /* no pages were added if this function waited */
	}
	pthread_mutex_unlock(&db->mutex);
	if (!rest)
		return result;
	struct db_connection *writer = db_take_writer(base);
	result = checkpoint_log(db, &db->writer, error);
	pthread_mutex_lock(&db->mutex);
	if (!result && db->moved_pages < db->log_pages)
		schedule_retry(db, db->log_pages);
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
