/* Totals by UTC day, beside those of usage.h: balances, the wait for seals, deliveries of notices.
 * Each is kept in the transaction that it counts, that of seals in transactions behind it, so
 * reading them reads neither events nor entries of registrations. Days count from 1970-01-01. */
#ifndef STORE_USAGE_TOTALS_H
#define STORE_USAGE_TOTALS_H

#include "store/store.h"

/* How long things took: each counts in the first bound that it did not exceed, or in none. */
#define DELAY_BOUNDS 6 /* a second, ten; a minute, ten; an hour, a day */
extern const int64_t delay_bounds_ms[DELAY_BOUNDS];
#define DELAY_MAX_MS INT64_C(86400000000) /* longer ones are counted as if they were that long */
struct delays {
	int64_t sum_ms, longest_ms;
	int64_t within[DELAY_BOUNDS];
};
/* 0 to DELAY_MAX_MS, whatever the clocks said. */
int64_t delay_ms(int64_t from_us, int64_t to_us);

struct days {
	struct slice account_id;
	int64_t first_day, last_day;
};

/* ---- credits (balances.c) ---- */

/* Movements of a day are signed. Those of events count on the day of received_at, the others when
 * they were made. */
struct balance_day {
	int64_t day;
	int64_t balance, unpaid_events; /* at its end, or now where that is still to come */
	int64_t events;                 /* paid when they were registered */
	int64_t settlements;            /* of events that were unpaid */
	int64_t purchases, returns;     /* bought, and taken back: refunded or reverted */
	int64_t fees, fee_refunds;      /* of certifications */
	int64_t adjustments;            /* whatever else */
};
struct balance_list {
	struct balance_day *items; /* every day, in order */
	size_t count;
	bool more;
};
/* Of the days since the account was made, up to today by now_us. ERR_NOT_FOUND. */
int store_list_balances(struct store *store, const struct days *days, int64_t now_us, int64_t limit,
                        struct arena *arena, struct balance_list *ret, struct error *error)
	MUST_CHECK;

/* ---- seals and deliveries (totals.c) ---- */

struct seal_day {
	int64_t day; /* on which timestamps came */
	int64_t segments, events;
	/* Of events, each from when the first event of its segment was received until the timestamp
	 * came: none waited longer than it says. */
	struct delays delays;
};
struct seal_list {
	struct seal_day *items; /* days on which something was sealed, in order */
	size_t count;
	bool more;
};
/* What a written round sealed is counted behind it. Counts the next block that is not counted yet,
 * of whatever round, in one short transaction; until *ret_more says that nothing was left to count.
 */
int store_count_sealed(struct store *store, bool *ret_more, struct error *error) MUST_CHECK;
/* As far as they are counted. */
int store_list_seals(struct store *store, const struct days *days, int64_t limit,
                     struct arena *arena, struct seal_list *ret, struct error *error) MUST_CHECK;

struct delivery_day {
	int64_t day;
	int64_t endpoint;
	const char *endpoint_id, *url; /* NULL: it is gone */
	int64_t attempts, delivered;
	int64_t failed;       /* deliveries that used up their schedule, or were skipped in it */
	struct delays delays; /* of the delivered: from the notice, or from asking for a replay */
};
struct delivery_day_list {
	struct delivery_day *items; /* by day and endpoint */
	size_t count;
	bool more;
};
/* endpoint_id empty: of all; after_endpoint: goes on behind that one of the first day, 0: from its
 * start. ERR_NOT_FOUND: the endpoint is not there, or is another account's. */
int store_list_delivery_days(struct store *store, const struct days *days, struct slice endpoint_id,
                             int64_t after_endpoint, int64_t limit, struct arena *arena,
                             struct delivery_day_list *ret, struct error *error) MUST_CHECK;

#endif
