/* Notices of an account for the administration, each with its state at every endpoint of the
 * account. Thread safe. Results live in the caller's arena. */
#ifndef STORE_NOTICES_H
#define STORE_NOTICES_H

#include "store/notices/webhooks.h"

/* The state of a notice at an endpoint:
 *   delivered   acknowledged with a 2xx status
 *   waiting     queued, or held while the endpoint is disabled
 *   failed      all attempts of its schedule failed
 *   missed      never queued although the endpoint receives its type: it was created before the
 *               endpoint existed or received that type, or while it was disabled
 * An endpoint that does not receive the type and was not sent the notice has no state for it. */
struct notice_state {
	char endpoint_id[ID_SIZE];
	const char *status;
	int64_t attempts;
	int64_t due_at_us; /* waiting: when due; delivered, failed: when it ended; else TIME_NONE */
	int64_t replayed_at_us; /* when it was last replayed; TIME_NONE: never */
};
struct notice_view {
	int64_t notice; /* its number, the sort key of the list */
	char notice_id[ID_SIZE];
	char account_id[ID_SIZE];
	const char *type;
	const char *mode;
	int64_t created_at_us;
	struct slice data; /* JSON; set by store_find_notice only */
	struct notice_state states[WEBHOOKS_MAX];
	size_t state_count;
};
struct notice_list {
	struct notice_view *items;
	size_t count;
	bool more;
};
struct notice_filter {
	struct slice account_id;
	int64_t since_us;         /* creation, inclusive */
	int64_t until_us;         /* creation, exclusive */
	struct slice types;       /* separated by commas; empty: any */
	struct slice endpoint_id; /* empty: any; else only notices with a state at this endpoint */
	struct slice status;      /* empty: any; else only notices with this state, there or anywhere */
	int64_t before;           /* only lower numbers; 0: from the newest */
};
/* Lists notices, newest first. Returns ERR_NOT_FOUND, with its identifier, for an unknown account
 * or an endpoint of another account. */
int store_list_notices(struct store *store, const struct notice_filter *filter, int64_t limit,
                       struct arena *arena, struct notice_list *ret, struct error *error)
	MUST_CHECK;
int store_find_notice(struct store *store, struct slice notice_id, struct arena *arena,
                      struct notice_view *ret, struct error *error) MUST_CHECK;

#endif
