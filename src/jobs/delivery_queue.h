/* Fair queue of the deliverer: the endpoints with due deliveries, the deliveries that were loaded,
 * and the order of endpoints (round-robin). Kept in memory only; the store has the authoritative
 * state. Not thread safe.
 *
 * An endpoint that fails or is slow is in doubt until it acknowledges quickly. It then gets one
 * request at a time, with a back-off that grows with the consecutive failures, and only slots from
 * a limited share of all concurrent requests. However many endpoints are down, the others are
 * served. An account may have three requests in progress for each slot that it leaves to others, so
 * that no number of endpoints of one account can block another account. A single account uses at
 * most three quarters of all slots. */
#ifndef JOBS_DELIVERY_QUEUE_H
#define JOBS_DELIVERY_QUEUE_H

#include <stdbool.h>

#include "base/clock.h"
#include "store/notices/deliveries.h"

#define UNDER_WAY_MAX 512          /* maximum concurrent requests */
#define UNDER_WAY_IN_DOUBT_MAX 128 /* of these, to endpoints in doubt */
#define UNDER_WAY_ENDPOINT_MAX 4
#define UNRECORDED_MAX 64 /* deliveries of an endpoint in progress or not recorded yet */
#define LOADED_MAX 32     /* maximum loaded deliveries of an endpoint */

/* A loaded delivery. */
struct queue_item {
	struct delivery delivery; /* notice and counts; without texts */
	struct buf body;
	struct queue_item *next;
};
void queue_item_free(struct queue_item *item); /* NULL-safe */

/* Requests in progress of an account's endpoints. */
struct queue_account {
	int64_t account;
	size_t endpoints; /* endpoints in the queue; the account is freed with the last one */
	unsigned under_way;
	unsigned in_doubt_under_way;
	struct queue_account *chain; /* next in the hash bucket */
};

struct queue_endpoint {
	int64_t account;
	struct queue_account *of;
	int64_t endpoint;
	char endpoint_id[ID_SIZE];
	char *url;
	int64_t secret_version;
	int64_t previous_secret_until_us; /* by the store's clock; TIME_NONE: none */
	struct queue_item *first;         /* loaded deliveries */
	struct queue_item **end;
	int64_t loaded_at_us; /* monotonic */
	bool due;             /* the store may have more due deliveries */
	bool in_doubt;
	unsigned failures;     /* consecutive */
	int64_t not_before_us; /* monotonic */
	unsigned under_way;
	int64_t unrecorded[UNRECORDED_MAX]; /* notices */
	unsigned unrecorded_count;
	struct queue_endpoint *chain;           /* next in the hash bucket */
	struct queue_endpoint *next, *previous; /* ring of all endpoints */
};

#define QUEUE_BUCKETS 4096

struct delivery_queue {
	struct queue_endpoint ring; /* anchor of the ring */
	struct queue_endpoint *buckets[QUEUE_BUCKETS];
	struct queue_account *accounts[QUEUE_BUCKETS];
	size_t count;
	unsigned under_way;
	unsigned in_doubt_under_way;
	unsigned under_way_max;          /* UNDER_WAY_MAX, less in tests, like the others */
	unsigned under_way_in_doubt_max; /* UNDER_WAY_IN_DOUBT_MAX */
	unsigned under_way_endpoint_max; /* UNDER_WAY_ENDPOINT_MAX */
	unsigned unrecorded_max;         /* UNRECORDED_MAX */
	int64_t loaded_max;              /* LOADED_MAX */
};

void queue_init(struct delivery_queue *queue);
/* Frees everything. No request may be in progress. */
void queue_clear(struct delivery_queue *queue);
/* Returns the endpoint, which is created if necessary; NULL: too many, or out of memory. */
struct queue_endpoint *queue_endpoint(struct delivery_queue *queue, int64_t account,
                                      int64_t endpoint);
struct queue_endpoint *queue_find(struct delivery_queue *queue, int64_t account, int64_t endpoint);
/* Frees endpoints that have no work and whose failures are old enough to be forgotten. */
void queue_forget_idle(struct delivery_queue *queue, int64_t monotonic_us);

/* Returns whether a request to the endpoint may start now. */
bool queue_may_begin(const struct delivery_queue *queue, const struct queue_endpoint *endpoint,
                     int64_t monotonic_us);
/* Moves the endpoint to the end of the round-robin order. */
void queue_move_last(struct delivery_queue *queue, struct queue_endpoint *endpoint);
/* Returns how many deliveries to load for the endpoint. */
int64_t queue_load_limit(const struct delivery_queue *queue, const struct queue_endpoint *endpoint);
bool queue_is_unrecorded(const struct queue_endpoint *endpoint, int64_t notice);
/* Frees loaded deliveries that have not started. */
void queue_drop_loaded(struct queue_endpoint *endpoint);

/* Starts the next loaded delivery; the caller frees it. */
struct queue_item *queue_begin(struct delivery_queue *queue, struct queue_endpoint *endpoint);
/* Ends a request; its delivery stays unrecorded. */
void queue_end(struct delivery_queue *queue, struct queue_endpoint *endpoint, bool acknowledged,
               int64_t duration_us, int64_t monotonic_us);
void queue_recorded(struct queue_endpoint *endpoint, int64_t notice);

#endif
