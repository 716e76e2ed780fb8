/* How much the overview of an account reads, in steps of SQLite's virtual machine. */
#include <sqlite3.h>

#include "testing.h"
#include "sample.h"
#include "store/transaction.h"
#include "store/usage/overview.h"

#define IDLE_CHAINS 10000

static int64_t steps;

int __real_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement)
{
	int result = __real_sqlite3_step(statement);
	steps += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1);
	return result;
}

static int64_t read_overview(struct sample *sample, struct account_activity *activity)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)4 << 20};
	steps = 0;
	assert_int_equal(store_read_activity(sample->store, slice_of(sample->account_id),
	                                     sample->now_us, &arena, activity, NULL),
	                 OK);
	return steps;
}

/* Adds live chains whose events are all sealed. */
static void add_idle_chains(struct sample *sample)
{
	struct db_connection *connection = begin_write(sample->store, NULL);
	assert_int_equal(db_failure(connection), OK);
	struct db_query *query = db_query(
		connection, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $2)"
					" INSERT INTO chains (account, chain, created_at, genesis_hash, last_sequence,"
					" last_chain_hash, sealed_sequence, sealed_before)"
					" SELECT $1, 1000000 + 2 * i, 1, zeroblob(32), 7, zeroblob(32), 7, 7 FROM n");
	db_bind_integer(query, sample->account);
	db_bind_integer(query, IDLE_CHAINS);
	assert_int_equal(end_write(connection, db_execute(query, NULL, NULL), NULL), OK);
}

TEST_CASE(chains_that_wait_for_nothing_are_not_looked_at)
{
	static struct account_activity activity;
	struct sample sample = {0};
	sample_open(&sample, MODALITY_HASH_ONLY, 100);
	sample_register(&sample, MODE_LIVE, 3);
	int64_t before = read_overview(&sample, &activity);
	assert_int_equal(activity.pending_events, 3);
	assert_true(before > 0 && before < IDLE_CHAINS);
	add_idle_chains(&sample);
	assert_in_range(read_overview(&sample, &activity), 1, (uintmax_t)before + 100);
	assert_int_equal(activity.pending_events, 3);
	sample_seal(&sample);
	(void)read_overview(&sample, &activity);
	assert_int_equal(activity.pending_events, 0);
	assert_int_equal(activity.oldest_pending_at_us, TIME_NONE);
	sample_close(&sample);
}

TEST_MAIN(NULL, NULL)
