/* What a commit on a shard promises, by what its server says of its standbys. */
#include "testing.h"
#include "db/citus/internal.h"

/* A row of such a query, with the positions of the standbys after a commit. */
static PGresult *answer(const char *const values[7])
{
	PGresAttDesc columns[7] = {{0}};
	static char names[7][2] = {"a", "b", "c", "d", "e", "f", "g"};
	int count = values[6] ? 7 : 6;
	for (int i = 0; i < count; i++)
		columns[i].name = names[i];
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	assert_int_equal(PQsetResultAttrs(result, count, columns), 1);
	for (int i = 0; i < count; i++) {
		char value[64];
		strcpy(value, values[i]);
		assert_int_equal(PQsetvalue(result, 0, i, value, (int)strlen(value)), 1);
	}
	return result;
}

TEST_CASE(a_shards_standbys_are_beyond_what_was_written)
{
	static const struct {
		unsigned wanted;
		const char *values[7];
		int failure;
	} rows[] = {
		{1, {"on", "on", "on", "a", "1", "0"}, OK},
		{1, {"on", "on", "on", "a", "1", "0", "1001"}, OK},
		{1, {"on", "on", "on", "a", "1", "0", "1000"}, ERR_UNKNOWN_OUTCOME},
		{1, {"on", "on", "on", "a", "1", "0", ""}, ERR_UNKNOWN_OUTCOME},
		{1, {"on", "on", "on", "a, b", "2", "0", "999 1001"}, OK},
		{2, {"on", "on", "on", "2 (a, b)", "2", "0", "999 1001"}, ERR_UNKNOWN_OUTCOME},
		{2, {"on", "on", "on", "ANY 2 (a, b, c)", "3", "0", "1001 7 18446744073709551615"}, OK},
		{1, {"on", "on", "on", "", "0", "0", "1001"}, ERR_UNAVAILABLE},
		{0, {"on", "on", "on", "", "0", "0", ""}, OK},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct pg_db db = {.require_replicas = rows[i].wanted};
		struct citus_connection *connection = calloc(1, sizeof *connection);
		assert_non_null(connection);
		connection->pg.base.db = &db.base;
		connection->written = 1000;
		PGresult *row = answer(rows[i].values);
		citus_judge_shard(&connection->pg, row, 0);
		PQclear(row);
		assert_int_equal(connection->pg.base.failure, rows[i].failure);
		free(connection);
	}
}

TEST_CASE(an_account_that_no_shard_has_is_told)
{
	struct pg_db db = {0};
	struct citus_connection *connection = calloc(1, sizeof *connection);
	assert_non_null(connection);
	connection->pg.base.db = &db.base;
	PGresult *none = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	citus_judge_shard(&connection->pg, none, 0);
	PQclear(none);
	assert_int_equal(connection->pg.base.failure, ERR_INTERNAL);
	free(connection);
}

static int load_library(void **state)
{
	return libpq_load(NULL);
}

TEST_MAIN(load_library, NULL)
