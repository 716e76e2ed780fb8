/* Daily balances, computed from the current balance backwards over the movements of each day. */
#include "base/clock.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"
#include "store/usage/totals.h"

struct running_balance {
	int64_t account, balance, unpaid_events, first_day;
};

static int read_standing(struct db_connection *connection, struct slice account_id,
                         struct running_balance *ret, struct error *error)
{
	struct row row = {
		.query = routing_query_one(
			connection, ROUTING_PLACE("accounts", "account_id"), account_id,
			ROUTING_TEXTS("SELECT account, balance, unpaid_events, created_at FROM accounts"
	                      " WHERE account_id = $1",
	                      ""))};
	bool found = db_step(row.query);
	if (found)
		*ret =
			(struct running_balance){db_integer(row.query, 0), db_integer(row.query, 1),
		                             db_integer(row.query, 2), time_day(db_integer(row.query, 3))};
	return row_end(&row, found, MSG_STORE_NO_ACCOUNT, account_id, error);
}

#define OF_KINDS(kinds) "CASE WHEN kind IN (" kinds ") THEN credits ELSE 0 END"
#define OTHER_KINDS                                                                                \
	"CASE WHEN kind IN ('settlement', 'purchase', 'revert', 'refund', 'fee', 'fee_refund')"        \
	" THEN 0 ELSE credits END"

#define EVENTS_PAID                                                                                \
	"SELECT day, unpaid_events - events AS events, unpaid_events AS unpaid, 0 AS settlements,"     \
	" 0 AS purchases, 0 AS returns, 0 AS adjustments, 0 AS fees, 0 AS refunds FROM daily_usage"    \
	" WHERE account = $1 AND day >= $2 AND chain % 2 = 0"
#define OTHERS_MOVED                                                                               \
	"SELECT day, 0, 0, " OF_KINDS("'settlement'") ", " OF_KINDS("'purchase'") ", " OF_KINDS(       \
		"'revert', 'refund'") ", " OTHER_KINDS                                                     \
							  ", " OF_KINDS("'fee'") ", " OF_KINDS(                                \
								  "'fee_refund'") " FROM daily_credits WHERE account = $1 AND day >= $2"

/* Selects all days from the first one, the last day first. */
static struct db_query *ask(struct db_connection *connection, int64_t account, int64_t first_day)
{
	struct db_query *query = db_query_long(
		connection, "SELECT day, sum(events), sum(unpaid), sum(settlements), sum(purchases),"
					" sum(returns), sum(adjustments), sum(fees), sum(refunds) FROM (" EVENTS_PAID
					" UNION ALL " OTHERS_MOVED ") AS moved GROUP BY day ORDER BY day DESC");
	db_bind(query, account, first_day);
	return query;
}

static struct balance_day read_day(struct db_query *query)
{
	return (struct balance_day){
		.day = db_integer(query, 0),
		.events = db_integer(query, 1),
		.settlements = db_integer(query, 3),
		.purchases = db_integer(query, 4),
		.returns = db_integer(query, 5),
		.adjustments = db_integer(query, 6),
		.fees = db_integer(query, 7),
		.fee_refunds = db_integer(query, 8),
	};
}

/* Undoes the day, so that the balance is the one before it. */
static void undo_day(struct running_balance *running_balance, const struct balance_day *day,
                     int64_t unpaid)
{
	running_balance->balance -= day->events + day->settlements + day->purchases + day->returns +
	                            day->adjustments + day->fees + day->fee_refunds;
	running_balance->unpaid_events -= unpaid + day->settlements;
}

/* Fills all days from first_day on, including those without a movement. */
static int fill_days(struct db_connection *connection, struct running_balance running_balance,
                     int64_t first_day, struct balance_day *items, size_t count,
                     struct error *error)
{
	struct db_query *query = ask(connection, running_balance.account, first_day);
	size_t left = count; /* the earlier ones are still to be filled */
	while (db_step(query)) {
		struct balance_day day = read_day(query);
		for (; left > 0 && first_day + (int64_t)left - 1 >= day.day; left--)
			items[left - 1] = (struct balance_day){.day = first_day + (int64_t)left - 1,
			                                       .balance = running_balance.balance,
			                                       .unpaid_events = running_balance.unpaid_events};
		if (day.day < first_day + (int64_t)count) {
			day.balance = running_balance.balance;
			day.unpaid_events = running_balance.unpaid_events;
			items[day.day - first_day] = day;
		}
		undo_day(&running_balance, &day, db_integer(query, 2));
	}
	for (; left > 0; left--)
		items[left - 1] = (struct balance_day){.day = first_day + (int64_t)left - 1,
		                                       .balance = running_balance.balance,
		                                       .unpaid_events = running_balance.unpaid_events};
	return db_end(query, error);
}

int store_list_balances(struct store *store, const struct days *days, int64_t now_us, int64_t limit,
                        struct arena *arena, struct balance_list *ret, struct error *error)
{
	struct running_balance running_balance;
	struct balance_list list = {0};
	struct db_connection *connection = begin_read(store, &error);
	int result = read_standing(connection, days->account_id, &running_balance, error);
	if (result)
		return end_read(connection, result);
	int64_t first =
		days->first_day > running_balance.first_day ? days->first_day : running_balance.first_day;
	int64_t last = days->last_day < time_day(now_us) ? days->last_day : time_day(now_us);
	if (first <= last) {
		list.more = last - first + 1 > limit;
		list.count = (size_t)(list.more ? limit : last - first + 1);
		list.items = arena_alloc(arena, list.count * sizeof *list.items);
		result = list.items
		             ? fill_days(connection, running_balance, first, list.items, list.count, error)
		             : ERR_NO_MEMORY;
	}
	result = end_read(connection, result);
	if (!result)
		*ret = list;
	return result;
}
