/* Compares the daily totals of credits with a recount. */
#include "base/clock.h"
#include "store/check/checking.h"
#include "store/usage/count.h"

static void report_days(struct check *check, struct db_query *query, const char *account_id,
                        const char *what)
{
	while (db_step(query)) {
		char day[PERIOD_KEY_SIZE];
		period_key(PERIOD_DAY, db_integer(query, 0) * US_PER_DAY, day);
		check_problem(check, "account %s, %s: the daily totals of %s are wrong", account_id, day,
		              what);
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
	report_days(check, query, account_id, "movements of credits");
}

void check_account_totals(struct check *check, int64_t account, const char *account_id)
{
	check_credits(check, account, account_id);
}
