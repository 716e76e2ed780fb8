/* Usage totals: what each key registered and certified on each UTC day. They are updated in the
 * transactions that they count, so that reading them never reads an event. Days count from
 * 1970-01-01. An event counts on the day of its received_at, a certification on the days of its
 * request and of its end. */
#ifndef STORE_USAGE_USAGE_H
#define STORE_USAGE_USAGE_H

#include "store/store.h"

/* Grouping of rows; live and test are always separate. A key belongs to one channel and one
 * account, so each grouping includes the levels above it. */
enum {
	USAGE_BY_ACCOUNT = 1,
	USAGE_BY_CHANNEL = 2,
	USAGE_BY_KEY = 4,
	USAGE_BY_DAY = 8,
	USAGE_BY_MONTH = 16, /* excludes USAGE_BY_DAY */
};

struct usage_counts {
	int64_t events;
	int64_t unpaid_events; /* of these: without credits when received */
	int64_t content_bytes; /* as declared, without files of evidence */
	int64_t certifications_requested, certifications_completed, certifications_failed;
	int64_t events_certified; /* of the completed certifications */
	int64_t fees, refunds;    /* credits */
};
/* Returns the credits that left the balance at once: for paid live events, and fees less refunds.
 * Unpaid events are settled later, by an entry of the account and not of a key. */
int64_t usage_credits(const struct usage_counts *counts, enum mode mode);

#define USAGE_CURSOR_SIZE 120
struct usage_row {
	char cursor[USAGE_CURSOR_SIZE]; /* position of the row, for the next page */
	char period[PERIOD_KEY_SIZE];   /* a day or a month; empty: the whole period */
	/* NULL: rows are not grouped by it; "": the object was deleted. */
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
/* Lists at most `limit` rows after `after` (the cursor of a row, or empty). Returns ERR_NOT_FOUND
 * when an account, channel or key does not exist or does not belong to the one given above it, and
 * ERR_USAGE for an invalid cursor. */
int store_list_usage(struct store *store, const struct usage_filter *filter, struct slice after,
                     int64_t limit, struct arena *arena, struct usage_list *ret,
                     struct error *error) MUST_CHECK;

/* ---- when keys were last used (last_use.c) ---- */
struct key_use {
	int64_t account, key;
	int64_t at_us;
};
/* Records the times of last use; the later time is kept. Writes in batches: after a failure some
 * may be written. */
int store_note_key_uses(struct store *store, const struct key_use *uses, size_t count,
                        struct error *error) MUST_CHECK;

#endif
