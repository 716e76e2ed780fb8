/* Fills the daily totals of credits of a store that had none from its entries. Each statement reads
 * a bounded part, because a server cancels long statements. */
#include "base/clock.h"
#include "base/tuned.h"
#include "store/usage/count.h"

#define ENTRIES_AT_ONCE (1 << 17)
#define ACCOUNTS_AT_ONCE 256

struct filled_account {
	int64_t account, last_entry;
};

static int fill_account(struct db_connection *connection, const struct filled_account *account,
                        struct error *error)
{
	const int64_t most = tuned_up_to("filled", ENTRIES_AT_ONCE);
	int result = OK;
	for (int64_t first = 1; first <= account->last_entry && !result; first += most) {
		struct db_query *query = db_query(
			connection,
			"INSERT INTO daily_credits AS t (account, day, kind, movements, credits)"
			" SELECT account, at / 86400000000, kind, count(*), sum(credits) FROM credit_entries"
			" WHERE account = $1 AND number >= $2 AND number <= $3 AND kind <> 'events'"
			" GROUP BY account, at / 86400000000, kind ON CONFLICT (account, day, kind)"
			" DO UPDATE SET movements = t.movements + excluded.movements,"
			" credits = t.credits + excluded.credits");
		db_bind(query, account->account, first, first + most - 1);
		int64_t changes;
		result = db_execute(query, &changes, error);
	}
	return result;
}

int fill_totals(struct db_connection *connection, struct error *error)
{
	struct filled_account accounts[ACCOUNTS_AT_ONCE];
	const size_t most = (size_t)tuned_up_to("filled", ACCOUNTS_AT_ONCE);
	int64_t after = -1;
	size_t count;
	int result;
	do {
		struct db_query *query =
			db_query(connection, "SELECT account, last_entry FROM accounts WHERE account > $1"
		                         " ORDER BY account LIMIT $2");
		db_bind(query, after, (int64_t)most);
		for (count = 0; count < most && db_step(query); count++)
			accounts[count] = (struct filled_account){db_integer(query, 0), db_integer(query, 1)};
		result = db_end(query, error);
		for (size_t i = 0; i < count && !result; i++)
			result = fill_account(connection, &accounts[i], error);
		if (count)
			after = accounts[count - 1].account;
	} while (!result && count == most);
	return result;
}
