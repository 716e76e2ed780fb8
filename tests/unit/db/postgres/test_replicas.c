/* What the settings of a server state about standbys, and how its answer is judged. */
#include "testing.h"
#include "db/postgres/postgres_internal.h"

/* The spellings of synchronous_standby_names that a server accepts, and some that it refuses. */
TEST_CASE(counts_the_standbys_that_are_waited_for)
{
	static const struct {
		const char *names;
		unsigned count;
	} rows[] = {
		{"", 0},
		{" ", 0},
		{"\t\n ", 0},
		{"a", 1},
		{"*", 1},
		{"a, b", 1},
		{"\"a b\"", 1},
		{"1 (a)", 1},
		{"2 (a, b)", 2},
		{"2(a,b)", 2},
		{" 3 ( a , b , c )", 3},
		{"1 (*)", 1},
		{"FIRST 1 (a)", 1},
		{"FIRST 2 (a, b, c)", 2},
		{"first 2(a,b)", 2},
		{"First\t3 (a,b,c)", 3},
		{"FIRST\n2 (a, b)", 2},
		{"FIRST    10 (*)", 10},
		{"ANY 1 (a, b)", 1},
		{"ANY 2 (a, b, c)", 2},
		{"any 2(a,b)", 2},
		{"Any\n2\n(a, b)", 2},
		{"  ANY 2 (\"a\", \"b\")", 2},
		/* standbys with such names */
		{"first", 1},
		{"any", 1},
		{"first, any", 1},
		{"any, b", 1},
		{"anything", 1},
		{"firstly, b", 1},
		{"first2", 1},
		{"\"2\" , b", 1},
		{"\"2 (a, b)\"", 1},
		{"2", 1},
		{"\"FIRST 2 (a, b)\"", 1},
		{"a, 2", 1},
		/* counted as one rather than as too many */
		{"FIRST (a)", 1},
		{"99999999999999999999 (a)", 1},
		{"-1 (a)", 1},
		{"2 a (b)", 1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (pg_count_awaited_standbys(rows[i].names) != rows[i].count)
			fail_msg("'%s': %u", rows[i].names, pg_count_awaited_standbys(rows[i].names));
}

/* A row of pg_replica_query. */
static PGresult *answer(const char *const values[6])
{
	PGresAttDesc columns[6] = {{0}};
	static char names[6][2] = {"a", "b", "c", "d", "e", "f"};
	int count = 6;
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

TEST_CASE(judges_what_a_commit_can_promise)
{
	static const struct {
		unsigned wanted;
		const char *values[6]; /* synchronous_commit, fsync, full_page_writes, names, … */
		const char *reason;    /* NULL: all is well */
	} rows[] = {
		{1, {"on", "on", "on", "a", "1", "0"}, NULL},
		{1, {"remote_apply", "on", "on", "*", "3", "0"}, NULL},
		{2, {"on", "on", "on", "ANY 2 (a, b, c)", "3", "0"}, NULL},
		{2, {"on", "on", "on", "2 (a, b)", "2", "1"}, NULL},
		{1, {"off", "on", "on", "a", "1", "0"}, "synchronous_commit is off"},
		{1, {"local", "on", "on", "a", "1", "0"}, "synchronous_commit is local"},
		{1, {"remote_write", "on", "on", "a", "1", "0"}, "synchronous_commit is remote_write"},
		{1, {"on", "off", "on", "a", "1", "0"}, "fsync"},
		{1, {"on", "on", "off", "a", "1", "0"}, "full_page_writes"},
		{0, {"on", "on", "on", "", "0", "0"}, NULL},
		{0, {"on", "off", "on", "", "0", "0"}, "fsync"},
		{0, {"on", "on", "off", "", "0", "0"}, "full_page_writes"},
		{0, {"off", "on", "on", "", "0", "0"}, "synchronous_commit is off"},
		{1, {"on", "on", "on", "", "1", "0"}, "wait for 0 standbys"},
		{2, {"on", "on", "on", "a, b", "2", "0"}, "wait for 1 standbys"},
		{2, {"on", "on", "on", "FIRST 2 (a, b)", "1", "0"}, "1 synchronous standbys are connected"},
		{1, {"on", "on", "on", "a", "0", "0"}, "0 synchronous standbys are connected"},
		{1, {"on", "on", "on", "a", "0", "1"}, "GRANT pg_read_all_stats"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct pg_db db = {.require_replicas = rows[i].wanted};
		struct pg_connection *connection = calloc(1, sizeof *connection);
		assert_non_null(connection);
		connection->base.db = &db.base;
		PGresult *row = answer(rows[i].values);
		pg_judge_replicas_at(connection, row, "on a shard: ");
		PQclear(row);
		assert_int_equal(connection->base.failure, rows[i].reason ? ERR_UNAVAILABLE : OK);
		if (rows[i].reason) {
			assert_non_null(strstr(connection->base.error.cause, "on a shard: "));
			assert_non_null(strstr(connection->base.error.cause, rows[i].reason));
		}
		free(connection);
	}
}

static int load_library(void **state)
{
	return libpq_load(NULL);
}

TEST_MAIN(load_library, NULL)
