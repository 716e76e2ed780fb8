/* The writer lock, which serializes the writers of all nodes.
 *
 * If tables are distributed, a backend that works for a writer may hang in a call to another server
 * and be neither cancellable nor killable. Its locks would be held as long. So the writer lock is
 * held by a separate connection, which uses only local data of the coordinator. If that connection
 * is lost the lock is released at once, but the transaction that it protects may still run. So that
 * transaction takes a second lock, shared, before it commits, and checks that the writer lock is
 * still held. The next holder of the writer lock waits until the holders of the second lock have
 * committed or rolled back on the coordinator. It does not wait for their locks: after that moment
 * a backend may hang as long as another server does, in COMMIT PREPARED or ROLLBACK PREPARED. */
#include <assert.h>
#include <time.h>

#include "base/clock.h"
#include "db/citus/internal.h"

/* An arbitrary number, which must never change. */
#define COMMIT_LOCK "4841921623072"
#define KEPT_US (10 * US_PER_SECOND) /* well below idle_in_transaction_session_timeout */
#define CANCEL_TRIES 10
#define CANCEL_PAUSE_US INT64_C(500000)
#define DECISION_PAUSE_NS 50000000

/* Assigns the transaction's number, which it has until it has committed or rolled back. */
static const char number_transaction[] = "SELECT pg_current_xact_id()";
static const char lock_commit[] = "SELECT pg_advisory_xact_lock_shared(" COMMIT_LOCK ")";
/* The server keeps what it has read of its sessions until the end of the transaction. */
static const char read_sessions_again[] = "SELECT pg_stat_clear_snapshot()";
#define LOCK_IS(key)                                                                               \
	"l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"                                     \
	" AND l.classid::bigint = " key " >> 32 AND l.objid::bigint = " key " & 4294967295"
/* Is true of a session `a` whose transaction may still commit. `state` is NULL if the role may not
 * see the session. */
#define IS_UNDECIDED "(a.backend_xid IS NOT NULL OR a.state IS NULL)"
/* Nodes of older versions take the lock exclusively, and number the transaction later. */
static const char holder_query[] =
	"SELECT pg_backend_pid()::bigint, COALESCE(max(a.pid), 0)::bigint"
	" FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid"
	" AND a.datid = l.database WHERE a.datname = current_database() AND " LOCK_IS(
		COMMIT_LOCK) " AND (l.mode = 'ExclusiveLock' OR " IS_UNDECIDED ")";
static const char decided_query[] =
	"SELECT count(*)::bigint FROM pg_catalog.pg_stat_activity a WHERE a.pid = $1"
	" AND " IS_UNDECIDED;
static const char check_query[] =
	"SELECT count(*)::bigint, pg_backend_pid()::bigint FROM pg_catalog.pg_locks l"
	" WHERE l.pid = $1 AND " LOCK_IS(PG_WRITER_LOCK);
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

static void cancel(struct pg_connection *holder, int64_t process)
{
	pg_send_text(holder, NULL, read_sessions_again);
	struct db_query *query = pg_make_query(&holder->base, cancel_query, false);
	pg_bind_integer(query, process);
	(void)pg_step(query);
	(void)!pg_end(query, NULL);
}

/* Gets a process with an undecided transaction of an earlier holder of the lock; 0: there is
 * none. */
static int find_undecided(struct citus_db *db, int64_t *ret_process, struct error *error)
{
	struct pg_connection *holder = db->lock_holder;
	pg_send_text(holder, NULL, read_sessions_again);
	struct db_query *query = pg_make_query(&holder->base, holder_query, false);
	int64_t process = 0;
	if (pg_step(query)) {
		db->lock_process = pg_integer(query, 0);
		process = pg_integer(query, 1);
	}
	int result = pg_end(query, error);
	if (!result)
		*ret_process = process;
	return result;
}

/* An earlier holder may have ended without cancelling its commit. */
static int await_decisions(struct citus_db *db, struct error *error)
{
	int64_t wait_us = db->pg.commit_timeout_us, began_us = clock_monotonic_us();
	for (;;) {
		int64_t process;
		int result = find_undecided(db, &process, error);
		if (result || !process)
			return result;
		int64_t waited_us = clock_monotonic_us() - began_us;
		if (waited_us > 2 * wait_us)
			return error_cause(error, ERR_UNAVAILABLE,
			                   "postgresql: an earlier writer's transaction has not ended");
		if (waited_us > wait_us)
			cancel(db->lock_holder, process);
		nanosleep(&(struct timespec){.tv_nsec = DECISION_PAUSE_NS}, NULL);
	}
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
	result = await_decisions(db, error);
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
	                 : "SELECT 1");
	(void)!pg_collect(holder, NULL, pg_deadline(holder));
}

int citus_confirm_lock(struct pg_connection *writer, struct error *error)
{
	assert(writer->use == PG_WRITER);
	struct citus_db *db = citus_db(writer->base.db);
	if (db->pg.base.schema)
		pg_send_text(writer, NULL, commit_in_two_phases);
	pg_send_text(writer, NULL, number_transaction);
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

static bool is_decided(struct pg_connection *holder, int64_t process)
{
	pg_send_text(holder, NULL, read_sessions_again);
	struct db_query *query = pg_make_query(&holder->base, decided_query, false);
	pg_bind_integer(query, process);
	bool decided = pg_step(query) && pg_integer(query, 0) == 0;
	return !pg_end(query, NULL) && decided;
}

bool citus_cancel_commit(struct pg_connection *writer)
{
	struct pg_connection *holder = citus_db(writer->base.db)->lock_holder;
	int64_t process = citus_connection(writer)->process;
	bool answered = false;
	for (int tries = 0; tries < CANCEL_TRIES && writer->pg && !answered; tries++) {
		citus_reset(holder);
		cancel(holder, process);
		citus_reset(writer);
		answered = pg_collect(writer, NULL, clock_monotonic_us() + CANCEL_PAUSE_US);
	}
	/* The backend hangs as long as the other server, but nothing of the transaction is pending. */
	if (!answered && is_decided(holder, process))
		pg_disconnect(writer);
	return answered;
}
