/* Statements of the PostgreSQL driver: preparation, parameters, execution, rows. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "db/postgres/postgres_internal.h"

/* Type OIDs of the catalog. */
#define INT8_OID 20
#define TEXT_OID 25
#define BYTEA_OID 17
#define NUMERIC_OID 1700
#define INT8_ARRAY_OID 1016
#define TEXT_ARRAY_OID 1009
#define BYTEA_ARRAY_OID 1001

/* ---- making and binding ---- */

static struct pg_query *find_slot(struct pg_connection *connection, const char *literal_sql,
                                  int64_t variant)
{
	uintptr_t address = (uintptr_t)literal_sql;
	size_t at = (address >> 4 ^ address >> 12 ^ (uint64_t)variant * 37) % QUERIES_MAX;
	for (size_t tried = 0; tried < QUERIES_MAX; tried++, at = (at + 1) % QUERIES_MAX) {
		struct pg_query *query = &connection->queries[at];
		if (query->sql && (query->sql != literal_sql || query->variant != variant))
			continue;
		if (!query->sql) {
			query->sql = literal_sql;
			query->variant = variant;
			connection->query_count++;
			query->base.connection = &connection->base;
			snprintf(query->name, sizeof query->name, "q%zu", at);
		}
		assert(query->base.connection == &connection->base);
		return query;
	}
	abort(); /* more statements than the program has */
}

static void give_up(struct pg_connection *connection)
{
	pg_fail(connection, ERR_UNAVAILABLE, "sending: %s", PQerrorMessage(connection->pg));
	pg_disconnect(connection);
}

static void finish(struct pg_query *query)
{
	struct pg_connection *connection = pg_connection(query->base.connection);
	/* The result was not read. */
	bool lost = query->state == PG_SENT && !pg_collect(connection, query, pg_deadline(connection));
	PQclear(query->result);
	query->result = NULL;
	query->state = PG_BINDING;
	if (!query->cursor_open)
		return;
	query->cursor_open = false;
	char sql[24];
	snprintf(sql, sizeof sql, "CLOSE %s", query->name);
	if (lost || !pg_make_room(connection))
		return;
	if (PQsendQueryParams(connection->pg, sql, 0, NULL, NULL, NULL, NULL, 0) == 1)
		pg_note_sent(connection, PG_STATEMENT, NULL, NULL);
	else
		give_up(connection);
}

struct db_query *pg_make_query(struct db_connection *base, const char *literal_sql,
                               bool long_result)
{
	struct pg_connection *connection = pg_connection(base);
	struct pg_query *query = find_slot(connection, literal_sql, connection->variant);
	finish(query);
	query->long_result = long_result;
	query->row = -1;
	connection->binding = query;
	connection->bound = 0;
	return &query->base;
}

static int next_place(struct db_query *base)
{
	struct pg_connection *connection = pg_connection(base->connection);
	if (connection->binding != pg_query(base) || connection->bound == PARAMETERS_MAX)
		abort(); /* programming error */
	return connection->bound++;
}

static void bind(struct db_query *base, Oid type, const void *data, size_t size)
{
	struct pg_connection *connection = pg_connection(base->connection);
	assert(size <= INT_MAX); /* else a part would be stored */
	int place = next_place(base);
	connection->types[place] = type;
	connection->values[place] = data;
	connection->lengths[place] = (int)size;
	connection->formats[place] = 1;
}

void pg_bind_integer(struct db_query *base, int64_t value)
{
	struct pg_connection *connection = pg_connection(base->connection);
	assert(connection->bound < PARAMETERS_MAX); /* before the place is written */
	uint64_t *wire = &connection->integers[connection->bound];
	*wire = __builtin_bswap64((uint64_t)value);
	bind(base, INT8_OID, wire, sizeof *wire);
}

void pg_bind_text(struct db_query *base, struct slice text)
{
	bind(base, TEXT_OID, text.data ? text.data : "", text.size);
}

void pg_bind_blob(struct db_query *base, const void *data, size_t size)
{
	bind(base, BYTEA_OID, data, size);
}

void pg_bind_null(struct db_query *base)
{
	bind(base, 0, NULL, 0);
}

static void put_word(char *wire, uint32_t value)
{
	uint32_t word = __builtin_bswap32(value);
	memcpy(wire, &word, sizeof word);
}

/* The header: number of dimensions, whether NULLs occur, element type, number of elements, index of
 * the first. */
void pg_bind_array(struct db_query *base, struct db_array *array)
{
	assert(array->type == DB_INTEGERS || array->type == DB_TEXTS || array->type == DB_BLOBS);
	static const Oid elements[] = {INT8_OID, TEXT_OID, BYTEA_OID};
	static const Oid arrays[] = {INT8_ARRAY_OID, TEXT_ARRAY_OID, BYTEA_ARRAY_OID};
	struct pg_connection *connection = pg_connection(base->connection);
	if (buf_check(&array->wire)) {
		pg_fail(connection, ERR_NO_MEMORY, "a parameter is too large");
		bind(base, arrays[array->type], NULL, 0);
		return;
	}
	assert(array->wire.size >= DB_ARRAY_HEADER_SIZE && array->count <= INT32_MAX);
	char *wire = array->wire.data;
	put_word(wire, array->count ? 1 : 0);
	put_word(wire + 4, array->has_null);
	put_word(wire + 8, elements[array->type]);
	put_word(wire + 12, (uint32_t)array->count);
	put_word(wire + 16, 1);
	bind(base, arrays[array->type], wire, array->count ? array->wire.size : 12);
}

void pg_forget_queries(struct pg_connection *connection)
{
	for (size_t i = 0; i < QUERIES_MAX; i++) {
		struct pg_query *query = &connection->queries[i];
		PQclear(query->result);
		query->result = NULL;
		query->state = PG_BINDING;
		query->prepared = false;
		query->cursor_open = false;
	}
}

#define QUERIES_LEFT 256 /* a transaction has fewer */

void pg_make_room_for_queries(struct pg_connection *connection)
{
	if (connection->query_count <= QUERIES_MAX - QUERIES_LEFT)
		return;
	for (size_t i = 0; i < QUERIES_MAX; i++) {
		PQclear(connection->queries[i].result);
		free(connection->queries[i].text);
	}
	memset(connection->queries, 0, sizeof connection->queries);
	connection->query_count = 0;
	connection->bound = 0;
	/* Their names can be reused. */
	if (PQsendQueryParams(connection->pg, "DEALLOCATE ALL", 0, NULL, NULL, NULL, NULL, 0) == 1)
		pg_note_sent(connection, PG_STATEMENT, NULL, NULL);
	else
		give_up(connection);
}

/* ---- sending ---- */

static bool prepare(struct pg_connection *connection, struct pg_query *query)
{
	if (query->prepared)
		return true;
	assert(!query->variant || pg_db(connection->base.db)->extension->rewrite);
	if (query->variant && !query->text)
		query->text = pg_db(connection->base.db)->extension->rewrite(query);
	const char *sql = query->variant ? query->text : query->sql;
	if (!sql ||
	    PQsendPrepare(connection->pg, query->name, sql, connection->bound, connection->types) != 1)
		return false;
	pg_note_sent(connection, PG_PREPARE, query, NULL);
	query->prepared = true; /* unless its result is an error */
	return true;
}

static bool send_statement(struct pg_connection *connection, struct pg_query *query,
                           struct pg_query *receiver)
{
	if (!prepare(connection, query) ||
	    PQsendQueryPrepared(connection->pg, query->name, connection->bound, connection->values,
	                        connection->lengths, connection->formats, 1) != 1)
		return false;
	pg_note_sent(connection, PG_STATEMENT, receiver, NULL);
	return true;
}

static bool send_fetch(struct pg_connection *connection, struct pg_query *query)
{
	char sql[48];
	snprintf(sql, sizeof sql, "FETCH %d FROM %s", pg_db(connection->base.db)->fetched_max,
	         query->name);
	if (PQsendQueryParams(connection->pg, sql, 0, NULL, NULL, NULL, NULL, 1) != 1)
		return false;
	pg_note_sent(connection, PG_STATEMENT, query, NULL);
	return true;
}

static bool send_cursor(struct pg_connection *connection, struct pg_query *query)
{
	char sql[4096];
	int size =
		snprintf(sql, sizeof sql, "DECLARE %s NO SCROLL CURSOR FOR %s", query->name, query->sql);
	if (size >= (int)sizeof sql)
		abort(); /* the statement is a constant of the program */
	if (PQsendQueryParams(connection->pg, sql, connection->bound, connection->types,
	                      connection->values, connection->lengths, connection->formats, 1) != 1)
		return false;
	pg_note_sent(connection, PG_STATEMENT, NULL, NULL);
	query->cursor_open = true;
	return send_fetch(connection, query);
}

static void send(struct pg_connection *connection, struct pg_query *query,
                 struct pg_query *receiver)
{
	if (!pg_make_room(connection))
		return;
	assert(!query->long_result || connection->in_transaction); /* a cursor lives in one */
	bool sent = query->long_result ? send_cursor(connection, query)
	                               : send_statement(connection, query, receiver);
	if (!sent) {
		give_up(connection);
		return;
	}
	query->state = receiver ? PG_SENT : PG_BINDING;
	if (!connection->in_transaction)
		pg_sync(connection);
}

/* Sends with the bound parameters; the result has text format. */
static void send_judged(struct pg_connection *connection, pg_judge_function *judge,
                        struct pg_query *query)
{
	if (!pg_make_room(connection))
		return;
	if (prepare(connection, query) &&
	    PQsendQueryPrepared(connection->pg, query->name, connection->bound, connection->values,
	                        connection->lengths, connection->formats, 0) == 1)
		pg_note_sent(connection, PG_STATEMENT, NULL, judge);
	else
		give_up(connection);
}

void pg_send_text(struct pg_connection *connection, pg_judge_function *judge,
                  const char *literal_sql)
{
	connection->bound = 0;
	send_judged(connection, judge, find_slot(connection, literal_sql, 0));
}

void pg_send_number(struct pg_connection *connection, pg_judge_function *judge,
                    const char *literal_sql, int64_t number)
{
	struct pg_query *query = find_slot(connection, literal_sql, 0);
	connection->binding = query;
	connection->bound = 0;
	pg_bind_integer(&query->base, number);
	send_judged(connection, judge, query);
}

/* Outside a transaction a query may be the first use of a connection. */
static bool is_connected(struct pg_connection *connection)
{
	struct error error = {0};
	if (!connection->base.failure && !connection->in_transaction &&
	    pg_connect(connection, &error)) {
		connection->base.failure = error.code;
		connection->base.error = error;
	}
	return !connection->base.failure;
}

void pg_send(struct db_query *base)
{
	struct pg_connection *connection = pg_connection(base->connection);
	if (is_connected(connection))
		send(connection, pg_query(base), pg_query(base));
}

/* ---- reading ---- */

static bool collect(struct pg_connection *connection, struct pg_query *query)
{
	if (!pg_collect(connection, query, pg_deadline(connection)) && connection->pg)
		pg_give_up(connection);
	if (query->state != PG_HERE) /* never report an empty result instead */
		pg_fail(connection, ERR_UNAVAILABLE, "a result is missing");
	return !connection->base.failure;
}

static bool more_rows(struct pg_connection *connection, struct pg_query *query)
{
	if (!query->long_result || PQntuples(query->result) < pg_db(connection->base.db)->fetched_max)
		return false;
	if (!pg_make_room(connection))
		return false;
	if (!send_fetch(connection, query)) { /* never take this batch for the whole result */
		give_up(connection);
		return false;
	}
	query->state = PG_SENT;
	query->row = 0;
	return collect(connection, query) && PQntuples(query->result) > 0;
}

bool pg_step(struct db_query *base)
{
	struct pg_connection *connection = pg_connection(base->connection);
	struct pg_query *query = pg_query(base);
	if (query->state == PG_BINDING)
		pg_send(base);
	if (connection->base.failure)
		return false;
	if (query->state == PG_SENT && !collect(connection, query))
		return false;
	if (query->row + 1 < PQntuples(query->result)) {
		query->row++;
		return true;
	}
	return more_rows(connection, query);
}

int pg_end(struct db_query *base, struct error *error)
{
	finish(pg_query(base));
	return db_report(base->connection, error);
}

int pg_execute(struct db_query *base, int64_t *ret_changes, struct error *error)
{
	struct pg_connection *connection = pg_connection(base->connection);
	struct pg_query *query = pg_query(base);
	if (ret_changes)
		*ret_changes = 0;
	if (!is_connected(connection))
		return db_report(base->connection, error);
	if (!ret_changes && connection->in_transaction && query->state == PG_BINDING) {
		send(connection, query, NULL);
		return db_report(base->connection, error);
	}
	if (query->state == PG_BINDING)
		send(connection, query, query);
	bool here = query->state == PG_HERE || collect(connection, query);
	if (here && !connection->base.failure && ret_changes)
		*ret_changes = strtoll(PQcmdTuples(query->result), NULL, 10);
	return pg_end(base, error);
}

/* Format: number of base-10,000 digits, weight of the first, sign, scale. Fractions are truncated;
 * sums of integers have none. */
static int64_t read_numeric(struct pg_connection *connection, const char *wire, int size)
{
	uint16_t words[4 + 8] = {0};
	int count = size / 2 < 12 ? size / 2 : 12;
	for (int i = 0; i < count; i++)
		words[i] = (uint16_t)((uint8_t)wire[2 * i] << 8 | (uint8_t)wire[2 * i + 1]);
	int weight = (int16_t)words[1];
	int64_t sign = words[2] == 0x4000 ? -1 : 1;
	int64_t value = 0;
	for (int i = 0; i <= weight; i++) {
		int64_t digit = i < words[0] && i < 8 ? words[4 + i] : 0;
		if (__builtin_mul_overflow(value, 10000, &value) ||
		    __builtin_add_overflow(value, sign * digit, &value)) {
			pg_fail(connection, ERR_INTERNAL, "a sum does not fit into 64 bits");
			return 0;
		}
	}
	return value;
}

int64_t pg_integer(struct db_query *base, int column)
{
	struct pg_query *query = pg_query(base);
	const char *wire = PQgetvalue(query->result, query->row, column);
	int size = PQgetlength(query->result, query->row, column);
	if (PQftype(query->result, column) == NUMERIC_OID)
		return read_numeric(pg_connection(base->connection), wire, size);
	int64_t value = size > 0 && (int8_t)wire[0] < 0 ? -1 : 0;
	for (int i = 0; i < size && i < 8; i++)
		value = (int64_t)((uint64_t)value << 8 | (uint8_t)wire[i]);
	return value;
}

bool pg_is_null(struct db_query *base, int column)
{
	struct pg_query *query = pg_query(base);
	return PQgetisnull(query->result, query->row, column) == 1;
}

struct slice pg_text(struct db_query *base, int column)
{
	struct pg_query *query = pg_query(base);
	return slice_make(PQgetvalue(query->result, query->row, column),
	                  (size_t)PQgetlength(query->result, query->row, column));
}

struct slice pg_blob(struct db_query *base, int column)
{
	return pg_text(base, column);
}
