/* Comparison of balances with the sums of their entries, one account at a time, so that no read
 * transaction stays open for long. */
#include "store/accounts/accounts.h"
#include "store/transaction.h"

static int check_next(struct store *store, int64_t after, int64_t *ret_account, bool *ret_whole,
                      struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT a.account, a.balance - (SELECT COALESCE(SUM(e.credits), 0)"
	                         " FROM credit_entries e WHERE e.account = a.account) FROM accounts a"
	                         " WHERE a.account > $1 ORDER BY a.account LIMIT 1");
	db_bind_integer(query, after);
	bool found = db_step(query);
	int64_t account = found ? db_integer(query, 0) : 0;
	bool whole = !found || db_integer(query, 1) == 0;
	int result = end_read(connection, db_end(query, error));
	if (!result) {
		*ret_account = account;
		*ret_whole = whole;
	}
	return result;
}

int store_count_unbalanced(struct store *store, const atomic_bool *stopping, int64_t *ret_count,
                           struct error *error)
{
	int64_t account = 0;
	int64_t count = 0;
	do {
		bool whole = true;
		int result = check_next(store, account, &account, &whole, error);
		if (result)
			return result;
		count += !whole;
	} while (account && !atomic_load(stopping));
	*ret_count = count;
	return OK;
}
