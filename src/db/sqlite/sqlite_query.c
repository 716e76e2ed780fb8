/* Statements: texts, parameters and rows. */
#include <assert.h>
#include <stdlib.h>

#include "db/sqlite/sqlite_internal.h"

/* Row locks are for engines with several writing connections. */
static size_t size_without_lock(const char *sql)
{
	static const char *const suffixes[] = {" FOR UPDATE", " FOR UPDATE SKIP LOCKED",
	                                       " FOR KEY SHARE"};
	size_t size = strlen(sql);
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t length = strlen(suffixes[i]);
		if (size > length && strcmp(sql + size - length, suffixes[i]) == 0)
			return size - length;
	}
	return size;
}

static int prepare(struct sqlite_query *query)
{
	assert(!query->statement);
	struct sqlite_connection *connection = connection_of(query);
	if (!connection->sqlite && sqlite_reader_open(connection))
		return connection->base.failure;
	int size = (int)size_without_lock(query->sql);
	if (sqlite3_prepare_v3(connection->sqlite, query->sql, size, SQLITE_PREPARE_PERSISTENT,
	                       &query->statement, NULL) != SQLITE_OK)
		return sqlite_fail(connection, query->sql);
	int count = sqlite3_bind_parameter_count(query->statement);
	for (int i = 1; i <= count; i++) {
		int number = atoi(sqlite3_bind_parameter_name(query->statement, i) + 1);
		if (number < 1 || number > PARAMETERS_MAX)
			abort(); /* the statement is a constant of the program */
		query->places[number] = (uint8_t)i;
	}
	return OK;
}

/* Returns the index of the next parameter; 0, which SQLite refuses, after the last one. */
static int next_place(struct sqlite_query *query)
{
	return query->bound < PARAMETERS_MAX ? query->places[++query->bound] : 0;
}

struct db_query *sqlite_make_query(struct db_connection *base, const char *literal_sql,
                                   bool long_result)
{
	struct sqlite_connection *connection = sqlite_connection(base);
	uintptr_t address = (uintptr_t)literal_sql;
	size_t at = (address >> 4 ^ address >> 12) % QUERY_CACHE_MAX;
	size_t tried = 0;
	while (connection->queries[at].sql && connection->queries[at].sql != literal_sql) {
		at = (at + 1) % QUERY_CACHE_MAX;
		if (++tried == QUERY_CACHE_MAX)
			abort(); /* more statements than the program has */
	}
	struct sqlite_query *query = &connection->queries[at];
	if (!query->sql) {
		query->base.connection = base;
		query->sql = literal_sql;
	}
	assert(query->base.connection == base); /* rows of one holder stay with it */
	if (!query->statement)
		prepare(query);
	else
		sqlite3_reset(query->statement);
	query->bound = 0;
	return &query->base;
}

void sqlite_bind_integer(struct db_query *base, int64_t value)
{
	struct sqlite_query *query = sqlite_query(base);
	sqlite3_bind_int64(query->statement, next_place(query), value);
}

void sqlite_bind_text_slice(struct db_query *base, struct slice text)
{
	assert(text.size <= INT_MAX); /* else a part would be stored */
	struct sqlite_query *query = sqlite_query(base);
	sqlite3_bind_text(query->statement, next_place(query), text.data ? text.data : "",
	                  (int)text.size, SQLITE_STATIC);
}

void sqlite_bind_bytes(struct db_query *base, const void *data, size_t size)
{
	assert(size <= INT_MAX);
	struct sqlite_query *query = sqlite_query(base);
	sqlite3_bind_blob(query->statement, next_place(query), data, (int)size, SQLITE_STATIC);
}

void sqlite_bind_nothing(struct db_query *base)
{
	struct sqlite_query *query = sqlite_query(base);
	sqlite3_bind_null(query->statement, next_place(query));
}

bool sqlite_step(struct db_query *base)
{
	struct sqlite_query *query = sqlite_query(base);
	if (base->connection->failure || !query->statement)
		return false;
	int result = sqlite3_step(query->statement);
	if (result == SQLITE_ROW)
		return true;
	if (result != SQLITE_DONE)
		sqlite_fail(connection_of(query), query->sql);
	return false;
}

int sqlite_end(struct db_query *base, struct error *error)
{
	if (sqlite_query(base)->statement)
		sqlite3_reset(sqlite_query(base)->statement);
	return db_report(base->connection, error);
}

int sqlite_execute(struct db_query *base, int64_t *ret_changes, struct error *error)
{
	while (sqlite_step(base))
		continue;
	if (ret_changes)
		*ret_changes = sqlite3_changes64(connection_of(sqlite_query(base))->sqlite);
	return sqlite_end(base, error);
}

int64_t sqlite_integer(struct db_query *base, int column)
{
	return sqlite3_column_int64(sqlite_query(base)->statement, column);
}

bool sqlite_is_null(struct db_query *base, int column)
{
	return sqlite3_column_type(sqlite_query(base)->statement, column) == SQLITE_NULL;
}

struct slice sqlite_text(struct db_query *base, int column)
{
	sqlite3_stmt *statement = sqlite_query(base)->statement;
	const void *data = sqlite3_column_text(statement, column);
	return slice_make(data ? data : "", (size_t)sqlite3_column_bytes(statement, column));
}

struct slice sqlite_blob(struct db_query *base, int column)
{
	sqlite3_stmt *statement = sqlite_query(base)->statement;
	const void *data = sqlite3_column_blob(statement, column);
	return slice_make(data ? data : "", (size_t)sqlite3_column_bytes(statement, column));
}
