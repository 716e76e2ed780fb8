/* The balance of an account by UTC day, from the totals of its movements: reading it reads neither
 * events nor entries of registrations. Days count from 1970-01-01. */
#ifndef STORE_USAGE_TOTALS_H
#define STORE_USAGE_TOTALS_H

#include "store/store.h"

struct days {
	struct slice account_id;
	int64_t first_day, last_day;
};

/* Movements of a day are signed. Those of events count on the day of received_at, the others on the
 * day when they were made. */
struct balance_day {
	int64_t day;
	int64_t balance, unpaid_events; /* at the end of the day, or now if that is later */
	int64_t events;                 /* paid at registration */
	int64_t settlements;            /* of events that were unpaid */
	int64_t purchases, returns;     /* paid purchases; refunded or reverted ones */
	int64_t fees, fee_refunds;      /* of certifications */
	int64_t adjustments;            /* all other movements */
};
struct balance_list {
	struct balance_day *items; /* every day, in order */
	size_t count;
	bool more;
};
/* Lists the days since the creation of the account, up to today by now_us. Returns ERR_NOT_FOUND
 * when the account does not exist. */
int store_list_balances(struct store *store, const struct days *days, int64_t now_us, int64_t limit,
                        struct arena *arena, struct balance_list *ret, struct error *error)
	MUST_CHECK;

#endif
