/* Deliveries of notices, as made by the deliverer (jobs/deliverer.h): one node at a time, under a
 * lease (leases.h). Thread safe.
 *
 * An attempt is identified by its number. Recording it twice changes nothing, so that a commit of
 * unknown outcome can be repeated. */
#ifndef STORE_DELIVERIES_H
#define STORE_DELIVERIES_H

#include "base/digest.h"
#include "store/store.h"

#define DELIVERY_ERROR_MAX 200  /* bytes stored of the reason why there was no response */
#define DELIVERY_ANSWER_MAX 256 /* bytes stored of a response body */

/* Calls `each` for every endpoint with a delivery due at now_us. A non-zero result of `each` ends
 * the iteration and is returned. */
int store_each_due_webhook(struct store *store, int64_t now_us,
                           int (*each)(void *context, int64_t account, int64_t endpoint),
                           void *context, struct error *error) MUST_CHECK;
/* Returns when the next delivery of any endpoint is due; INT64_MAX: none. */
int store_next_delivery(struct store *store, int64_t *ret_at_us, struct error *error) MUST_CHECK;

struct delivery {
	int64_t notice;
	int64_t attempts; /* made so far */
	int64_t tries;    /* made in the current schedule */
	char notice_id[ID_SIZE];
	const char *type;
	const char *mode;
	int64_t created_at_us;
	struct slice data;
};
struct delivery_batch {
	char endpoint_id[ID_SIZE];
	const char *url;
	int64_t secret_version;
	int64_t previous_secret_until_us; /* TIME_NONE: none */
	struct delivery *items; /* retries first; then new and replayed deliveries alternately; each in
	                           order of their due times */
	size_t count;
};
/* Reads at most `limit` due deliveries of an endpoint, with what is needed to send them, into the
 * arena. Returns ERR_NOT_FOUND when the endpoint is disabled or deleted. */
int store_load_deliveries(struct store *store, int64_t account, int64_t endpoint, int64_t now_us,
                          int64_t limit, struct arena *arena, struct delivery_batch *ret,
                          struct error *error) MUST_CHECK;

enum delivery_end {
	DELIVERY_DONE,    /* acknowledged */
	DELIVERY_AGAIN,   /* retry at next_at_us */
	DELIVERY_USED_UP, /* the last attempt of the schedule failed */
};
struct attempt_record {
	int64_t account;
	int64_t endpoint;
	int64_t notice;   /* 0: no attempt, only recalculate when the endpoint is due */
	int64_t attempts; /* as loaded */
	int64_t tries;    /* as loaded */
	enum delivery_end end;
	int64_t at_us;
	int64_t duration_us;
	int64_t next_at_us;
	int http_status; /* 0: no complete response */
	char error[DELIVERY_ERROR_MAX + 1];
	uint16_t answer_size;
	char answer[DELIVERY_ANSWER_MAX];
	/* The receiver no longer exists: disables the endpoint, unless its URL has changed since. */
	bool gone;
	struct sha256 url_digest; /* gone: of the URL that was sent to */
	bool disabled;            /* output: this attempt disabled its endpoint */
};
/* Records attempts in one durable transaction, in their order within an endpoint; sorts the array
 * by endpoint. When failures_max consecutive notices have exhausted their schedule, or the receiver
 * is gone, the endpoint is disabled, which has an audit record, and a mail is sent to the account's
 * owner. */
int store_record_attempts(struct store *store, struct attempt_record *records, size_t count,
                          int64_t failures_max, int64_t now_us, struct error *error) MUST_CHECK;

struct delivery_counts {
	int64_t waiting;  /* deliveries of enabled endpoints */
	int64_t held;     /* deliveries of disabled endpoints */
	int64_t disabled; /* endpoints disabled because of failures, or of a receiver that is gone */
};
int store_count_deliveries(struct store *store, struct delivery_counts *ret, struct error *error)
	MUST_CHECK;

/* Removes deliveries that ended or were held before before_us, with their attempts, then notices
 * that no delivery needs, and the rows of deleted endpoints. Uses short transactions and removes at
 * most `most` notices and deliveries; *ret_removed is the number removed. */
int store_forget_notices(struct store *store, int64_t before_us, int64_t most, int64_t *ret_removed,
                         struct error *error) MUST_CHECK;

#endif
