/* How statements name the shards of tables in place of the tables. */
#include "testing.h"
#include "base/clock.h"
#include "db/citus/internal.h"

TEST_CASE(a_table_is_its_piece_under_its_own_name)
{
	static const struct {
		const char *sql, *named;
	} rows[] = {
		{"SELECT sum(events) FROM events WHERE events.account = $1",
	     "SELECT sum(events) FROM events_7 AS events WHERE events.account = $1"},
		{"SELECT 1 FROM chains c LEFT JOIN events AS e ON e.account = c.account FOR UPDATE OF chains",
	     "SELECT 1 FROM chains_8 c LEFT JOIN events_7 AS e ON e.account = c.account "
	     "FOR UPDATE OF chains"},
		{"INSERT INTO events(account, events) SELECT $1, * FROM unnest($2::bigint[])",
	     "INSERT INTO events_7 AS events(account, events) SELECT $1, * FROM unnest($2::bigint[])"},
		{"INSERT INTO chains AS c(events) VALUES ($1) ON CONFLICT DO UPDATE SET events = c.events",
	     "INSERT INTO chains_8 AS c(events) VALUES ($1) ON CONFLICT DO UPDATE SET events = c.events"},
		{"UPDATE events SET chains = $1", "UPDATE events_7 AS events SET chains = $1"},
		{"DELETE FROM events WHERE number IN (SELECT number FROM events)",
	     "DELETE FROM events_7 AS events WHERE number IN (SELECT number FROM events_7 AS events)"},
		{"SELECT 1 FROM events_by_day, settings", "SELECT 1 FROM events_by_day, settings"},
		{"COMMIT", "COMMIT"},
	};
	static const struct citus_shard_group set = {
		.shard = 7, .tables = {{"events", 7}, {"chains", 8}}, .count = 2};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *named = citus_name_shards(&set, rows[i].sql);
		assert_non_null(named);
		assert_string_equal(named, rows[i].named);
		free(named);
	}
}

TEST_CASE(a_reader_waits_no_longer_than_its_holder_wants)
{
	static const int64_t usual_us = 15 * US_PER_SECOND, limit_us = 5 * US_PER_SECOND;
	struct citus_db db = {.pg = {.commit_timeout_us = limit_us}};
	struct citus_connection *connection = calloc(1, sizeof *connection);
	assert_non_null(connection);
	db.pg.base.driver = &citus_driver;
	db.pg.statement_wait_us[PG_READER] = usual_us;
	pthread_mutex_init(&db.pg.mutex, NULL);
	struct pg_connection *reader = &connection->pg;
	reader->use = PG_READER;
	reader->base.db = &db.pg.base;
	reader->base.is_taken = true;
	int64_t now_us = clock_monotonic_us();
	assert_true(pg_deadline(reader) >= now_us + usual_us);
	db_limit_wait(&reader->base);
	assert_true(pg_deadline(reader) <= clock_monotonic_us() + limit_us);
	db_give(&reader->base);
	assert_true(pg_deadline(reader) >= now_us + usual_us);
	free(connection);
}

TEST_MAIN(NULL, NULL)
