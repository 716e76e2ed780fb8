/* The Citus driver: transactions and connections of a server that distributes tables. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "db/citus/internal.h"

#define STATEMENT_WAIT_US (5 * US_PER_SECOND) /* in addition to two commit timeouts */

/* ---- opening ---- */

/* A wait for one account's server delays other accounts, whose servers may answer. */
static bool open_extension(struct pg_db *pg)
{
	struct citus_db *db = citus_db(&pg->base);
	for (size_t i = 0; i < PG_USES; i++)
		pg->statement_wait_us[i] = pg->commit_timeout_us;
	pg->statement_wait_us[PG_WRITER] = pg->statement_wait_us[PG_READER] =
		2 * pg->commit_timeout_us + STATEMENT_WAIT_US;
	citus_shard_query_init(db);
	db->lock_holder = pg_make_connection(pg, PG_READER);
	bool made = db->lock_holder;
	for (size_t i = 0; i < PG_REGISTRARS; i++) {
		db->routes[i] = citus_make_routes();
		made = made && db->routes[i];
	}
	return made;
}

static void close_extension(struct pg_db *pg)
{
	struct citus_db *db = citus_db(&pg->base);
	citus_forget_shard_servers(db);
	citus_shard_query_free(db);
	for (size_t i = 0; i < PG_REGISTRARS; i++)
		citus_free_routes(db->routes[i]);
	pg_free_connection(db->lock_holder);
}

static void keep_alive(struct pg_connection *connection)
{
	if (connection->use == PG_WRITER)
		citus_keep_lock(citus_db(connection->base.db), false);
}

/* PQcancel may hang forever, so it runs in its own thread. */
#define CANCELS_MAX 8
static atomic_int cancels;

static void *cancel_statement(void *cancel)
{
	char reason[256];
	(void)PQcancel(cancel, reason, sizeof reason);
	PQfreeCancel(cancel);
	atomic_fetch_sub(&cancels, 1);
	return NULL;
}

/* Never after a COMMIT that waits for a standby. The server could otherwise wait for another server
 * and hold the transaction's locks. */
static void cancel(struct pg_connection *connection)
{
	bool room = atomic_fetch_add(&cancels, 1) < CANCELS_MAX;
	PGcancel *cancel = room ? PQgetCancel(connection->pg) : NULL;
	pthread_t thread;
	if (cancel && pthread_create(&thread, NULL, cancel_statement, cancel) == 0) {
		pthread_detach(thread);
		return;
	}
	PQfreeCancel(cancel);
	atomic_fetch_sub(&cancels, 1);
}

static char *rewrite(const struct pg_query *query)
{
	struct pg_connection *connection = pg_connection(query->base.connection);
	return citus_name_shards(citus_connection(connection)->group, query->sql);
}

static int open_db(const struct db_options *options, struct db **ret_db, struct error *error)
{
	static const struct pg_extension extension = {
		.driver = &citus_driver,
		.db_size = sizeof(struct citus_db),
		.connection_size = sizeof(struct citus_connection),
		.open = open_extension,
		.close = close_extension,
		.free_connection = citus_drop_detached,
		.keep_alive = keep_alive,
		.cancel = cancel,
		.rewrite = rewrite,
	};
	return pg_open(options, &extension, ret_db, error);
}

/* ---- taking and giving back connections ---- */

static struct db_connection *take_registrar(struct db *base, unsigned number, int64_t account)
{
	struct pg_connection *coordinator = pg_db(base)->registrars[number];
	return &citus_route(citus_db(base)->routes[number], coordinator, account)->base;
}

static struct db_connection *side_connection(struct db_connection *base)
{
	struct pg_connection *connection = pg_connection(base);
	return connection->use == PG_SHARD ? &citus_connection(connection)->coordinator->base : base;
}

static void limit_wait(struct db_connection *base)
{
	struct pg_connection *connection = pg_connection(base);
	assert(connection->use == PG_READER);
	connection->wait_limit_us = pg_db(base->db)->commit_timeout_us;
}

static void give(struct db_connection *base)
{
	struct pg_connection *connection = pg_connection(base);
	if (connection->use == PG_WRITER)
		citus_unlock_writer(citus_db(base->db));
	if (connection->use == PG_SHARD)
		(void)citus_end_fence(connection);
	pg_give(base);
}

/* ---- transactions ---- */

static int begin(struct db_connection *base, struct error *error)
{
	struct pg_connection *connection = pg_connection(base);
	struct citus_connection *own = citus_connection(connection);
	int result = own->refusal.code;
	if (result && error)
		*error = own->refusal;
	if (!result)
		result = pg_connect(connection, error);
	if (!result && connection->use == PG_WRITER)
		result = citus_lock_writer(citus_db(base->db), error);
	if (result)
		return base->failure = result;
	if (connection->use == PG_SHARD && citus_is_detached(connection, own->account)) {
		pg_fail(connection, ERR_UNAVAILABLE, "an earlier commit is waiting for its standby");
		return db_report(base, error);
	}
	pg_make_room_for_queries(connection);
	if (base->failure)
		return db_report(base, error);
	own->on_shard = false;
	pg_begin_transaction(connection);
	if (connection->use == PG_SHARD)
		citus_hold_shards(connection);
	pg_query_clock(connection);
	return db_report(base, error);
}

#define IN_LOG(place) "pg_wal_lsn_diff(" place ", '0/0')::bigint"
#define TO_SHARD(query) "SELECT answer.* FROM (" query ") AS answer, " CITUS_ON_SHARD
static const char replica_query[] = TO_SHARD(PG_REPLICAS(PG_OF_TRANSACTION, ""));
static const char committed_query[] = TO_SHARD(PG_REPLICAS(
	PG_OF_COMMITTED, ", string_agg((" IN_LOG("flush_lsn") ")::text, ' ') " PG_STANDBYS));
const char citus_shard_write[] =
	"SELECT " IN_LOG("pg_logical_emit_message(true, 'constancia', '')") " FROM " CITUS_ON_SHARD;

static void note_written(struct pg_connection *connection, const PGresult *row, int64_t sent_us)
{
	(void)sent_us;
	citus_connection(connection)->written =
		PQntuples(row) == 1 ? strtoull(PQgetvalue(row, 0, 0), NULL, 10) : UINT64_MAX;
}

static unsigned count_beyond(const char *places, uint64_t place)
{
	unsigned count = 0;
	char *next;
	for (uint64_t one = strtoull(places, &next, 10); next != places;
	     one = strtoull(places, &next, 10)) {
		count += one > place;
		places = next;
	}
	return count;
}

void citus_judge_shard(struct pg_connection *connection, const PGresult *row, int64_t sent_us)
{
	const char *where = "on the account's shard: ";
	(void)sent_us;
	if (PQntuples(row) != 1) {
		pg_fail(connection, ERR_INTERNAL, "no shard has the account");
		return;
	}
	pg_judge_replicas_at(connection, row, where);
	if (PQnfields(row) > PG_REPLICAS_COLUMNS &&
	    count_beyond(PQgetvalue(row, 0, PG_REPLICAS_COLUMNS),
	                 citus_connection(connection)->written) <
	        pg_db(connection->base.db)->require_replicas)
		pg_fail(connection, ERR_UNKNOWN_OUTCOME, "%sa commit ended before the standbys received it",
		        where);
}

static void restrict_to_shard(struct db_connection *base, int64_t account)
{
	struct pg_connection *connection = pg_connection(base);
	struct citus_connection *own = citus_connection(connection);
	bool kept = connection->use == PG_SHARD || own->on_shard;
	struct error error;
	if (connection->use == PG_LOCAL && db_check_reachable(base, account, &error))
		return;
	if (!pg_is_judged(connection) || (kept && own->account == account))
		return;
	if (kept) {
		pg_fail(connection, ERR_INTERNAL, "a transaction uses two accounts");
		return;
	}
	own->on_shard = true;
	own->account = account;
	if (db_check_reachable(base, account, &error))
		return;
	pg_send_number(connection, citus_judge_shard, replica_query, account);
}

static void send_last(struct pg_connection *connection)
{
	const struct citus_connection *own = citus_connection(connection);
	if (own->on_shard)
		pg_send_number(connection, note_written, citus_shard_write, own->account);
	else if (connection->use == PG_REGISTRAR || connection->use == PG_SHARD)
		pg_send_text(connection, NULL, pg_write_something);
}

/* A pending commit is not cancelled here, because the server would then commit without the standby.
 * On a direct shard connection it affects only its account. An urgent commit waits for no standby
 * of this server, only for other servers. It is cancelled, so that it locks no rows, and the next
 * one uses another connection. */
static int leave_pending(struct pg_connection *connection, struct error *error)
{
	bool detached =
		connection->pg && connection->use == PG_SHARD && citus_detach_commit(connection);
	if (connection->pg && connection->use == PG_LOCAL)
		pg_give_up(connection);
	if (connection->pg && !detached)
		connection->limbo_since_us = clock_monotonic_us();
	return pg_unknown_outcome(connection, error);
}

static int commit(struct db_connection *base, struct error *error)
{
	struct pg_connection *connection = pg_connection(base);
	const struct citus_connection *own = citus_connection(connection);
	bool locked = connection->use == PG_WRITER;
	if (!base->failure)
		send_last(connection);
	if (locked && !base->failure)
		(void)!citus_confirm_lock(connection, error);
	if (base->failure) {
		pg_roll_back(connection);
		return db_report(base, error);
	}
	pg_send_commit(connection);
	if (own->on_shard)
		pg_send_number(connection, citus_judge_shard, committed_query, own->account);
	pg_send_commit_check(connection);
	int64_t wait_us = pg_db(base->db)->commit_timeout_us;
	bool late = !pg_collect(connection, NULL, clock_monotonic_us() + wait_us);
	if (late)
		citus_doubt_servers(citus_db(base->db));
	if (late && !(locked && citus_cancel_commit(connection)))
		return leave_pending(connection, error);
	int result = pg_end_commit(connection, late, error);
	if (!result && connection->use == PG_SHARD && !citus_end_fence(connection)) {
		pg_fail(connection, ERR_UNKNOWN_OUTCOME,
		        "the account's rows may have moved to another server");
		return pg_unknown_outcome(connection, error);
	}
	return result;
}

static int run(struct db_connection *base, const char *sql, struct error *error)
{
	if (pg_connection(base)->use == PG_WRITER)
		citus_keep_lock(citus_db(base->db), true);
	return pg_run(base, sql, error);
}

const struct db_driver citus_driver = {
	PG_DRIVER_FUNCTIONS,
	.open = open_db,
	.ask_shard_servers = citus_ask_shard_servers,
	.list_undistributed = citus_list_undistributed,
	.distribute = citus_distribute,
	.check_servers = citus_check_servers,
	.query_shards = citus_query_shards,
	.is_unreachable = citus_is_account_unreachable,
	.has_unreachable = citus_has_unreachable,
	.take_registrar = take_registrar,
	.side_connection = side_connection,
	.limit_wait = limit_wait,
	.give = give,
	.begin = begin,
	.restrict_to_shard = restrict_to_shard,
	.commit = commit,
	.run = run,
};
