/* Overview of an account for its owner: the last days, from totals, and the current state. The cost
 * and the size of the result are bounded, whatever the size of the account. */
#ifndef STORE_USAGE_OVERVIEW_H
#define STORE_USAGE_OVERVIEW_H

#include "store/store.h"

#define OVERVIEW_DAYS 90    /* including today */
#define OVERVIEW_CHANNELS 7 /* listed individually; the others are added up */
#define OVERVIEW_CERTIFYING 5

struct overview_channel {
	const char *channel_id, *name; /* NULL: all other channels */
	int64_t counts[OVERVIEW_DAYS]; /* live events by day */
	int64_t total;
};
struct overview_certification {
	char certification_id[ID_SIZE];
	const char *channel_id;
	int64_t requested_at_us, progress_permille;
};
struct account_activity {
	int64_t first_day;
	struct overview_channel channels[OVERVIEW_CHANNELS + 1]; /* most events first, others last */
	size_t channel_count;
	int64_t events, events_today, test_events_today;
	int64_t pending_events;       /* live events that wait for their seal */
	int64_t oldest_pending_at_us; /* TIME_NONE: no event waits */
	int64_t certifying;
	struct overview_certification certifications[OVERVIEW_CERTIFYING]; /* the oldest ones */
	size_t certification_count;
};
/* Returns ERR_NOT_FOUND when the account does not exist. */
int store_read_activity(struct store *store, struct slice account_id, int64_t now_us,
                        struct arena *arena, struct account_activity *ret, struct error *error)
	MUST_CHECK;

#endif
