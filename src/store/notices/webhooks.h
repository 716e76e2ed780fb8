/* Receivers of notices (webhooks) as their account's owner manages them, and the log of what was
 * delivered. How deliveries are made: deliveries.h.
 *
 * A notice is queued for the endpoints of its account in the transaction that causes it: for those
 * that are enabled then and want its type. An endpoint made later does not get it, nor does one
 * that is disabled at that moment; replaying brings it by hand (replay.h). What was waiting when an
 * endpoint was disabled waits on.
 *
 * Secrets are not stored: each is derived from a secret of the installation, the endpoint and the
 * number of its version (service/webhook.h). Thread safe; what is given back lives in the caller's
 * arena; what does not exist is ERR_NOT_FOUND with a sentence that names it. */
#ifndef STORE_WEBHOOKS_H
#define STORE_WEBHOOKS_H

#include "store/store.h"

#define WEBHOOKS_MAX 20 /* of an account */

struct webhook_record {
	char endpoint_id[ID_SIZE];
	char account_id[ID_SIZE];
	const char *url;
	const char *types; /* separated by commas; NULL: every type */
	int64_t created_at_us;
	int64_t secret_version;
	int64_t previous_secret_until_us; /* TIME_NONE: no other secret was ever valid */
	int64_t failures;                 /* notices in a row that used up their schedule */
	int64_t disabled_at_us;           /* TIME_NONE: enabled */
	const char *disabled_by;          /* "failures", "operator", "user"; NULL: it is enabled */
	int64_t waiting;                  /* deliveries */
};
struct webhook_list {
	struct webhook_record *items;
	size_t count;
	bool more;
	bool partial; /* a server is away that may have some, too */
};
/* url and types (NULL: all; else separated by commas) were checked by the caller. ERR_REFUSED when
 * the account has WEBHOOKS_MAX already. */
int store_create_webhook(struct store *store, struct slice account_id, const char *url,
                         const char *types, int64_t now_us, char ret_endpoint_id[ID_SIZE],
                         struct error *error) MUST_CHECK;
int store_find_webhook(struct store *store, struct slice endpoint_id, struct arena *arena,
                       struct webhook_record *ret, struct error *error) MUST_CHECK;
/* account_id empty: those of all accounts. At most `limit` behind the one called `after`. */
int store_list_webhooks(struct store *store, struct slice account_id, struct slice after,
                        int64_t limit, struct arena *arena, struct webhook_list *ret,
                        struct error *error) MUST_CHECK;

/* What is NULL stays as it is; types "" stands for every type. */
int store_change_webhook(struct store *store, struct slice endpoint_id, const char *url,
                         const char *types, struct error *error) MUST_CHECK;
/* The next secret version; the present one goes on to sign beside it until previous_until_us.
 * ERR_CONFLICT: the one before it signs still, and would not any more; unless end_previous. */
int store_rotate_webhook(struct store *store, struct slice endpoint_id, int64_t previous_until_us,
                         bool end_previous, struct error *error) MUST_CHECK;
/* disabled_by: who disables it, "operator" or "user"; NULL: it is enabled, which forgets failures
 * and takes up what waits. */
int store_switch_webhook(struct store *store, struct slice endpoint_id, const char *disabled_by,
                         int64_t now_us, struct error *error) MUST_CHECK;
/* Gone for everyone at once; housekeeping removes its rows. */
int store_delete_webhook(struct store *store, struct slice endpoint_id, int64_t now_us,
                         struct error *error) MUST_CHECK;
struct attempt_view {
	int64_t attempt; /* from 1 */
	int64_t at_us;
	int64_t duration_us;
	int64_t http_status; /* 0: no complete answer */
	const char *error;   /* NULL: a complete answer came */
	struct slice answer; /* first bytes of its body, any bytes */
};
struct delivery_view {
	int64_t notice; /* its number, by which the list goes */
	char notice_id[ID_SIZE];
	const char *type;
	const char *mode;
	int64_t created_at_us;
	const char *status; /* "waiting", "delivered", "failed" */
	int64_t attempts;
	int64_t due_at_us;        /* waiting: when it is due; else when it ended */
	int64_t replayed_at_us;   /* when it was last asked for again; TIME_NONE: never */
	struct attempt_view last; /* attempt 0: none yet */
};
struct delivery_list {
	struct delivery_view *items;
	size_t count;
	bool more;
};
/* Newest notice first, below number `before` (0: from the newest); status NULL: any. */
int store_list_deliveries(struct store *store, struct slice endpoint_id, const char *status,
                          int64_t before, int64_t limit, struct arena *arena,
                          struct delivery_list *ret, struct error *error) MUST_CHECK;

struct attempt_list {
	struct attempt_view *items;
	size_t count;
	bool more;
};
/* All attempts to deliver one notice to an endpoint, oldest first. ERR_NOT_FOUND names the notice
 * when it was never for that endpoint. */
int store_list_attempts(struct store *store, struct slice endpoint_id, struct slice notice_id,
                        struct arena *arena, struct attempt_list *ret, struct error *error)
	MUST_CHECK;

#endif
