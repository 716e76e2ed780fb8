/* Notices of an account as an operator looks at them, each with what became of it at every endpoint
 * of the account. Thread safe; what is given back lives in the caller's arena. */
#ifndef STORE_NOTICES_H
#define STORE_NOTICES_H

#include "store/notices/webhooks.h"

/* At an endpoint a notice is
 *   delivered   acknowledged with a 2xx
 *   waiting     queued, or held while the endpoint is disabled
 *   failed      its schedule is used up
 *   missed      never queued though the endpoint wants its type: it arose before the endpoint was
 *               made or wanted it, or while it was disabled
 * Endpoints that neither want it nor were sent it have no state of it. */
struct notice_state {
	char endpoint_id[ID_SIZE];
	const char *status;
	int64_t attempts;
	int64_t due_at_us; /* waiting: when it is due; delivered, failed: when it ended; TIME_NONE */
	int64_t replayed_at_us; /* when it was last asked for again; TIME_NONE: never */
};
struct notice_view {
	int64_t notice; /* its number, by which the list goes */
	char notice_id[ID_SIZE];
	char account_id[ID_SIZE];
	const char *type;
	const char *mode;
	int64_t created_at_us;
	struct slice data; /* JSON; only of store_find_notice */
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
	int64_t since_us;         /* of creation, inclusive */
	int64_t until_us;         /* exclusive */
	struct slice types;       /* separated by commas; empty: any */
	struct slice endpoint_id; /* empty: any; else those that have a state at this one */
	struct slice status;      /* empty: any; else those in this state, there or anywhere */
	int64_t before;           /* below this number; 0: from the newest */
};
/* Newest first. ERR_NOT_FOUND names an account that does not exist, or an endpoint that is none of
 * the account's. */
int store_list_notices(struct store *store, const struct notice_filter *filter, int64_t limit,
                       struct arena *arena, struct notice_list *ret, struct error *error)
	MUST_CHECK;
int store_find_notice(struct store *store, struct slice notice_id, struct arena *arena,
                      struct notice_view *ret, struct error *error) MUST_CHECK;

#endif
