/* How statements name the shards of tables in place of the tables. */
#include "testing.h"
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

TEST_MAIN(NULL, NULL)
