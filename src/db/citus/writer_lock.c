/* The writer lock, which serializes the writers of all nodes.
 *
 * If tables are distributed, a backend that works for a writer may hang in a call to another server
 * and be neither cancellable nor killable. Its locks would be held as long. So the writer lock is
 * held by a separate connection, which uses only local data of the coordinator. If that connection
 * is lost the lock is released at once, but the transaction that it protects may still run. So that
 * transaction takes a second lock before it commits, and checks that the writer lock is still held.
 * The next holder of the writer lock waits for the second lock. */
#include <assert.h>

#include "base/clock.h"
#include "db/citus/internal.h"

/* An arbitrary number, which must never change. */
#define COMMIT_LOCK "4841921623072"
#define KEPT_US (10 * US_PER_SECOND) /* well below idle_in_transaction_session_timeout */
#define CANCEL_TRIES 10
#define CANCEL_PAUSE_US INT64_C(500000)

static const char await_commit[] =
	"SELECT pg_advisory_lock(" COMMIT_LOCK "), pg_advisory_unlock(" COMMIT_LOCK ")";
static const char lock_commit[] = "SELECT pg_advisory_xact_lock(" COMMIT_LOCK ")";
static const char holder_query[] = "SELECT pg_backend_pid()::bigint";
static const char check_query[] =
	"SELECT count(*)::bigint, pg_backend_pid()::bigint FROM pg_catalog.pg_locks"
	" WHERE locktype = 'advisory' AND granted AND pid = $1 AND objsubid = 1"
	" AND classid::bigint = " PG_WRITER_LOCK " >> 32 AND objid::bigint = " PG_WRITER_LOCK
	" & 4294967295";
/* A write on the coordinator, even of no rows, makes a commit with another server use two
 * phases. */
static const char commit_in_two_phases[] = "DELETE FROM leases WHERE name = ''";
/* Cancelling is safe: until this server has decided, nothing is committed, whatever the other
 * servers received. After the decision it is committed, and the other servers have it prepared,
 * also on their standbys. Between the decision and the end, this server waits for its own standby
 * (SyncRep), and that wait must not be cancelled. */
static const char cancel_query[] =
	"SELECT count(pg_cancel_backend(pid))::bigint FROM pg_catalog.pg_stat_activity"
	" WHERE pid = $1 AND wait_event IS DISTINCT FROM 'SyncRep'";

void citus_unlock_writer(struct citus_db *db)
{
	struct pg_connection *holder = db->lock_holder;
	if (holder->in_transaction)
		pg_roll_back(holder);
}

int citus_lock_writer(struct citus_db *db, struct error *error)
{
	struct pg_connection *holder = db->lock_holder;
	citus_unlock_writer(db);
	citus_reset(holder);
	int result = pg_connect(holder, error);
	if (result)
		return result;
	holder->in_transaction = true;
	pg_send_text(holder, NULL, "BEGIN");
	pg_send_text(holder, pg_note_latest_clock, db->pg.transaction_settings[holder->use]);
	pg_send_text(holder, NULL, pg_lock_writer);
	pg_send_text(holder, NULL, await_commit);
	struct db_query *query = pg_make_query(&holder->base, holder_query, false);
	if (pg_step(query))
		db->lock_process = pg_integer(query, 0);
	result = pg_end(query, error);
	db->lock_kept_us = clock_monotonic_us();
	if (result)
		citus_unlock_writer(db);
	return result;
}

void citus_keep_lock(struct citus_db *db, bool however_long)
{
	struct pg_connection *holder = db->lock_holder;
	int64_t now_us = clock_monotonic_us();
	if (!holder->in_transaction || (!however_long && now_us - db->lock_kept_us < KEPT_US))
		return;
	db->lock_kept_us = now_us;
	/* The loss of the connection is detected before the commit. */
	pg_send_text(holder, NULL,
	             however_long
	                 ? "SELECT set_config('idle_in_transaction_session_timeout', '0', true)"
	                 : holder_query);
	(void)!pg_collect(holder, NULL, pg_deadline(holder));
}

int citus_confirm_lock(struct pg_connection *writer, struct error *error)
{
	assert(writer->use == PG_WRITER);
	struct citus_db *db = citus_db(writer->base.db);
	if (db->pg.base.schema)
		pg_send_text(writer, NULL, commit_in_two_phases);
	pg_send_text(writer, NULL, lock_commit);
	struct db_query *query = pg_make_query(&writer->base, check_query, false);
	pg_bind_integer(query, db->lock_process);
	bool held = pg_step(query) && pg_integer(query, 0) == 1;
	citus_connection(writer)->process = held ? pg_integer(query, 1) : 0;
	int result = pg_end(query, error);
	if (!result && !held) {
		pg_fail(writer, ERR_UNAVAILABLE, "the writer lock was lost");
		result = db_report(&writer->base, error);
	}
	return result;
}

static void cancel(struct pg_connection *writer)
{
	struct pg_connection *holder = citus_db(writer->base.db)->lock_holder;
	citus_reset(holder);
	struct db_query *query = pg_make_query(&holder->base, cancel_query, false);
	pg_bind_integer(query, citus_connection(writer)->process);
	(void)pg_step(query);
	(void)!pg_end(query, NULL);
}

bool citus_cancel_commit(struct pg_connection *writer)
{
	bool answered = false;
	for (int tries = 0; tries < CANCEL_TRIES && writer->pg && !answered; tries++) {
		cancel(writer);
		writer->base.failure = OK;
		error_clear(&writer->base.error);
		answered = pg_collect(writer, NULL, clock_monotonic_us() + CANCEL_PAUSE_US);
	}
	return answered;
}
