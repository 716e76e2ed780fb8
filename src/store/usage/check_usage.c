/* Compares the usage totals with a recount. */
#include "base/clock.h"
#include "store/check/checking.h"

/* Compares the totals of each key and day with the chain's events. Rows without events are found by
 * check_sums. */
void check_chain_usage(struct check *check)
{
	struct db_query *query = db_query_long(
		check->reader,
		"SELECT n.day, n.key, n.events, n.content_bytes, COALESCE(u.events, 0),"
		" COALESCE(u.content_bytes, 0) FROM"
		" (SELECT received_at / 86400000000 AS day, key, count(*) AS events,"
		" COALESCE(sum(content_bytes), 0) AS content_bytes FROM events"
		" WHERE account = $1 AND event >= $3 AND event <= $4"
		" GROUP BY received_at / 86400000000, key) AS n"
		" LEFT JOIN daily_usage u ON u.account = $1 AND u.day = n.day AND u.chain = $2"
		" AND u.key = n.key WHERE u.key IS NULL OR u.events <> n.events"
		" OR u.content_bytes <> n.content_bytes ORDER BY n.day, n.key");
	db_bind(query, check->account, check->chain, event_number(check->chain, 1),
	        event_number(check->chain, EVENT_SEQUENCE_MAX));
	while (db_step(query)) {
		char day[PERIOD_KEY_SIZE];
		period_key(PERIOD_DAY, db_integer(query, 0) * US_PER_DAY, day);
		check_problem(check,
		              "chain %lld, key %lld, %s: daily_usage has %lld events with %lld bytes, the"
		              " chain has %lld with %lld",
		              (long long)check->chain, (long long)db_integer(query, 1), day,
		              (long long)db_integer(query, 4), (long long)db_integer(query, 5),
		              (long long)db_integer(query, 2), (long long)db_integer(query, 3));
	}
	db_release(query);
}

/* Compares each chain's sums over all days with its events and its unpaid events. */
static void check_sums(struct check *check, int64_t account)
{
	struct db_query *query = db_query_long(
		check->reader,
		"SELECT c.chain, c.last_sequence, COALESCE(u.events, 0), COALESCE(u.unpaid, 0),"
		" CASE c.chain % 2 WHEN 0 THEN c.last_sequence + COALESCE(p.credits, 0) ELSE 0 END"
		" FROM chains c LEFT JOIN (SELECT chain, sum(events) AS events,"
		" sum(unpaid_events) AS unpaid FROM daily_usage WHERE account = $1 GROUP BY chain) AS u"
		" ON u.chain = c.chain"
		" LEFT JOIN (SELECT chain, sum(credits) AS credits FROM credit_entries"
		" WHERE account = $1 AND kind = 'events' GROUP BY chain) AS p ON p.chain = c.chain"
		" WHERE c.account = $1 AND (c.last_sequence <> COALESCE(u.events, 0)"
		" OR COALESCE(u.unpaid, 0) <> CASE c.chain % 2 WHEN 0"
		" THEN c.last_sequence + COALESCE(p.credits, 0) ELSE 0 END) ORDER BY c.chain");
	db_bind_integer(query, account);
	while (db_step(query))
		check_problem(check,
		              "chain %lld: daily_usage has %lld events, %lld of them unpaid when received;"
		              " the chain has %lld and %lld",
		              (long long)db_integer(query, 0), (long long)db_integer(query, 2),
		              (long long)db_integer(query, 3), (long long)db_integer(query, 1),
		              (long long)db_integer(query, 4));
	db_release(query);
}

/* Finds impossible rows: of a chain that does not exist, or with impossible counts. */
static void check_rows(struct check *check, int64_t account, const char *account_id)
{
	struct db_query *query = db_query(
		check->reader, "SELECT count(*) FROM daily_usage u LEFT JOIN chains c"
					   " ON c.account = u.account AND c.chain = u.chain WHERE u.account = $1"
					   " AND (c.chain IS NULL OR u.events < 1 OR u.unpaid_events < 0"
					   " OR u.unpaid_events > u.events)");
	db_bind_integer(query, account);
	int64_t rows = db_step(query) ? db_integer(query, 0) : 0;
	db_release(query);
	if (rows > 0)
		check_problem(check, "account %s: %lld rows of daily_usage are invalid", account_id,
		              (long long)rows);
}

static void check_certified(struct check *check, int64_t account, const char *account_id)
{
	struct db_query *query = db_query_long(
		check->reader,
		"SELECT day, chain, key FROM"
		" (SELECT requested_at / 86400000000 AS day, chain, key, 1 AS requested, 0 AS completed,"
		" 0 AS failed, 0 AS events, fee AS fees, 0 AS refunds FROM certifications"
		" WHERE account = $1"
		" UNION ALL SELECT completed_at / 86400000000, chain, key, 0,"
		" CASE status WHEN 'completed' THEN 1 ELSE 0 END,"
		" CASE status WHEN 'failed' THEN 1 ELSE 0 END, CASE status WHEN 'completed'"
		" THEN last_sequence - first_sequence + 1 ELSE 0 END, 0,"
		" CASE status WHEN 'failed' THEN fee ELSE 0 END FROM certifications"
		" WHERE account = $1 AND status <> 'processing'"
		" UNION ALL SELECT day, chain, key, -requested, -completed, -failed, -events, -fees,"
		" -refunds FROM daily_certifications WHERE account = $1) AS counted"
		" GROUP BY day, chain, key HAVING sum(requested) <> 0 OR sum(completed) <> 0"
		" OR sum(failed) <> 0 OR sum(events) <> 0 OR sum(fees) <> 0 OR sum(refunds) <> 0"
		" ORDER BY day, chain, key");
	db_bind_integer(query, account);
	while (db_step(query)) {
		char day[PERIOD_KEY_SIZE];
		period_key(PERIOD_DAY, db_integer(query, 0) * US_PER_DAY, day);
		check_problem(check,
		              "account %s, chain %lld, key %lld, %s: daily_certifications does not"
		              " match the certifications",
		              account_id, (long long)db_integer(query, 1), (long long)db_integer(query, 2),
		              day);
	}
	db_release(query);
}

void check_account_usage(struct check *check, int64_t account, const char *account_id)
{
	check_sums(check, account);
	check_rows(check, account, account_id);
	check_certified(check, account, account_id);
}
