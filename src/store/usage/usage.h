/* Totals of usage: what keys registered and certified on each UTC day. Kept in the transactions
 * that they count, so reading them never reads an event. Days count from 1970-01-01; an event's day
 * is that of its received_at, a certification's those of its asking and of its end. */
#ifndef STORE_USAGE_USAGE_H
#define STORE_USAGE_USAGE_H

#include "store/store.h"

/* What rows are told apart by; live and test always. A key has one channel and that one account, so
 * each takes what is above it along. */
enum {
	USAGE_BY_ACCOUNT = 1,
	USAGE_BY_CHANNEL = 2,
	USAGE_BY_KEY = 4,
	USAGE_BY_DAY = 8,
	USAGE_BY_MONTH = 16, /* not beside days */
};

struct usage_counts {
	int64_t events;
	int64_t unpaid_events; /* of them: without credits when received */
	int64_t content_bytes; /* as declared, without files of evidence */
	int64_t certifications_requested, certifications_completed, certifications_failed;
	int64_t events_certified; /* of the completed ones */
	int64_t fees, refunds;    /* credits */
};
/* Credits that left the balance at once: for the paid live events, and fees less refunds. What was
 * unpaid is settled later, and then an entry of the account, not of a key. */
int64_t usage_credits(const struct usage_counts *counts, enum mode mode);

#define USAGE_CURSOR_SIZE 120
struct usage_row {
	char cursor[USAGE_CURSOR_SIZE]; /* where it stands: what the next page goes on behind */
	char period[PERIOD_KEY_SIZE];   /* a day or a month; empty: all of them */
	/* NULL: not told apart by it; "" where it is gone. */
	const char *account_id, *account_name, *channel_id, *channel_name, *key_id, *key_name;
	enum mode mode;
	struct usage_counts counts;
};
struct usage_list {
	struct usage_row *items; /* by period, account, channel, key, live before test */
	size_t count;
	bool more;
};
struct usage_filter {
	struct slice account_id, channel_id, key_id; /* empty: any */
	int64_t first_day, last_day;
	int mode;    /* enum mode; -1: both */
	unsigned by; /* USAGE_BY_… */
};
/* Rows behind `after` (a row's cursor, or empty), at most `limit`. ERR_NOT_FOUND: an account,
 * channel or key that is not there, or is not of the other one; ERR_USAGE: no cursor. */
int store_list_usage(struct store *store, const struct usage_filter *filter, struct slice after,
                     int64_t limit, struct arena *arena, struct usage_list *ret,
                     struct error *error) MUST_CHECK;

/* ---- when keys were last used (last_use.c) ---- */
struct key_use {
	int64_t account, key;
	int64_t at_us;
};
/* The later time stays, whoever says it. In portions: after a failure some may be written. */
int store_note_key_uses(struct store *store, const struct key_use *uses, size_t count,
                        struct error *error) MUST_CHECK;

#endif
