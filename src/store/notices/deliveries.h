/* Deliveries of notices as the deliverer makes them (jobs/deliverer.h): one node at a time, under
 * a lease (leases.h). Thread safe.
 *
 * An attempt counts by its number: recorded twice it changes nothing, so that a commit of unknown
 * outcome can be repeated. */
#ifndef STORE_DELIVERIES_H
#define STORE_DELIVERIES_H

#include "store/store.h"

#define DELIVERY_ERROR_MAX 200  /* bytes kept of why there was no answer */
#define DELIVERY_ANSWER_MAX 256 /* bytes kept of an answer's body */

/* Calls `each` for every endpoint that has something due at now_us; its answer other than 0 ends
 * it and is given back. */
int store_each_due_webhook(struct store *store, int64_t now_us,
                           int (*each)(void *context, int64_t account, int64_t endpoint),
                           void *context, struct error *error) MUST_CHECK;
/* When the next delivery is due, over all endpoints; INT64_MAX: nothing waits. */
int store_next_delivery(struct store *store, int64_t *ret_at_us, struct error *error) MUST_CHECK;

struct delivery {
	int64_t notice;
	int64_t attempts; /* made */
	int64_t tries;    /* made in this schedule */
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
	struct delivery *items;           /* retries first; then what is new and what is replayed, in
	                                    turns; of each those due longest first */
	size_t count;
};
/* At most `limit` due deliveries of an endpoint, with what it takes to send them, in the arena.
 * ERR_NOT_FOUND when it is disabled or deleted. */
int store_load_deliveries(struct store *store, int64_t account, int64_t endpoint, int64_t now_us,
                          int64_t limit, struct arena *arena, struct delivery_batch *ret,
                          struct error *error) MUST_CHECK;

enum delivery_end {
	DELIVERY_DONE,    /* acknowledged */
	DELIVERY_AGAIN,   /* to be tried again at next_at_us */
	DELIVERY_USED_UP, /* that was the schedule's last try */
};
struct attempt_record {
	int64_t account;
	int64_t endpoint;
	int64_t notice;   /* 0: no attempt, only to find out anew when the endpoint is due */
	int64_t attempts; /* as loaded */
	int64_t tries;    /* as loaded */
	enum delivery_end end;
	int64_t at_us;
	int64_t duration_us;
	int64_t next_at_us;
	int http_status; /* 0: no complete answer */
	char error[DELIVERY_ERROR_MAX + 1];
	uint16_t answer_size;
	char answer[DELIVERY_ANSWER_MAX];
	bool disabled; /* out: this one had its endpoint disabled */
};
/* Records attempts in one durable transaction, in their order within an endpoint; the array is
 * sorted by endpoint for that. An endpoint is disabled, and its account's owner is sent a mail,
 * when failures_max notices in a row have used up their schedule. */
int store_record_attempts(struct store *store, struct attempt_record *records, size_t count,
                          int64_t failures_max, int64_t now_us, struct error *error) MUST_CHECK;

struct delivery_counts {
	int64_t waiting;  /* deliveries of enabled endpoints */
	int64_t held;     /* deliveries of disabled ones */
	int64_t disabled; /* endpoints that failures have disabled */
};
int store_count_deliveries(struct store *store, struct delivery_counts *ret, struct error *error)
	MUST_CHECK;

/* Removes what ended or was held before before_us: deliveries, their attempts, and notices that no
 * delivery needs; and what belonged to deleted endpoints. In short transactions, at most `most`
 * notices and deliveries in all: *ret_removed tells how many. */
int store_forget_notices(struct store *store, int64_t before_us, int64_t most, int64_t *ret_removed,
                         struct error *error) MUST_CHECK;

#endif
