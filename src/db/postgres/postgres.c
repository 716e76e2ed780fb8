#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "db/postgres/internal.h"

/* ---- opening ---- */

struct pg_connection *pg_make_connection(struct pg_db *db, enum pg_use use)
{
	struct pg_connection *connection = calloc(1, sizeof *connection);
	if (!connection)
		return NULL;
	connection->base.db = &db->base;
	connection->use = use;
	return connection;
}

void pg_free_connection(struct pg_connection *connection)
{
	if (!connection)
		return;
	pg_drop_aside(connection);
	pg_disconnect(connection);
	for (size_t i = 0; i < QUERIES_MAX; i++)
		free(connection->queries[i].text);
	free(connection);
}

static void close_db(struct db *base)
{
	struct pg_db *db = pg_db(base);
	pg_forget_shard_servers(db);
	pg_pieces_free(db);
	for (size_t i = 0; i < PG_READERS; i++)
		pg_free_connection(db->readers[i]);
	for (size_t i = 0; i < PG_REGISTRARS; i++) {
		pg_free_straight(db->straight[i]);
		pg_free_connection(db->registrars[i]);
	}
	pg_free_connection(db->writer);
	pg_free_connection(db->turn_holder);
	pg_free_connection(db->local);
	pthread_mutex_destroy(&db->local_mutex);
	pthread_mutex_destroy(&db->mutex);
	pthread_cond_destroy(&db->turn_changed);
	pthread_cond_destroy(&db->reader_free);
	free(db->url);
	free(db);
}

static bool make_connections(struct pg_db *db)
{
	db->writer = pg_make_connection(db, PG_WRITER);
	db->turn_holder = pg_make_connection(db, PG_READER);
	db->local = pg_make_connection(db, PG_LOCAL);
	bool made = db->url && db->writer && db->turn_holder && db->local;
	for (size_t i = 0; i < PG_REGISTRARS; i++) {
		db->registrars[i] = pg_make_connection(db, PG_REGISTRAR);
		db->straight[i] = db->base.sharded ? pg_make_straight() : NULL;
		made = made && db->registrars[i] && (db->straight[i] || !db->base.sharded);
	}
	for (size_t i = 0; i < PG_READERS; i++) {
		db->readers[i] = pg_make_connection(db, PG_READER);
		made = made && db->readers[i];
		if (!made)
			break;
		db->readers[i]->next_free = db->free_readers;
		db->free_readers = db->readers[i];
	}
	return made;
}

static int check_url(const char *url, struct error *error)
{
	PQconninfoOption *options;
	int result = pg_parse_url(url, &options, error);
	if (!result)
		PQconninfoFree(options);
	return result;
}

/* Other connections are opened on first use. */
static int open_db(const struct db_options *options, struct db **ret_db, struct error *error)
{
	struct pg_db *db = calloc(1, sizeof *db);
	if (!db)
		return ERR_NO_MEMORY;
	db->base.driver = &postgres_driver;
	db->url = strdup(options->url);
	db->base.sharded = options->sharded;
	db->require_replicas = options->require_replicas;
	db->commit_timeout_us = options->commit_timeout_us ? options->commit_timeout_us : 5000000;
	pg_write_transaction_settings(db);
	pthread_mutex_init(&db->local_mutex, NULL);
	pthread_mutex_init(&db->mutex, NULL);
	pthread_cond_init(&db->turn_changed, NULL);
	pthread_cond_init(&db->reader_free, NULL);
	pg_pieces_init(db);
	int result = make_connections(db) ? pg_connect(db->readers[0], error) : ERR_NO_MEMORY;
	if (result) {
		close_db(&db->base);
		return result;
	}
	*ret_db = &db->base;
	return OK;
}

/* ---- taking and giving back connections ---- */

static struct db_connection *take_writer(struct db *base)
{
	struct pg_db *db = pg_db(base);
	pthread_mutex_lock(&db->mutex);
	uint64_t ticket = db->next_ticket++;
	while (ticket != db->turn)
		pthread_cond_wait(&db->turn_changed, &db->mutex);
	pthread_mutex_unlock(&db->mutex);
	return &db->writer->base;
}

static struct db_connection *take_local(struct db *base)
{
	pthread_mutex_lock(&pg_db(base)->local_mutex);
	return &pg_db(base)->local->base;
}

static struct db_connection *take_registrar(struct db *base, unsigned number, int64_t account)
{
	struct pg_db *db = pg_db(base);
	return base->sharded
	           ? &pg_go_straight(db->straight[number], db->registrars[number], account)->base
	           : &db->registrars[number]->base;
}

static struct db_connection *beside(struct db_connection *base)
{
	struct pg_connection *connection = pg_connection(base);
	return connection->use == PG_STRAIGHT ? &connection->asker->base : base;
}

static struct db_connection *take_reader(struct db *base)
{
	struct pg_db *db = pg_db(base);
	pthread_mutex_lock(&db->mutex);
	while (!db->free_readers)
		pthread_cond_wait(&db->reader_free, &db->mutex);
	struct pg_connection *connection = db->free_readers;
	db->free_readers = connection->next_free;
	pthread_mutex_unlock(&db->mutex);
	return &connection->base;
}

static void give(struct db_connection *base)
{
	struct pg_connection *connection = pg_connection(base);
	struct pg_db *db = pg_db(base->db);
	if (connection->use == PG_WRITER)
		pg_end_turn(db);
	if (connection->use == PG_STRAIGHT)
		(void)pg_end_fence(connection);
	pthread_mutex_lock(&db->mutex);
	if (connection->use == PG_WRITER) {
		db->turn++;
		pthread_cond_broadcast(&db->turn_changed);
	} else if (connection->use == PG_READER) {
		connection->next_free = db->free_readers;
		db->free_readers = connection;
		pthread_cond_signal(&db->reader_free);
	}
	pthread_mutex_unlock(&db->mutex);
	if (connection->use == PG_LOCAL)
		pthread_mutex_unlock(&db->local_mutex);
}

/* ---- transactions ---- */

static bool is_judged(const struct pg_connection *connection)
{
	return connection->use == PG_WRITER || connection->use == PG_REGISTRAR ||
	       connection->use == PG_STRAIGHT;
}

static int begin(struct db_connection *base, struct error *error)
{
	struct pg_connection *connection = pg_connection(base);
	bool sharded = base->db->sharded;
	int result = connection->refusal.code;
	if (result && error)
		*error = connection->refusal;
	if (!result)
		result = pg_connect(connection, error);
	if (!result && connection->use == PG_WRITER && sharded)
		result = pg_take_turn(pg_db(base->db), error);
	if (result)
		return base->failure = result;
	if (connection->use == PG_STRAIGHT && pg_waits_aside(connection, connection->account)) {
		pg_fail(connection, ERR_UNAVAILABLE, "an earlier commit is waiting for its standby");
		return db_report(base, error);
	}
	pg_make_room_for_queries(connection);
	connection->in_transaction = true;
	connection->on_shard = false;
	pg_send_text(connection, PG_STATEMENT,
	             connection->use == PG_READER ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	                                          : "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
	pg_send_text(connection, PG_SETTINGS, pg_db(base->db)->transaction_settings[connection->use]);
	if (is_judged(connection))
		pg_send_text(connection, PG_REPLICA_CHECK, pg_replica_query);
	if (connection->use == PG_STRAIGHT)
		pg_hold_pieces(connection);
	if (connection->use == PG_WRITER && !sharded)
		pg_send_text(connection, PG_STATEMENT, pg_lock_turn);
	if (connection->use == PG_LOCAL && !sharded)
		pg_send_text(connection, PG_STATEMENT, pg_try_lock_turn);
	if (connection->use == PG_WRITER || connection->use == PG_LOCAL)
		pg_send_text(connection, PG_CLOCK, "SELECT " PG_CLOCK_NOW);
	return db_report(base, error);
}

void pg_roll_back(struct pg_connection *connection)
{
	struct db_connection *base = &connection->base;
	if (!connection->pg || connection->limbo_since_us)
		return;
	int failure = base->failure;
	struct error error = base->error;
	if (connection->in_transaction) {
		pg_sync(connection); /* ends an aborted pipeline */
		base->failure = OK;
		pg_send_text(connection, PG_STATEMENT, "ROLLBACK");
		pg_sync(connection);
	}
	if (!pg_collect(connection, NULL, pg_deadline(connection)) && connection->pg) {
		pg_give_up_statement(connection);
		pg_disconnect(connection);
	}
	connection->in_transaction = false;
	base->failure = failure;
	base->error = error;
}

static void roll_back(struct db_connection *base)
{
	pg_roll_back(pg_connection(base));
}

static int unknown_outcome(struct pg_connection *connection, struct error *error)
{
	connection->base.failure = ERR_UNKNOWN_OUTCOME;
	connection->base.error.code = ERR_UNKNOWN_OUTCOME;
	return db_report(&connection->base, error);
}

/* A log record of the transaction makes the commit wait for the standby even if nothing else was
 * written: a batch of replays is acknowledged only when a standby has the events that it found. */
#define WRITE_SOMETHING "SELECT pg_logical_emit_message(true, 'constancia', '')"

static void keep_to_shard(struct db_connection *base, int64_t account)
{
	struct pg_connection *connection = pg_connection(base);
	bool straight = connection->use == PG_STRAIGHT;
	struct error error;
	if (connection->use == PG_LOCAL && db_check_reach(base, account, &error))
		return;
	if (!is_judged(connection) ||
	    ((straight || connection->on_shard) && connection->account == account))
		return;
	if (straight || connection->on_shard) {
		pg_fail(connection, ERR_INTERNAL, "a transaction uses two accounts");
		return;
	}
	connection->on_shard = true;
	connection->account = account;
	if (db_check_reach(base, account, &error))
		return;
	pg_send_to_shard(connection, PG_SHARD_CHECK, pg_shard_replica_query);
}

static void send_last(struct pg_connection *connection)
{
	if (connection->on_shard)
		pg_send_to_shard(connection, PG_SHARD_WRITE, pg_shard_write);
	else if (connection->use == PG_REGISTRAR || connection->use == PG_STRAIGHT)
		pg_send_text(connection, PG_STATEMENT, WRITE_SOMETHING);
}

static void send_commit(struct pg_connection *connection)
{
	pg_send_text(connection, PG_COMMIT, "COMMIT");
	/* Checks that the conditions still held after the commit. */
	if (connection->on_shard)
		pg_send_to_shard(connection, PG_SHARD_CHECK, pg_shard_committed_query);
	if (is_judged(connection))
		pg_send_text(connection, PG_REPLICA_CHECK, pg_committed_query);
	pg_sync(connection);
}

static int commit(struct db_connection *base, struct error *error)
{
	struct pg_connection *connection = pg_connection(base);
	bool turned = connection->use == PG_WRITER && base->db->sharded;
	if (!base->failure)
		send_last(connection);
	if (turned && !base->failure)
		(void)!pg_confirm_turn(connection, error);
	if (base->failure) {
		roll_back(base);
		return db_report(base, error);
	}
	connection->committed = connection->commit_warned = false;
	send_commit(connection);
	int64_t wait = pg_db(base->db)->commit_timeout_us;
	bool answered = pg_collect(connection, NULL, clock_monotonic_us() + wait);
	bool late = !answered;
	if (late && base->db->sharded) {
		pg_doubt_servers(pg_db(base->db));
		answered = turned && pg_break_off(connection);
	}
	if (!answered) {
		/* Not cancelled, because the server would then commit without the standby. The commit stays
		 * pending; on a direct shard connection it affects only its account. */
		bool aside = connection->pg && connection->use == PG_STRAIGHT && pg_set_aside(connection);
		if (connection->pg && !aside)
			connection->limbo_since_us = clock_monotonic_us();
		return unknown_outcome(connection, error);
	}
	if (connection->committed && (late || connection->commit_warned || base->failure)) {
		if (connection->commit_warned)
			pg_fail(connection, ERR_UNKNOWN_OUTCOME, "the wait for the standby was cancelled");
		connection->in_transaction = false;
		return unknown_outcome(connection, error);
	}
	if (!connection->committed) {
		pg_fail(connection, ERR_UNAVAILABLE, "the transaction was rolled back");
		roll_back(base);
		return db_report(base, error);
	}
	connection->in_transaction = false;
	if (connection->use == PG_STRAIGHT && !pg_end_fence(connection)) {
		pg_fail(connection, ERR_UNKNOWN_OUTCOME,
		        "the account's rows may have moved to another server");
		return unknown_outcome(connection, error);
	}
	return OK;
}

/* Several statements in one string need the simple protocol, which has no pipeline. */
static int run(struct db_connection *base, const char *sql, struct error *error)
{
	struct pg_connection *connection = pg_connection(base);
	if (!connection->in_transaction && pg_connect(connection, error))
		return ERR_UNAVAILABLE;
	if (connection->use == PG_WRITER)
		pg_keep_turn(pg_db(base->db), true);
	pg_sync(connection);
	if (!pg_collect(connection, NULL, pg_deadline(connection)) || base->failure)
		return db_report(base, error);
	if (PQexitPipelineMode(connection->pg) != 1)
		return pg_fail(connection, ERR_INTERNAL, "the pipeline is not empty");
	PQsetnonblocking(connection->pg, 0);
	PGresult *result = PQexec(connection->pg, sql);
	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
		pg_fail(connection, ERR_REFUSED, "%s", PQresultErrorMessage(result));
	PQclear(result);
	if (PQenterPipelineMode(connection->pg) != 1 || PQsetnonblocking(connection->pg, 1) != 0)
		pg_fail(connection, ERR_INTERNAL, "the pipeline cannot be restarted");
	return db_report(base, error);
}

/* ---- state ---- */

static unsigned registrar_count(const struct db *base)
{
	return PG_REGISTRARS;
}

static const char *promise(const struct db *base)
{
	return ((const struct pg_db *)base)->require_replicas > 0 ? "replicated" : "durable";
}

static int64_t now_us(const struct db *base)
{
	int64_t offset_us = atomic_load(&((const struct pg_db *)base)->clock_offset_us);
	return offset_us ? clock_monotonic_us() + offset_us : clock_now_us();
}

static int64_t latest_now_us(const struct db *base)
{
	int64_t latest_us = atomic_load(&((const struct pg_db *)base)->clock_latest_us);
	return latest_us ? clock_boot_us() + latest_us : clock_now_us();
}

static int ready(struct db *base, struct error *error)
{
	struct db_connection *reader = db_take_reader(base);
	struct pg_connection *connection = pg_connection(reader);
	int result = pg_connect(connection, error);
	if (!result) {
		/* Transactions set synchronous_commit themselves. */
		pg_send_text(connection, PG_REPLICA_CHECK, pg_committed_query);
		pg_sync(connection);
		if (!pg_collect(connection, NULL, pg_deadline(connection)) && connection->pg)
			pg_disconnect(connection);
		result = db_report(reader, error);
	}
	db_give(reader);
	return result;
}

static int count_replicas(struct db *base, struct db_replicas *ret, struct error *error)
{
	struct db_connection *reader = take_reader(base);
	int result = begin(reader, error);
	if (!result) {
		struct db_query *query = pg_make_query(reader, pg_lag_query, false);
		ret->required = pg_db(base)->require_replicas;
		if (pg_step(query)) {
			ret->synchronous = (unsigned)pg_integer(query, 0);
			ret->lag_bytes = pg_integer(query, 1);
			ret->lag_us = pg_integer(query, 2);
		}
		result = pg_end(query, error);
	}
	roll_back(reader);
	give(reader);
	return result;
}

#define AWAIT_TRIES 100
#define AWAIT_PAUSE_NS 100000000

/* Commits a transaction and gets its number; it is on the standbys when this returns OK. */
static int write_own(struct db *base, int64_t *ret_number, struct error *error)
{
	struct db_connection *writer = take_writer(base);
	int result = begin(writer, error);
	if (!result) {
		struct db_query *query =
			pg_make_query(writer,
		                  "SELECT pg_current_xact_id()::text::bigint"
		                  " FROM pg_logical_emit_message(true, 'constancia', '')",
		                  false);
		*ret_number = pg_step(query) ? pg_integer(query, 0) : 0;
		result = pg_end(query, error);
	}
	if (!result)
		result = commit(writer, error);
	if (result)
		roll_back(writer);
	give(writer);
	return result;
}

/* Gets whether all transactions up to `number` are over, by a snapshot. */
static int query_whether_over(struct db *base, int64_t number, bool *ret_over, struct error *error)
{
	struct db_connection *reader = take_reader(base);
	int result = begin(reader, error);
	if (!result) {
		struct db_query *query = pg_make_query(
			reader,
			"SELECT CASE WHEN pg_snapshot_xmin(pg_current_snapshot())::text::bigint > $1"
			" THEN 1 ELSE 0 END::bigint",
			false);
		pg_bind_integer(query, number);
		*ret_over = pg_step(query) && pg_integer(query, 0) == 1;
		result = pg_end(query, error);
	}
	roll_back(reader);
	give(reader);
	return result;
}

/* Everything before our own write in the server's log is on the standbys with it. Backends that
 * waited for that are then released one by one, and only their finished transactions are
 * visible. */
static int await_writes(struct db *base, struct error *error)
{
	int64_t number = 0;
	int result = write_own(base, &number, error);
	for (int i = 0; i < AWAIT_TRIES && !result; i++) {
		bool over = false;
		result = query_whether_over(base, number, &over, error);
		if (!result && over)
			return OK;
		nanosleep(&(struct timespec){.tv_nsec = AWAIT_PAUSE_NS}, NULL);
	}
	return result ? result
	              : error_cause(error, ERR_UNAVAILABLE,
	                            "postgresql: a transaction from before %lld "
	                            "is still open",
	                            (long long)number);
}

const struct db_driver postgres_driver = {
	.engine = "PostgreSQL",
	.shared = true,
	.check_url = check_url,
	.open = open_db,
	.close = close_db,
	.registrar_count = registrar_count,
	.promise = promise,
	.now_us = now_us,
	.latest_now_us = latest_now_us,
	.ready = ready,
	.describe = pg_describe,
	.count_replicas = count_replicas,
	.ask_shard_servers = pg_ask_shard_servers,
	.try_shard_server = pg_try_server,
	.ask_pieces = pg_ask_pieces,
	.misses = pg_misses,
	.misses_servers = pg_misses_servers,
	.beside = beside,
	.await_writes = await_writes,
	.take_writer = take_writer,
	.take_local = take_local,
	.take_registrar = take_registrar,
	.take_reader = take_reader,
	.give = give,
	.begin = begin,
	.keep_to_shard = keep_to_shard,
	.commit = commit,
	.rollback = roll_back,
	.run = run,
	.query = pg_make_query,
	.bind_integer = pg_bind_integer,
	.bind_text = pg_bind_text,
	.bind_blob = pg_bind_blob,
	.bind_null = pg_bind_null,
	.bind_array = pg_bind_array,
	.send = pg_send,
	.step = pg_step,
	.execute = pg_execute,
	.end = pg_end,
	.integer = pg_integer,
	.is_null = pg_is_null,
	.text = pg_text,
	.blob = pg_blob,
	.table_query = "SELECT count(*) FROM information_schema.tables "
				   "WHERE table_schema = current_schema() AND table_name = $1",
	.backup_name = "constancia.pgdump",
	.backup = pg_backup,
	.vacant = pg_vacant,
	.restore = pg_restore,
};
