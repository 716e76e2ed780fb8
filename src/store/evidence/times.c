/* Validity periods of the records of many certifications at a time. */
#include <stdlib.h>

#include "store/evidence/evidence_rows.h"

/* The validity of a chain: from its first archive timestamp, through the archive timestamps that
 * renewed it, to the last one or to the one at which the next chain took over. */
#define CHAIN_TIMES                                                                                \
	"WITH RECURSIVE way(certification, chain, stamped_at, last, stamp) AS ("                       \
	"SELECT e.certification, e.chain, a.stamped_at, (SELECT n.after_stamp FROM evidence_chains n"  \
	" JOIN archive_timestamps w ON w.stamp = n.stamp WHERE n.account = $1"                         \
	" AND n.certification = e.certification AND n.record = e.record AND n.chain = e.chain + 1),"   \
	" e.stamp FROM certifications c JOIN evidence_chains e ON e.account = $1"                      \
	" AND e.certification = c.certification JOIN archive_timestamps a ON a.stamp = e.stamp"        \
	" WHERE c.account = $1 AND c.chain = $2 AND c.certification BETWEEN $3 AND $4"                 \
	" AND e.record = (SELECT MAX(r.record) FROM evidence_chains r JOIN archive_timestamps w"       \
	" ON w.stamp = r.stamp WHERE r.account = $1 AND r.certification = c.certification)"            \
	" UNION ALL SELECT w.certification, w.chain, w.stamped_at, w.last, t.stamp FROM way w"         \
	" JOIN tokens_at_rest t ON t.source = 'stamp' AND t.number = w.stamp"                          \
	" JOIN archive_timestamps a ON a.stamp = t.stamp WHERE w.last IS NULL OR w.stamp < w.last)"    \
	" SELECT w.certification, w.chain, w.stamped_at, t.number, t.stamped_at, t.valid_until"        \
	" FROM way w LEFT JOIN tokens_at_rest t ON t.source = 'stamp' AND t.number = w.stamp"          \
	" LEFT JOIN archive_timestamps a ON a.stamp = t.stamp"                                         \
	" WHERE w.stamp = w.last OR a.stamp IS NULL ORDER BY w.certification, w.chain"

/* The chains $2 of certifications that are covered up to archive timestamp $5. */
#define CHAINS                                                                                     \
	"SELECT e.certification, e.record, e.chain, e.stamp, COALESCE(e.after_stamp, 0)"               \
	" FROM certifications c JOIN evidence_chains e ON e.account = c.account"                       \
	" AND e.certification = c.certification WHERE c.account = $1 AND e.account = $1"               \
	" AND c.chain = $2 AND c.certification BETWEEN $3 AND $4 AND e.stamp <= $5"                    \
	" ORDER BY e.certification, e.record, e.chain"
/* The last renewal of one chain, from its archive timestamp $1 up to $2; 0: no upper limit. */
#define RENEWALS                                                                                   \
	"WITH RECURSIVE way(stamp) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT t.stamp FROM way w"  \
	" JOIN tokens_at_rest t ON t.source = 'stamp' AND t.number = w.stamp"                          \
	" JOIN archive_timestamps a ON a.stamp = t.stamp WHERE $2 = 0 OR w.stamp < $2)"                \
	" SELECT (SELECT f.stamped_at FROM archive_timestamps f WHERE f.stamp = $1), t.number,"        \
	" t.stamped_at, t.valid_until FROM way w"                                                      \
	" LEFT JOIN tokens_at_rest t ON t.source = 'stamp' AND t.number = w.stamp"                     \
	" LEFT JOIN archive_timestamps a ON a.stamp = t.stamp WHERE w.stamp = $2 OR a.stamp IS NULL"

struct chain_row {
	int64_t certification, record, chain, stamp, after;
};

/* Reads, from `column` on, when the chain began, and its newest token. */
static void report_times(struct db_query *query, int column, struct evidence_chain_times *times,
                         void (*each)(void *context, const struct evidence_chain_times *times),
                         void *context)
{
	times->stamped_at_us = db_integer(query, column);
	if (!db_is_null(query, column + 1))
		times->newest = (struct renewable_token){.source = TOKEN_STAMP,
		                                         .number = db_integer(query, column + 1),
		                                         .stamped_at_us = db_integer(query, column + 2),
		                                         .valid_until_us = db_integer(query, column + 3)};
	each(context, times);
}

static int64_t last_stamp(struct db_connection *connection)
{
	struct db_query *query =
		db_query(connection, "SELECT COALESCE(MAX(stamp), 0) FROM archive_timestamps");
	int64_t last = db_step(query) ? db_integer(query, 0) : 0;
	db_release(query);
	return last;
}

static int list_chains(struct db_connection *connection, const int64_t given[4],
                       struct chain_row **ret_rows, size_t *ret_count, struct error *error)
{
	int64_t last = last_stamp(connection);
	struct db_query *query = db_query(connection, CHAINS);
	size_t count = 0, room = 0;
	struct chain_row *rows = NULL;
	for (int i = 0; i < 4; i++)
		db_bind_integer(query, given[i]);
	db_bind_integer(query, last);
	while (db_step(query)) {
		if (count == room) {
			room = room ? 2 * room : 64;
			struct chain_row *larger = realloc(rows, room * sizeof *rows);
			if (!larger) {
				free(rows);
				return ERR_NO_MEMORY;
			}
			rows = larger;
		}
		rows[count++] =
			(struct chain_row){db_integer(query, 0), db_integer(query, 1), db_integer(query, 2),
		                       db_integer(query, 3), db_integer(query, 4)};
	}
	*ret_rows = rows;
	*ret_count = count;
	return db_end(query, error);
}

static bool is_same_record(const struct chain_row *a, const struct chain_row *b)
{
	return a->certification == b->certification && a->record == b->record;
}

/* With shards the chains are distributed and the archive timestamps are not, so the renewals of
 * each chain are followed by a separate statement. Only the last record of each certification
 * counts. */
static int list_by_chain(struct db_connection *connection, const int64_t given[4],
                         void (*each)(void *context, const struct evidence_chain_times *times),
                         void *context, struct error *error)
{
	struct chain_row *rows = NULL;
	size_t count = 0, end;
	int result = list_chains(connection, given, &rows, &count, error);
	for (size_t first = 0; first < count && !result; first = end) {
		for (end = first + 1; end < count && is_same_record(&rows[first], &rows[end]);)
			end++;
		if (end < count && rows[end].certification == rows[first].certification)
			continue;
		for (size_t i = first; i < end && !result; i++) {
			bool taken_over = i + 1 < end && rows[i + 1].chain == rows[i].chain + 1;
			struct db_query *query = db_query(connection, RENEWALS);
			db_bind(query, rows[i].stamp, taken_over ? rows[i + 1].after : 0);
			while (db_step(query)) {
				struct evidence_chain_times times = {.certification = rows[i].certification,
				                                     .chain = rows[i].chain};
				report_times(query, 0, &times, each, context);
			}
			result = db_end(query, error);
		}
	}
	free(rows);
	return result;
}

int store_list_chain_times(struct store *store, int64_t account, int64_t chain, int64_t first,
                           int64_t last,
                           void (*each)(void *context, const struct evidence_chain_times *times),
                           void *context, struct error *error)
{
	const int64_t given[4] = {account, chain, first, last};
	struct db_connection *connection = begin_read(store, &error);
	if (db_is_sharded(db_of(connection)))
		return end_read(connection, list_by_chain(connection, given, each, context, error));
	struct db_query *query = db_query(connection, CHAIN_TIMES);
	for (int i = 0; i < 4; i++)
		db_bind_integer(query, given[i]);
	while (db_step(query)) {
		struct evidence_chain_times times = {.certification = db_integer(query, 0),
		                                     .chain = db_integer(query, 1)};
		report_times(query, 2, &times, each, context);
	}
	return end_read(connection, db_end(query, error));
}
