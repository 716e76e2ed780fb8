/* Connections to a PostgreSQL server in pipeline mode: sending, collecting results, deadlines,
 * errors. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "db/postgres/postgres_internal.h"

#define CONNECT_PAUSE_US INT64_C(250000) /* between attempts to connect */
#define SET_UP_WAIT_US INT64_C(5000000)

/* ---- failures ---- */

int pg_fail(struct pg_connection *connection, int code, const char *format, ...)
{
	assert(code < 0);
	if (connection->base.failure)
		return connection->base.failure;
	char text[ERROR_CAUSE_MAX];
	va_list places;
	va_start(places, format);
	vsnprintf(text, sizeof text, format, places);
	va_end(places);
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	connection->base.failure = code;
	return error_cause(&connection->base.error, code, "postgresql: %s", text);
}

static const struct {
	const char *state; /* SQLSTATE, or its class */
	int code;
	bool may_retry;
} meanings[] = {
	{"40001", ERR_UNAVAILABLE, true},  /* serialization_failure */
	{"40P01", ERR_UNAVAILABLE, true},  /* deadlock_detected */
	{"55P03", ERR_UNAVAILABLE, false}, /* lock_not_available: lock_timeout */
	{"53100", ERR_NO_SPACE, false},    /* disk_full */
	{"XX001", ERR_CORRUPT, false},     /* data_corrupted */
	{"XX002", ERR_CORRUPT, false},     /* index_corrupted */
	{"23", ERR_REFUSED, false},        /* constraint violation */
	{"22", ERR_INTERNAL, false},       /* invalid value */
	{"42", ERR_INTERNAL, false},       /* invalid statement */
	{"0A", ERR_INTERNAL, false},       /* feature_not_supported */
	{"26", ERR_UNAVAILABLE, false},    /* invalid_sql_statement_name: used with a pooler */
};

static void fail_by_result(struct pg_connection *connection, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	int code = ERR_UNAVAILABLE;
	bool may_retry = false;
	for (size_t i = 0; state && i < sizeof meanings / sizeof *meanings; i++) {
		if (strncmp(state, meanings[i].state, strlen(meanings[i].state)) == 0) {
			code = meanings[i].code;
			may_retry = meanings[i].may_retry;
			break;
		}
	}
	if (!connection->base.failure)
		connection->base.may_retry = may_retry;
	pg_fail(connection, code, "%s (%s)", primary ? primary : PQresultErrorMessage(result),
	        state ? state : "no state");
}

static void lose(struct pg_connection *connection, const char *why)
{
	pg_fail(connection, ERR_UNAVAILABLE, "%s: %s", why,
	        connection->pg ? PQerrorMessage(connection->pg) : "not connected");
	pg_disconnect(connection);
}

/* ---- connecting ---- */

int pg_parse_url(const char *url, PQconninfoOption **ret_options, struct error *error)
{
	char *why = NULL; /* NULL without memory */
	int result = libpq_load(error);
	if (result)
		return result;
	*ret_options = PQconninfoParse(url, &why);
	/* Other texts of the library can contain parts of the password. */
	const char *parameters = strchr(url, '?');
	bool may_show = why && strncmp(why, "invalid URI query parameter", 27) == 0 && parameters &&
	                !strchr(parameters, '@');
	if (!*ret_options)
		result = error_cause(error, why ? ERR_VALIDATION : ERR_NO_MEMORY, "%.200s",
		                     may_show ? why : "postgresql: the address is not valid");
	PQfreemem(why);
	return result;
}

/* A warning during a commit says that the wait for the standby was cancelled: the data may be only
 * on this server. */
static void take_notice(void *context, const PGresult *notice)
{
	struct pg_connection *connection = context;
	const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
	if (severity && strcmp(severity, "WARNING") == 0)
		connection->commit_warned = true;
}

enum setting_use { ALL, REGISTRAR, REGISTRAR_UNSHARDED };

/* Settings that transactions depend on. statement_timeout is off, because no server timeout may end
 * a commit that waits for its standby. Waits for locks (commit timeout) and idle time in a
 * transaction are limited. All frequent statements use indexes, whatever the statistics of a new
 * table are. A distributing server plans for the bound account. */
static const struct {
	const char *name, *value; /* NULL: the commit timeout */
	enum setting_use use;
} settings[] = {
	{"synchronous_commit", "on", ALL},
	{"statement_timeout", "0", ALL},
	{"lock_timeout", NULL, ALL},
	{"idle_in_transaction_session_timeout", "30s", ALL},
	{"jit", "off", ALL},
	{"enable_seqscan", "off", ALL},
	{"enable_hashjoin", "off", REGISTRAR},
	{"enable_mergejoin", "off", REGISTRAR},
	{"enable_bitmapscan", "off", REGISTRAR},
	{"plan_cache_mode", "force_generic_plan", REGISTRAR_UNSHARDED},
};

static bool is_set(const struct pg_db *db, enum setting_use of, enum pg_use use)
{
	return of == ALL || use == PG_SHARD ||
	       (use == PG_REGISTRAR && (of != REGISTRAR_UNSHARDED || !db->base.sharded));
}

static void write_settings(const struct pg_db *db, enum pg_use use, bool for_transaction,
                           char sql[PG_SETTINGS_MAX])
{
	const char *scope = for_transaction ? "true" : "false";
	size_t size = 0;
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		if (!is_set(db, settings[i].use, use))
			continue;
		char timeout[24];
		snprintf(timeout, sizeof timeout, "%lld", (long long)(db->commit_timeout_us / 1000));
		const char *value = settings[i].value ? settings[i].value : timeout;
		if (use == PG_LOCAL && strcmp(settings[i].name, "synchronous_commit") == 0)
			value = "local";
		size +=
			(size_t)snprintf(sql + size, PG_SETTINGS_MAX - size, "%s set_config('%s', '%s', %s)",
		                     size ? "," : "SELECT", settings[i].name, value, scope);
		assert(size < PG_SETTINGS_MAX);
	}
	size += (size_t)snprintf(sql + size, PG_SETTINGS_MAX - size, ", " PG_CLOCK_NOW);
	assert(size < PG_SETTINGS_MAX);
}

void pg_write_transaction_settings(struct pg_db *db)
{
	for (int use = 0; use < PG_USES; use++)
		write_settings(db, (enum pg_use)use, true, db->transaction_settings[use]);
}

static int64_t last_column(const PGresult *row)
{
	return strtoll(PQgetvalue(row, 0, PQnfields(row) - 1), NULL, 10);
}

/* The answer may be delayed, so the offset is a lower bound. */
void pg_note_clock(struct pg_connection *connection, const PGresult *row, int64_t sent_us)
{
	struct pg_db *db = pg_db(connection->base.db);
	(void)sent_us;
	if (!*connection->host)
		atomic_store(&db->clock_offset_us, last_column(row) - clock_monotonic_us());
}

/* The server's clock was not past this value when the query was sent, however long the answer
 * took. */
void pg_note_latest_clock(struct pg_connection *connection, const PGresult *row, int64_t sent_us)
{
	struct pg_db *db = pg_db(connection->base.db);
	if (!*connection->host)
		atomic_store(&db->clock_latest_us, last_column(row) - sent_us);
}

/* Returns the last result of the statements; NULL on timeout or failure. */
static PGresult *query_with_deadline(PGconn *pg, const char *sql)
{
	int64_t deadline_us = clock_monotonic_us() + SET_UP_WAIT_US;
	PGresult *last = NULL, *next = NULL;
	bool good = PQsendQuery(pg, sql) == 1;
	while (good) {
		while (good && PQisBusy(pg)) {
			struct pollfd socket = {.fd = PQsocket(pg), .events = POLLIN};
			int64_t left_us = deadline_us - clock_monotonic_us();
			good = PQflush(pg) >= 0 && left_us > 0 &&
			       poll(&socket, 1, (int)(left_us / 1000 + 1)) != 0 && PQconsumeInput(pg) == 1;
		}
		if (!good || !(next = PQgetResult(pg)))
			break;
		PQclear(last);
		last = next;
	}
	if (!good)
		PQclear(last);
	return good ? last : NULL;
}

/* A transaction within a pipeline does not count as idle. So TCP settings make the server detect a
 * disconnected node; otherwise rows that it locked could stay locked for hours. */
static bool set_up(struct pg_connection *connection)
{
	struct pg_db *db = pg_db(connection->base.db);
	char session[PG_SETTINGS_MAX], sql[PG_SETTINGS_MAX + 512];
	write_settings(db, connection->use, false, session);
	int size = snprintf(sql, sizeof sql,
	                    "SET tcp_keepalives_idle = 3; SET tcp_keepalives_interval = 1; "
	                    "SET tcp_keepalives_count = 3; SET tcp_user_timeout = '6s'; "
	                    "SET client_encoding = 'UTF8'; %s",
	                    session);
	assert(size > 0 && (size_t)size < sizeof sql);
	int64_t asked_us = clock_boot_us();
	PGresult *result = query_with_deadline(connection->pg, sql);
	bool done = PQresultStatus(result) == PGRES_TUPLES_OK;
	if (done) {
		pg_note_clock(connection, result, asked_us);
		pg_note_latest_clock(connection, result, asked_us);
	}
	PQclear(result);
	return done && PQenterPipelineMode(connection->pg) == 1 &&
	       PQsetnonblocking(connection->pg, 1) == 0;
}

static const char lock_schema[] = "SELECT pg_try_advisory_lock_shared(" PG_SCHEMA_LOCK ")";
static const char read_schema[] =
	"SELECT max(value) FILTER (WHERE name = 'schema'),"
	" max(value) FILTER (WHERE name = 'schema_programs') FROM settings";

static bool is_true(PGresult *row)
{
	return PQresultStatus(row) == PGRES_TUPLES_OK && strcmp(PQgetvalue(row, 0, 0), "t") == 0;
}

/* Direct connections to shard servers depend on one to the coordinator. */
static bool must_hold_schema(const struct pg_connection *connection)
{
	return pg_db(connection->base.db)->guards_schema && !*connection->host;
}

static void set_refusal(struct pg_connection *connection, const char *why)
{
	snprintf(connection->refusal, sizeof connection->refusal, "postgresql: %s", why);
}

/* Locks the schema, then checks it: in this order, and in separate transactions, so that no step
 * is missed. The lock ends with the connection. */
static int hold_schema(struct pg_connection *connection, struct error *error)
{
	if (!must_hold_schema(connection))
		return OK;
	PGresult *lock = query_with_deadline(connection->pg, lock_schema);
	PGresult *row = is_true(lock) ? query_with_deadline(connection->pg, read_schema) : NULL;
	struct error cause = {0};
	int result = ERR_UNAVAILABLE;
	if (!row && PQresultStatus(lock) == PGRES_TUPLES_OK)
		set_refusal(connection, "the store is being migrated");
	else if (PQresultStatus(row) != PGRES_TUPLES_OK)
		set_refusal(connection, PQerrorMessage(connection->pg));
	else if (db_judge_schema(connection->base.db, PQgetvalue(row, 0, 0), PQgetvalue(row, 0, 1),
	                         &cause))
		set_refusal(connection, error_message(&cause, LANGUAGE_ENGLISH));
	else
		result = OK;
	PQclear(lock);
	PQclear(row);
	connection->holds_schema = !result;
	return result ? error_cause(error, result, "%s", connection->refusal) : OK;
}

/* Also checks whether the server has closed the connection since, and whether it was made after the
 * schema was checked. The first call may read the server's last message, the second the end of the
 * stream. */
static bool is_usable(struct pg_connection *connection)
{
	return connection->pg && connection->holds_schema == must_hold_schema(connection) &&
	       PQconsumeInput(connection->pg) == 1 && PQconsumeInput(connection->pg) == 1 &&
	       PQstatus(connection->pg) == CONNECTION_OK;
}

/* Returns whether a pending commit is over. Everything sent ends with one sync; results of earlier
 * statements may arrive first. */
bool pg_is_answered(PGconn *pg)
{
	bool ended = false; /* whether the last NULL ended a statement; a second NULL ends them all */
	while (PQconsumeInput(pg) == 1 && PQstatus(pg) == CONNECTION_OK) {
		if (PQisBusy(pg))
			return false;
		PGresult *result = PQgetResult(pg);
		bool last = PQresultStatus(result) == PGRES_PIPELINE_SYNC || (!result && ended);
		ended = !result;
		PQclear(result);
		if (last)
			return true;
	}
	return true;
}

/* Checks a commit with an unknown outcome. Returns true while it is pending. */
static bool in_limbo(struct pg_connection *connection)
{
	if (connection->limbo_since_us == 0)
		return false;
	int64_t longest = PG_LIMBO_TIMEOUTS * pg_db(connection->base.db)->commit_timeout_us;
	if (connection->pg && !pg_is_answered(connection->pg) &&
	    clock_monotonic_us() - connection->limbo_since_us < longest)
		return true;
	/* The outcome does not matter here: clients repeat their requests. */
	pg_disconnect(connection);
	return false;
}

/* Reports a refused connection; for a password, with the places where one can be. */
static void refuse_connection(const char *why, struct error *error)
{
	bool missing = strstr(why, "no password supplied");
	bool wrong = strstr(why, "password authentication failed");
	int size = (int)strlen(why);
	while (size && why[size - 1] == '\n')
		size--;
	error_cause(error, ERR_UNAVAILABLE, "postgresql: %.*s%s", size, why,
	            missing || wrong ? "; the password belongs in a file that 'passfile=' in store.url "
	                               "names (mode 0600), in PGPASSWORD, or in store.url"
	                             : "");
	error_blame(error, missing || wrong ? BLAME_PASSWORD : BLAME_NONE);
}

int pg_connect(struct pg_connection *connection, struct error *error)
{
	struct pg_db *db = pg_db(connection->base.db);
	if (in_limbo(connection))
		return error_cause(error, ERR_UNAVAILABLE,
		                   "postgresql: an earlier commit is waiting for its standby");
	if (is_usable(connection))
		return OK;
	pg_disconnect(connection);
	if (clock_monotonic_us() < connection->retry_at_us)
		return error_cause(error, ERR_UNAVAILABLE, "%s",
		                   *connection->refusal ? connection->refusal
		                                        : "postgresql: the server was unreachable");
	/* Options of the address override the entries before it. */
	const char *keywords[] = {"target_session_attrs",
	                          "connect_timeout",
	                          "tcp_user_timeout",
	                          "keepalives_idle",
	                          "keepalives_interval",
	                          "keepalives_count",
	                          "fallback_application_name",
	                          "dbname",
	                          *connection->host ? "host" : NULL,
	                          "port",
	                          "hostaddr",
	                          NULL};
	const char *values[] = {
		"read-write",     "3", "5000", "3", "1", "3", "constancia", db->url, connection->host,
		connection->port, "",  NULL};
	int64_t began_us = clock_monotonic_us();
	*connection->refusal = '\0';
	connection->pg = PQconnectdbParams(keywords, values, 1);
	bool connected = connection->pg && PQstatus(connection->pg) == CONNECTION_OK;
	int result = connected ? hold_schema(connection, error) : OK;
	if (connected && !result) {
		PQsetNoticeReceiver(connection->pg, take_notice, connection);
		if (set_up(connection))
			return OK;
	}
	if (!result)
		refuse_connection(connection->pg ? PQerrorMessage(connection->pg) : "out of memory", error);
	pg_disconnect(connection);
	/* A long wait for one server delays transactions on other servers. */
	int64_t now_us = clock_monotonic_us();
	int64_t pause_us = *connection->host ? 10 * (now_us - began_us) : 0;
	connection->retry_at_us = now_us + (pause_us > CONNECT_PAUSE_US ? pause_us : CONNECT_PAUSE_US);
	return ERR_UNAVAILABLE;
}

void pg_disconnect(struct pg_connection *connection)
{
	pg_forget_queries(connection);
	PQfinish(connection->pg);
	connection->pg = NULL;
	connection->in_transaction = connection->limited = connection->holds_schema = false;
	connection->limbo_since_us = 0;
	connection->waiting_first = connection->waiting_count = 0;
}

/* ---- the pipeline ---- */

int64_t pg_deadline(const struct pg_connection *connection)
{
	int64_t wait_us = pg_db(connection->base.db)->statement_wait_us[connection->use];
	return clock_monotonic_us() + (connection->wait_limit_us ? connection->wait_limit_us : wait_us);
}

void pg_give_up(struct pg_connection *connection)
{
	const struct pg_extension *extension = pg_db(connection->base.db)->extension;
	if (extension->cancel)
		extension->cancel(connection);
	pg_disconnect(connection);
}

bool pg_make_room(struct pg_connection *connection)
{
	if (connection->base.failure)
		return false;
	if (!connection->pg) {
		pg_fail(connection, ERR_UNAVAILABLE, "the connection is lost");
		return false;
	}
	const struct pg_db *db = pg_db(connection->base.db);
	if (db->extension->keep_alive)
		db->extension->keep_alive(connection);
	if (connection->waiting_count >= db->waiting_max &&
	    !pg_collect(connection, NULL, pg_deadline(connection)))
		return false;
	return !connection->base.failure;
}

void pg_note_sent(struct pg_connection *connection, enum pg_kind kind, struct pg_query *query,
                  pg_judge_function *judge)
{
	assert(connection->waiting_count < WAITING_MAX); /* else a result goes to another query */
	assert(kind != PG_PREPARE || query);
	size_t at = (connection->waiting_first + connection->waiting_count++) % WAITING_MAX;
	connection->waiting[at] = (struct pg_waiting){kind, query, judge, false, clock_boot_us()};
}

void pg_sync(struct pg_connection *connection)
{
	if (!connection->pg)
		return;
	if (PQpipelineSync(connection->pg) == 1)
		pg_note_sent(connection, PG_SYNC, NULL, NULL);
	else
		lose(connection, "sending");
}

/* Waits for input and meanwhile sends pending output. */
static bool wait_for_input(struct pg_connection *connection, int64_t deadline_us)
{
	int unsent = PQflush(connection->pg);
	if (unsent < 0) {
		lose(connection, "sending");
		return false;
	}
	int64_t left_us = deadline_us - clock_monotonic_us();
	struct pollfd socket = {.fd = PQsocket(connection->pg),
	                        .events = (short)(POLLIN | (unsent ? POLLOUT : 0))};
	int ready = left_us > 0 ? poll(&socket, 1, (int)(left_us / 1000 + 1)) : 0;
	if (ready == 0)
		return false; /* deadline passed */
	if ((ready < 0 && errno != EINTR) || PQconsumeInput(connection->pg) != 1) {
		lose(connection, "receiving");
		return false;
	}
	return true;
}

/* Takes a result of the first waiting statement. Returns true if that was the last one. */
static bool take_result(struct pg_connection *connection, struct pg_waiting *first,
                        PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);
	if (!result)
		return true;
	bool good = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
	if (first->kind == PG_PREPARE)
		first->query->prepared = good; /* it failed, or was skipped after a failure */
	if (status == PGRES_FATAL_ERROR) {
		fail_by_result(connection, result);
	} else if (good && first->judge) {
		first->judge(connection, result, first->sent_us);
	} else if (good && first->query && first->kind == PG_STATEMENT) {
		assert(first->query->base.connection == &connection->base);
		PQclear(first->query->result);
		first->query->result = result;
		first->query->state = PG_HERE;
		result = NULL;
	}
	PQclear(result);
	return status == PGRES_PIPELINE_SYNC;
}

bool pg_collect(struct pg_connection *connection, const struct pg_query *until, int64_t deadline_us)
{
	assert(connection->waiting_count <= WAITING_MAX);
	if (connection->pg && connection->waiting_count > 0)
		PQsendFlushRequest(connection->pg);
	while (connection->pg && connection->waiting_count > 0) {
		if (PQisBusy(connection->pg)) {
			if (wait_for_input(connection, deadline_us))
				continue;
			if (connection->pg)
				pg_fail(connection, ERR_UNAVAILABLE, "no answer in time");
			return false;
		}
		assert(connection->waiting_first < WAITING_MAX);
		struct pg_waiting *first = &connection->waiting[connection->waiting_first];
		PGresult *result = PQgetResult(connection->pg);
		/* A statement has a result and an end; a sync has only a result. */
		if (!result && !first->answered) {
			lose(connection, "unexpected result in the pipeline");
			return false;
		}
		first->answered = true;
		if (result && PQstatus(connection->pg) == CONNECTION_BAD) {
			fail_by_result(connection, result);
			PQclear(result);
			lose(connection, "receiving");
			return false;
		}
		bool wanted = until && first->query == until && first->kind == PG_STATEMENT;
		if (!take_result(connection, first, result))
			continue;
		connection->waiting_first = (connection->waiting_first + 1) % WAITING_MAX;
		connection->waiting_count--;
		if (wanted)
			return true;
	}
	return connection->pg != NULL;
}
