/* The daily totals of credits and seals against a recount, those of deliveries against what is
 * still kept of them. */
#include "base/clock.h"
#include "store/check/checking.h"
#include "store/usage/count.h"

static void tell_days(struct check *check, struct db_query *query, const char *account_id,
                      const char *what)
{
	while (db_step(query)) {
		char day[PERIOD_KEY_SIZE];
		period_key(PERIOD_DAY, db_integer(query, 0) * US_PER_DAY, day);
		check_problem(check, "account %s, %s: the totals do not count %s as they are", account_id,
		              day, what);
	}
	db_release(query);
}

static void check_credits(struct check *check, int64_t account, const char *account_id)
{
	struct db_query *query = db_query_long(
		check->reader,
		"SELECT day FROM (SELECT at / 86400000000 AS day, kind, 1 AS movements, credits"
		" FROM credit_entries WHERE account = $1 AND kind <> 'events' UNION ALL"
		" SELECT day, kind, -movements, -credits FROM daily_credits WHERE account = $1) AS moved"
		" GROUP BY day, kind HAVING sum(movements) <> 0 OR sum(credits) <> 0 ORDER BY day");
	db_bind_integer(query, account);
	tell_days(check, query, account_id, "movements of credits");
}

#define ALL_SEALED SEAL_TOTALS(SEALED_SEGMENTS("s.account = $1 AND " IS_COUNTED))
#define UNION_COUNTED                                                                              \
	" UNION ALL SELECT account, day, -segments, -events, -delay_ms, -longest_ms, -within_1s,"      \
	" -within_10s, -within_1m, -within_10m, -within_1h, -within_1d FROM daily_seals"               \
	" WHERE account = $1"

static void check_seals(struct check *check, int64_t account, const char *account_id)
{
	struct db_query *query = db_query_long(
		check->reader, "SELECT day FROM (" ALL_SEALED UNION_COUNTED ") AS counted GROUP BY day"
					   " HAVING sum(segments) <> 0 OR sum(events) <> 0 OR sum(delay_ms) <> 0"
					   " OR sum(longest_ms) <> 0 OR sum(within_1s) <> 0 OR sum(within_10s) <> 0"
					   " OR sum(within_1m) <> 0 OR sum(within_10m) <> 0 OR sum(within_1h) <> 0"
					   " OR sum(within_1d) <> 0 ORDER BY day");
	db_bind_integer(query, account);
	tell_days(check, query, account_id, "what was sealed");
}

/* Old attempts and the deliveries of endpoints that are gone are forgotten, and a replay takes an
 * end back: so no more can be kept than was counted. Of an attempt during which a replay was asked
 * for, and the next one, the first alone is kept; so ends are not told by their day. What was
 * skipped before its schedule began ended with no attempt, and is not counted. */
static void check_deliveries(struct check *check, int64_t account, const char *account_id)
{
	struct db_query *query = db_query_long(
		check->reader,
		"SELECT k.day FROM (SELECT endpoint, at / 86400000000 AS day, count(*) AS attempts"
		" FROM webhook_attempts WHERE account = $1 GROUP BY endpoint, at / 86400000000) AS k"
		" LEFT JOIN daily_deliveries t ON t.account = $1 AND t.day = k.day"
		" AND t.endpoint = k.endpoint WHERE t.day IS NULL OR k.attempts > t.attempts"
		" ORDER BY k.day");
	db_bind_integer(query, account);
	tell_days(check, query, account_id, "what was delivered");
	query = db_query_long(
		check->reader,
		"SELECT count(*) FROM (SELECT endpoint,"
		" sum(CASE status WHEN 'delivered' THEN 1 ELSE 0 END) AS delivered,"
		" sum(CASE status WHEN 'failed' THEN 1 ELSE 0 END) AS failed FROM webhook_deliveries"
		" WHERE account = $1 AND tries > 0 GROUP BY endpoint) AS k LEFT JOIN"
		" (SELECT endpoint, sum(delivered) AS delivered, sum(failed) AS failed"
		" FROM daily_deliveries WHERE account = $1 GROUP BY endpoint) AS t"
		" ON t.endpoint = k.endpoint WHERE k.delivered > COALESCE(t.delivered, 0)"
		" OR k.failed > COALESCE(t.failed, 0)");
	db_bind_integer(query, account);
	int64_t endpoints = db_step(query) ? db_integer(query, 0) : 0;
	db_release(query);
	if (endpoints > 0)
		check_problem(check, "account %s: the totals of %lld endpoints count less than is kept",
		              account_id, (long long)endpoints);
	query = db_query(
		check->reader,
		"SELECT day FROM daily_deliveries WHERE account = $1 AND (attempts < 1 OR delivered < 0"
		" OR failed < 0 OR delivered + failed > attempts OR longest_ms > delay_ms OR within_1s"
		" + within_10s + within_1m + within_10m + within_1h + within_1d > delivered) ORDER BY day");
	db_bind_integer(query, account);
	tell_days(check, query, account_id, "deliveries, or what can be,");
}

void check_account_totals(struct check *check, int64_t account, const char *account_id)
{
	check_credits(check, account, account_id);
	check_seals(check, account, account_id);
	check_deliveries(check, account, account_id);
}
