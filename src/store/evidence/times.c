/* From when to when records hold, of many at a time. */
#include "store/evidence/internal.h"

/* Of a chain's way, from its first archive timestamp to what renewed that and so on, the end: as
 * far as it goes, or where the next chain took it over. */
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

int store_list_chain_times(struct store *store, int64_t account, int64_t chain, int64_t first,
                           int64_t last,
                           void (*each)(void *context, const struct evidence_chain_times *times),
                           void *context, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct db_query *query = db_query(connection, CHAIN_TIMES);
	db_bind_integer(query, account);
	db_bind_integer(query, chain);
	db_bind_integer(query, first);
	db_bind_integer(query, last);
	while (db_step(query)) {
		struct evidence_chain_times times = {
			.certification = db_integer(query, 0),
			.chain = db_integer(query, 1),
			.stamped_at_us = db_integer(query, 2),
		};
		if (!db_is_null(query, 3))
			times.newest = (struct token_at_rest){.source = TOKEN_STAMP,
			                                      .number = db_integer(query, 3),
			                                      .stamped_at_us = db_integer(query, 4),
			                                      .valid_until_us = db_integer(query, 5)};
		each(context, &times);
	}
	return end_read(connection, db_end(query, error));
}
