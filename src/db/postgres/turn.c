/* The writers' turn, over all nodes. Where tables are distributed, a back end that works for a
 * writer may hang with another server, and neither be cancelled nor ended; whatever it holds is
 * held as long. So the turn is held there by a connection of its own, which asks for nothing but
 * what the server has that all are asked by.
 *
 * A turn whose connection is lost is over at once, the transaction that it was for perhaps not. So
 * that one takes a second lock before it commits, and looks whether the turn is still its own;
 * whoever comes next waits for that lock behind the turn. */
#include "base/clock.h"
#include "db/postgres/internal.h"

/* Any two numbers will do, if they are always these. */
#define TURN "4841921623071"
#define COMMIT_LOCK "4841921623072"
#define KEPT_US (10 * US_PER_SECOND) /* well below idle_in_transaction_session_timeout */
#define CANCEL_TRIES 10
#define CANCEL_PAUSE_US INT64_C(500000)

const char pg_lock_turn[] = "SELECT pg_advisory_xact_lock(" TURN ")";
/* A commit that waits for its standby holds it as long: then it goes without. */
const char pg_try_lock_turn[] = "SELECT pg_try_advisory_xact_lock(" TURN ")";
static const char await_commit[] =
	"SELECT pg_advisory_lock(" COMMIT_LOCK "), pg_advisory_unlock(" COMMIT_LOCK ")";
static const char lock_commit[] = "SELECT pg_advisory_xact_lock(" COMMIT_LOCK ")";
static const char holder_query[] = "SELECT pg_backend_pid()::bigint";
static const char check_query[] =
	"SELECT count(*)::bigint, pg_backend_pid()::bigint FROM pg_catalog.pg_locks"
	" WHERE locktype = 'advisory' AND granted AND pid = $1 AND objsubid = 1"
	" AND classid::bigint = " TURN " >> 32 AND objid::bigint = " TURN " & 4294967295";
/* What is written there and on another server commits in two phases, also where it is nothing. */
static const char commit_in_two_phases[] = "DELETE FROM leases WHERE name = ''";
/* Whatever other servers were told: as long as this one has not decided, nothing is committed;
 * afterwards it is, and the others have it prepared, on their standbys, too. Between these two it
 * waits for its own standby, which is not to be broken off. */
static const char cancel_query[] =
	"SELECT count(pg_cancel_backend(pid))::bigint FROM pg_catalog.pg_stat_activity"
	" WHERE pid = $1 AND wait_event IS DISTINCT FROM 'SyncRep'";

void pg_end_turn(struct pg_db *db)
{
	struct pg_connection *holder = db->turn_holder;
	if (holder->in_transaction)
		pg_roll_back(holder);
}

int pg_take_turn(struct pg_db *db, struct error *error)
{
	struct pg_connection *holder = db->turn_holder;
	pg_end_turn(db);
	holder->base.failure = OK;
	error_clear(&holder->base.error);
	int result = pg_connect(holder, error);
	if (result)
		return result;
	holder->in_transaction = true;
	pg_send_text(holder, PG_STATEMENT, "BEGIN");
	pg_send_text(holder, PG_SETTINGS, db->transaction_settings[holder->use]);
	pg_send_text(holder, PG_STATEMENT, pg_lock_turn);
	pg_send_text(holder, PG_STATEMENT, await_commit);
	struct db_query *query = pg_make_query(&holder->base, holder_query, false);
	if (pg_step(query))
		db->turn_process = pg_integer(query, 0);
	result = pg_end(query, error);
	db->turn_kept_us = clock_monotonic_us();
	if (result)
		pg_end_turn(db);
	return result;
}

void pg_keep_turn(struct pg_db *db, bool however_long)
{
	struct pg_connection *holder = db->turn_holder;
	int64_t now_us = clock_monotonic_us();
	if (!holder->in_transaction || (!however_long && now_us - db->turn_kept_us < KEPT_US))
		return;
	db->turn_kept_us = now_us;
	/* One that is lost is found out before the commit. */
	pg_send_text(holder, PG_STATEMENT,
	             however_long
	                 ? "SELECT set_config('idle_in_transaction_session_timeout', '0', true)"
	                 : holder_query);
	(void)!pg_collect(holder, NULL, pg_deadline(holder));
}

int pg_confirm_turn(struct pg_connection *writer, struct error *error)
{
	struct pg_db *db = pg_db(writer->base.db);
	if (db->base.schema)
		pg_send_text(writer, PG_STATEMENT, commit_in_two_phases);
	pg_send_text(writer, PG_STATEMENT, lock_commit);
	struct db_query *query = pg_make_query(&writer->base, check_query, false);
	pg_bind_integer(query, db->turn_process);
	bool held = pg_step(query) && pg_integer(query, 0) == 1;
	writer->process = held ? pg_integer(query, 1) : 0;
	int result = pg_end(query, error);
	if (!result && !held) {
		pg_fail(writer, ERR_UNAVAILABLE, "the writers' turn was lost");
		result = db_report(&writer->base, error);
	}
	return result;
}

static void cancel(struct pg_connection *writer)
{
	struct pg_connection *holder = pg_db(writer->base.db)->turn_holder;
	holder->base.failure = OK;
	error_clear(&holder->base.error);
	struct db_query *query = pg_make_query(&holder->base, cancel_query, false);
	pg_bind_integer(query, writer->process);
	(void)pg_step(query);
	(void)!pg_end(query, NULL);
}

bool pg_break_off(struct pg_connection *writer)
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
