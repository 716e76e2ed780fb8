/* Webhook endpoints: receivers of notices, as managed by the account's owner, and the log of
 * deliveries. The deliveries themselves are in deliveries.h.
 *
 * A notice is queued, in the transaction that causes it, for the endpoints of its account that are
 * enabled at that time and receive its type. An endpoint that is created later or is disabled at
 * that time does not get the notice unless it is replayed (replay.h). Deliveries that wait when an
 * endpoint is disabled keep waiting.
 *
 * Secrets are not stored. Each is derived from a secret of the installation, the endpoint and the
 * version number (service/webhook.h). Thread safe. Results live in the caller's arena. An unknown
 * identifier is ERR_NOT_FOUND with a message that names it. */
#ifndef STORE_WEBHOOKS_H
#define STORE_WEBHOOKS_H

#include "store/store.h"

#define WEBHOOKS_MAX 20 /* per account */

struct webhook_record {
	char endpoint_id[ID_SIZE];
	char account_id[ID_SIZE];
	const char *url;
	const char *types; /* separated by commas; NULL: every type */
	int64_t created_at_us;
	int64_t secret_version;
	int64_t previous_secret_until_us; /* TIME_NONE: there was no earlier secret */
	int64_t failures;                 /* consecutive notices that failed in all attempts */
	int64_t disabled_at_us;           /* TIME_NONE: enabled */
	const char *disabled_by;          /* "failures", "gone", "operator", "user"; NULL: enabled */
	int64_t waiting;                  /* number of waiting deliveries */
};
struct webhook_list {
	struct webhook_record *items;
	size_t count;
	bool more;
	bool partial; /* incomplete: a shard server is unavailable */
};
/* Creates an endpoint. The caller has checked url and types (NULL: all; else separated by commas).
 * Returns ERR_REFUSED when the account has WEBHOOKS_MAX endpoints. */
int store_create_webhook(struct store *store, struct slice account_id, const char *url,
                         const char *types, int64_t now_us, char ret_endpoint_id[ID_SIZE],
                         struct error *error) MUST_CHECK;
int store_find_webhook(struct store *store, struct slice endpoint_id, struct arena *arena,
                       struct webhook_record *ret, struct error *error) MUST_CHECK;
/* Lists at most `limit` endpoints after `after`; account_id empty: of all accounts. */
int store_list_webhooks(struct store *store, struct slice account_id, struct slice after,
                        int64_t limit, struct arena *arena, struct webhook_list *ret,
                        struct error *error) MUST_CHECK;

/* Changes url and types; NULL: unchanged. types "" selects every type. */
int store_change_webhook(struct store *store, struct slice endpoint_id, const char *url,
                         const char *types, struct error *error) MUST_CHECK;
/* Starts the next secret version. The current secret also signs until previous_until_us. Returns
 * ERR_CONFLICT when the secret before the current one still signs and would stop, unless
 * end_previous is set. */
int store_rotate_webhook(struct store *store, struct slice endpoint_id, int64_t previous_until_us,
                         bool end_previous, struct error *error) MUST_CHECK;
/* Disables the endpoint by "operator" or "user". disabled_by NULL enables it, resets the failures
 * and resumes waiting deliveries. */
int store_switch_webhook(struct store *store, struct slice endpoint_id, const char *disabled_by,
                         int64_t now_us, struct error *error) MUST_CHECK;
/* Deletes the endpoint. It is invisible at once; housekeeping removes its rows. */
int store_delete_webhook(struct store *store, struct slice endpoint_id, int64_t now_us,
                         struct error *error) MUST_CHECK;
struct attempt_view {
	int64_t attempt; /* from 1 */
	int64_t at_us;
	int64_t duration_us;
	int64_t http_status; /* 0: no complete response */
	const char *error;   /* NULL: a complete response was received */
	struct slice answer; /* first bytes of the response body, arbitrary bytes */
};
struct delivery_view {
	int64_t notice; /* its number, the sort key of the list */
	char notice_id[ID_SIZE];
	const char *type;
	const char *mode;
	int64_t created_at_us;
	const char *status; /* "waiting", "delivered", "failed" */
	int64_t attempts;
	int64_t due_at_us;        /* waiting: when it is due; else when it ended */
	int64_t replayed_at_us;   /* when it was last replayed; TIME_NONE: never */
	struct attempt_view last; /* attempt 0: none */
};
struct delivery_list {
	struct delivery_view *items;
	size_t count;
	bool more;
};
/* Lists deliveries, the newest notice first, with numbers below `before` (0: from the newest);
 * status NULL: any. */
int store_list_deliveries(struct store *store, struct slice endpoint_id, const char *status,
                          int64_t before, int64_t limit, struct arena *arena,
                          struct delivery_list *ret, struct error *error) MUST_CHECK;

struct attempt_list {
	struct attempt_view *items;
	size_t count;
	bool more;
};
/* Lists all attempts to deliver one notice to an endpoint, oldest first. Returns ERR_NOT_FOUND with
 * the notice's identifier when it was never queued for that endpoint. */
int store_list_attempts(struct store *store, struct slice endpoint_id, struct slice notice_id,
                        struct arena *arena, struct attempt_list *ret, struct error *error)
	MUST_CHECK;

#endif
