/* The PostgreSQL driver: its connections and transactions, and the clock and the promise of the
 * server. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/tuned.h"
#include "db/postgres/postgres_internal.h"

#define STATEMENT_WAIT_US (60 * US_PER_SECOND)

/* ---- opening ---- */

struct pg_connection *pg_make_connection(struct pg_db *db, enum pg_use use)
{
	assert((size_t)use < PG_USES);
	assert(db->extension->connection_size >= sizeof(struct pg_connection));
	struct pg_connection *connection = calloc(1, db->extension->connection_size);
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
	const struct pg_extension *extension = pg_db(connection->base.db)->extension;
	if (extension->free_connection)
		extension->free_connection(connection);
	pg_disconnect(connection);
	for (size_t i = 0; i < QUERIES_MAX; i++)
		free(connection->queries[i].text);
	free(connection);
}

void pg_close(struct db *base)
{
	struct pg_db *db = pg_db(base);
	if (db->extension->close)
		db->extension->close(db);
	for (size_t i = 0; i < PG_READERS; i++)
		pg_free_connection(db->readers[i]);
	for (size_t i = 0; i < PG_REGISTRARS; i++)
		pg_free_connection(db->registrars[i]);
	pg_free_connection(db->writer);
	pg_free_connection(db->local);
	pthread_mutex_destroy(&db->local_mutex);
	pthread_mutex_destroy(&db->mutex);
	pthread_cond_destroy(&db->writer_free);
	pthread_cond_destroy(&db->reader_free);
	free(db->url);
	free(db);
}

static bool make_connections(struct pg_db *db)
{
	db->writer = pg_make_connection(db, PG_WRITER);
	db->local = pg_make_connection(db, PG_LOCAL);
	bool made = db->url && db->writer && db->local;
	for (size_t i = 0; i < PG_REGISTRARS; i++) {
		db->registrars[i] = pg_make_connection(db, PG_REGISTRAR);
		made = made && db->registrars[i];
	}
	for (size_t i = 0, count = (size_t)tuned_up_to("readers", PG_READERS); i < count; i++) {
		db->readers[i] = pg_make_connection(db, PG_READER);
		made = made && db->readers[i];
		if (!made)
			break;
		db->readers[i]->next_free = db->free_readers;
		db->free_readers = db->readers[i];
	}
	return made;
}

int pg_check_url(const char *url, struct error *error)
{
	PQconninfoOption *options;
	int result = pg_parse_url(url, &options, error);
	if (!result)
		PQconninfoFree(options);
	return result;
}

/* Other connections are opened on first use. */
int pg_open(const struct db_options *options, const struct pg_extension *extension,
            struct db **ret_db, struct error *error)
{
	assert(extension->driver && extension->db_size >= sizeof(struct pg_db));
	struct pg_db *db = calloc(1, extension->db_size);
	if (!db)
		return ERR_NO_MEMORY;
	db->extension = extension;
	db->fetched_max = (int)tuned_up_to("rows_fetched", FETCHED_MAX);
	db->waiting_max = (size_t)tuned_up_to("statements_sent", WAITING_MAX - ONE_USE_MAX);
	db->registrar_count = (unsigned)tuned_up_to("registrars", PG_REGISTRARS);
	db->base.driver = extension->driver;
	db->url = strdup(options->url);
	db->base.sharded = options->sharded;
	db->require_replicas = options->require_replicas;
	db->commit_timeout_us = options->commit_timeout_us ? options->commit_timeout_us : 5000000;
	for (size_t i = 0; i < PG_USES; i++)
		db->statement_wait_us[i] =
			i == PG_REGISTRAR ? 2 * db->commit_timeout_us : STATEMENT_WAIT_US;
	pg_write_transaction_settings(db);
	pthread_mutex_init(&db->local_mutex, NULL);
	pthread_mutex_init(&db->mutex, NULL);
	pthread_cond_init(&db->writer_free, NULL);
	pthread_cond_init(&db->reader_free, NULL);
	bool opened = !extension->open || extension->open(db);
	int result = make_connections(db) && opened ? pg_connect(db->readers[0], error) : ERR_NO_MEMORY;
	if (result) {
		pg_close(&db->base);
		return result;
	}
	*ret_db = &db->base;
	return OK;
}

static int open_db(const struct db_options *options, struct db **ret_db, struct error *error)
{
	static const struct pg_extension none = {
		.driver = &postgres_driver,
		.db_size = sizeof(struct pg_db),
		.connection_size = sizeof(struct pg_connection),
	};
	return pg_open(options, &none, ret_db, error);
}

/* ---- taking and giving back connections ---- */

struct db_connection *pg_take_writer(struct db *base)
{
	struct pg_db *db = pg_db(base);
	pthread_mutex_lock(&db->mutex);
	uint64_t ticket = db->next_ticket++;
	while (ticket != db->served_ticket)
		pthread_cond_wait(&db->writer_free, &db->mutex);
	pthread_mutex_unlock(&db->mutex);
	return &db->writer->base;
}

struct db_connection *pg_take_local(struct db *base)
{
	pthread_mutex_lock(&pg_db(base)->local_mutex);
	return &pg_db(base)->local->base;
}

static struct db_connection *take_registrar(struct db *base, unsigned number, int64_t account)
{
	assert(number < PG_REGISTRARS);
	(void)account;
	return &pg_db(base)->registrars[number]->base;
}

struct db_connection *pg_take_reader(struct db *base)
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

void pg_give(struct db_connection *base)
{
	struct pg_connection *connection = pg_connection(base);
	struct pg_db *db = pg_db(base->db);
	/* The next holder would go on with an open transaction. */
	assert(!connection->in_transaction || connection->limbo_since_us);
	connection->wait_limit_us = 0;
	pthread_mutex_lock(&db->mutex);
	if (connection->use == PG_WRITER) {
		assert(db->served_ticket < db->next_ticket);
		db->served_ticket++;
		pthread_cond_broadcast(&db->writer_free);
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

const char pg_lock_writer[] = "SELECT pg_advisory_xact_lock(" PG_WRITER_LOCK ")";
/* A commit that waits for its standby holds the lock as long; this variant does not wait for it. */
static const char try_lock_writer[] = "SELECT pg_try_advisory_xact_lock(" PG_WRITER_LOCK ")";

bool pg_is_judged(const struct pg_connection *connection)
{
	return connection->use == PG_WRITER || connection->use == PG_REGISTRAR ||
	       connection->use == PG_SHARD;
}

void pg_begin_transaction(struct pg_connection *connection)
{
	const struct pg_db *db = pg_db(connection->base.db);
	assert(!connection->in_transaction);
	connection->in_transaction = true;
	connection->limited = false;
	pg_send_text(connection, NULL,
	             connection->use == PG_READER ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	                                          : "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
	pg_send_text(connection, pg_note_latest_clock, db->transaction_settings[connection->use]);
	if (pg_is_judged(connection))
		pg_send_text(connection, pg_check_replicas, pg_replica_query);
}

void pg_query_clock(struct pg_connection *connection)
{
	if (connection->use == PG_WRITER || connection->use == PG_LOCAL)
		pg_send_text(connection, pg_note_clock, "SELECT " PG_CLOCK_NOW);
}

static int begin(struct db_connection *base, struct error *error)
{
	struct pg_connection *connection = pg_connection(base);
	int result = pg_connect(connection, error);
	if (result)
		return base->failure = result;
	pg_begin_transaction(connection);
	if (connection->use == PG_WRITER)
		pg_send_text(connection, NULL, pg_lock_writer);
	if (connection->use == PG_LOCAL)
		pg_send_text(connection, NULL, try_lock_writer);
	pg_query_clock(connection);
	return db_report(base, error);
}

void pg_roll_back(struct pg_connection *connection)
{
	struct db_connection *base = &connection->base;
	if (!connection->pg)
		connection->in_transaction = false; /* the server rolls back what it had */
	if (!connection->pg || connection->limbo_since_us)
		return;
	int failure = base->failure;
	struct error error = base->error;
	if (connection->in_transaction) {
		pg_sync(connection); /* ends an aborted pipeline */
		base->failure = OK;
		pg_send_text(connection, NULL, "ROLLBACK");
		pg_sync(connection);
	}
	if (!pg_collect(connection, NULL, pg_deadline(connection)) && connection->pg)
		pg_give_up(connection);
	connection->in_transaction = false;
	base->failure = failure;
	base->error = error;
}

void pg_roll_back_base(struct db_connection *base)
{
	pg_roll_back(pg_connection(base));
}

int pg_unknown_outcome(struct pg_connection *connection, struct error *error)
{
	connection->base.failure = ERR_UNKNOWN_OUTCOME;
	connection->base.error.code = ERR_UNKNOWN_OUTCOME;
	return db_report(&connection->base, error);
}

const char pg_write_something[] = "SELECT pg_logical_emit_message(true, 'constancia', '')";

static void note_commit(struct pg_connection *connection, const PGresult *result, int64_t sent_us)
{
	(void)sent_us;
	PGresult *own; /* libpq takes no const here, but does not change the result */
	memcpy(&own, &result, sizeof own);
	connection->committed = strcmp(PQcmdStatus(own), "COMMIT") == 0;
}

void pg_send_commit(struct pg_connection *connection)
{
	connection->committed = connection->commit_warned = false;
	pg_send_text(connection, note_commit, "COMMIT");
}

void pg_send_commit_check(struct pg_connection *connection)
{
	if (pg_is_judged(connection))
		pg_send_text(connection, pg_check_replicas, pg_committed_query);
	pg_sync(connection);
}

int pg_end_commit(struct pg_connection *connection, bool late, struct error *error)
{
	struct db_connection *base = &connection->base;
	if (connection->committed && (late || connection->commit_warned || base->failure)) {
		if (connection->commit_warned)
			pg_fail(connection, ERR_UNKNOWN_OUTCOME, "the wait for the standby was cancelled");
		connection->in_transaction = false;
		return pg_unknown_outcome(connection, error);
	}
	if (!connection->committed) {
		pg_fail(connection, ERR_UNAVAILABLE, "the transaction was rolled back");
		pg_roll_back(connection);
		return db_report(base, error);
	}
	connection->in_transaction = false;
	return OK;
}

static int commit(struct db_connection *base, struct error *error)
{
	struct pg_connection *connection = pg_connection(base);
	if (!base->failure && connection->use == PG_REGISTRAR)
		pg_send_text(connection, NULL, pg_write_something);
	if (base->failure) {
		pg_roll_back(connection);
		return db_report(base, error);
	}
	assert(connection->in_transaction);
	pg_send_commit(connection);
	pg_send_commit_check(connection);
	int64_t wait_us = pg_db(base->db)->commit_timeout_us;
	if (pg_collect(connection, NULL, clock_monotonic_us() + wait_us))
		return pg_end_commit(connection, false, error);
	/* Not cancelled, because the server would then commit without the standby. */
	if (connection->pg)
		connection->limbo_since_us = clock_monotonic_us();
	return pg_unknown_outcome(connection, error);
}

/* lock_not_available, query_canceled, deadlock_detected */
static bool is_at_limit(const struct pg_connection *connection, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	return connection->limited && state &&
	       (strcmp(state, "55P03") == 0 || strcmp(state, "57014") == 0 ||
	        strcmp(state, "40P01") == 0);
}

/* Several statements in one string need the simple protocol, which has no pipeline. */
int pg_run(struct db_connection *base, const char *sql, struct error *error)
{
	struct pg_connection *connection = pg_connection(base);
	if (!connection->in_transaction && pg_connect(connection, error))
		return ERR_UNAVAILABLE;
	pg_sync(connection);
	if (!pg_collect(connection, NULL, pg_deadline(connection)) || base->failure)
		return db_report(base, error);
	if (PQexitPipelineMode(connection->pg) != 1)
		return pg_fail(connection, ERR_INTERNAL, "the pipeline is not empty");
	PQsetnonblocking(connection->pg, 0);
	PGresult *result = PQexec(connection->pg, sql);
	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
		pg_fail(connection, is_at_limit(connection, result) ? ERR_UNAVAILABLE : ERR_REFUSED, "%s",
		        PQresultErrorMessage(result));
	PQclear(result);
	if (PQenterPipelineMode(connection->pg) != 1 || PQsetnonblocking(connection->pg, 1) != 0)
		pg_fail(connection, ERR_INTERNAL, "the pipeline cannot be restarted");
	return db_report(base, error);
}

/* ---- migration ---- */

#define LOCK_WAIT_MAX_MS 500 /* below deadlock_timeout, so that no other transaction is aborted */

/* Connections from before hold no lock; pg_connect replaces them. */
int pg_schema_checked(struct db *base, struct error *error)
{
	pg_db(base)->guards_schema = true;
	return OK;
}

static const char lock_schema[] =
	"SELECT pg_try_advisory_xact_lock(" PG_SCHEMA_LOCK ")::int::bigint";
static const char holders_query[] =
	"SELECT COALESCE(string_agg(DISTINCT"
	" COALESCE(host(a.client_addr), 'the server''s machine'), ', '), '')"
	" FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid"
	" WHERE a.datname = current_database() AND l.pid <> pg_backend_pid()"
	" AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
	" AND l.classid::bigint = " PG_SCHEMA_LOCK " >> 32"
	" AND l.objid::bigint = " PG_SCHEMA_LOCK " & 4294967295";

int pg_exclude_programs(struct db_connection *writer, char *from, size_t from_size,
                        struct error *error)
{
	*from = '\0';
	struct db_query *query = pg_make_query(writer, lock_schema, false);
	bool excluded = pg_step(query) && pg_integer(query, 0);
	int result = pg_end(query, error);
	if (result || excluded)
		return result;
	query = pg_make_query(writer, holders_query, false);
	if (pg_step(query)) {
		struct slice text = pg_text(query, 0);
		snprintf(from, from_size, "%.*s", (int)text.size, text.data);
	}
	result = pg_end(query, error);
	return result ? result : ERR_UNAVAILABLE;
}

int pg_limit_statements(struct db_connection *writer, int64_t spent_us, struct error *error)
{
	struct pg_connection *connection = pg_connection(writer);
	int64_t timeout_ms = pg_db(writer->db)->commit_timeout_us / 1000;
	int64_t left_ms = timeout_ms / 2 - spent_us / 1000;
	bool limited = spent_us >= 0;
	if (limited && left_ms <= 0)
		pg_fail(connection, ERR_UNAVAILABLE, "the steps hold locks for too long");
	if (writer->failure)
		return db_report(writer, error);
	int64_t wait_ms = left_ms < LOCK_WAIT_MAX_MS ? left_ms : LOCK_WAIT_MAX_MS;
	char sql[128];
	snprintf(sql, sizeof sql, "SET LOCAL lock_timeout = %lld; SET LOCAL statement_timeout = %lld",
	         (long long)(limited ? wait_ms : timeout_ms), (long long)(limited ? left_ms : 0));
	connection->limited = limited;
	return pg_run(writer, sql, error);
}

/* ---- state ---- */

unsigned pg_registrar_count(const struct db *base)
{
	return ((const struct pg_db *)base)->registrar_count;
}

const char *pg_promise(const struct db *base)
{
	return ((const struct pg_db *)base)->require_replicas > 0 ? "replicated" : "durable";
}

int64_t pg_now_us(const struct db *base)
{
	int64_t offset_us = atomic_load(&((const struct pg_db *)base)->clock_offset_us);
	return offset_us ? clock_monotonic_us() + offset_us : clock_now_us();
}

int64_t pg_latest_now_us(const struct db *base)
{
	int64_t latest_us = atomic_load(&((const struct pg_db *)base)->clock_latest_us);
	return latest_us ? clock_boot_us() + latest_us : clock_now_us();
}

int pg_ready(struct db *base, struct error *error)
{
	struct db_connection *reader = db_take_reader(base);
	struct pg_connection *connection = pg_connection(reader);
	int result = pg_connect(connection, error);
	if (!result) {
		/* Transactions set synchronous_commit themselves. */
		pg_send_text(connection, pg_check_replicas, pg_committed_query);
		pg_sync(connection);
		if (!pg_collect(connection, NULL, pg_deadline(connection)) && connection->pg)
			pg_disconnect(connection);
		result = db_report(reader, error);
	}
	db_give(reader);
	return result;
}

int pg_count_replicas(struct db *base, struct db_replicas *ret, struct error *error)
{
	struct db_connection *reader = db_take_reader(base);
	int result = db_begin(reader, error);
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
	db_give(reader);
	return result;
}

#define AWAIT_TRIES 100
#define AWAIT_PAUSE_NS 100000000

/* Commits a transaction and gets its number; it is on the standbys when this returns OK. */
static int write_own(struct db *base, int64_t *ret_number, struct error *error)
{
	struct db_connection *writer = db_take_writer(base);
	int result = db_begin(writer, error);
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
		result = db_commit(writer, error);
	db_give(writer);
	return result;
}

/* Gets whether all transactions up to `number` are over, by a snapshot. */
static int query_whether_over(struct db *base, int64_t number, bool *ret_over, struct error *error)
{
	struct db_connection *reader = db_take_reader(base);
	int result = db_begin(reader, error);
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
	db_give(reader);
	return result;
}

/* Everything before our own write in the server's log is on the standbys with it. Backends that
 * waited for that are then released one by one, and only their finished transactions are
 * visible. */
int pg_await_writes(struct db *base, struct error *error)
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
	PG_DRIVER_FUNCTIONS, .open = open_db, .take_registrar = take_registrar,
	.give = pg_give,     .begin = begin,  .commit = commit,
	.run = pg_run,
};
