/* The deliverer's own: the endpoints that have something due, what was loaded of it, and whose turn
 * it is. In memory only: what matters is in the store. One thread.
 *
 * An endpoint that fails or is slow is in doubt until it acknowledges quickly: it then gets one
 * request at a time, pauses that grow with each failure, and a place among a part of all requests
 * under way only, so that however many are dead, the others go on. An account may have three
 * requests under way for each place that is left to the others, so that however many endpoints one
 * has, another's finds a place: one alone has three quarters of all. */
#ifndef JOBS_DELIVERY_QUEUE_H
#define JOBS_DELIVERY_QUEUE_H

#include <stdbool.h>

#include "base/clock.h"
#include "store/notices/deliveries.h"

#define UNDER_WAY_MAX 512          /* requests in all */
#define UNDER_WAY_IN_DOUBT_MAX 128 /* of them, to endpoints in doubt */
#define UNDER_WAY_ENDPOINT_MAX 4
#define UNRECORDED_MAX 64 /* deliveries of an endpoint that are under way or not recorded yet */
#define LOADED_MAX 32     /* deliveries of an endpoint held ready */

/* A delivery that is held ready. */
struct queue_item {
	struct delivery delivery; /* notice and counts; texts are not kept */
	struct buf body;
	struct queue_item *next;
};
void queue_item_free(struct queue_item *item); /* NULL-safe */

/* What the endpoints of an account have under way. */
struct queue_account {
	int64_t account;
	size_t endpoints; /* of the queue; without any it is freed */
	unsigned under_way;
	unsigned in_doubt_under_way;
	struct queue_account *chain; /* of the table */
};

struct queue_endpoint {
	int64_t account;
	struct queue_account *of;
	int64_t endpoint;
	char endpoint_id[ID_SIZE];
	char *url;
	int64_t secret_version;
	int64_t previous_secret_until_us; /* by the store's clock; TIME_NONE: none */
	struct queue_item *first;         /* held ready */
	struct queue_item **end;
	int64_t loaded_at_us; /* monotonic */
	bool due;             /* the store may have more that is due */
	bool in_doubt;
	unsigned failures;     /* in a row */
	int64_t not_before_us; /* monotonic */
	unsigned under_way;
	int64_t unrecorded[UNRECORDED_MAX]; /* notices */
	unsigned unrecorded_count;
	struct queue_endpoint *chain;           /* of the table */
	struct queue_endpoint *next, *previous; /* the ring of all */
};

#define QUEUE_BUCKETS 4096

struct delivery_queue {
	struct queue_endpoint ring; /* its anchor */
	struct queue_endpoint *buckets[QUEUE_BUCKETS];
	struct queue_account *accounts[QUEUE_BUCKETS];
	size_t count;
	unsigned under_way;
	unsigned in_doubt_under_way;
};

void queue_init(struct delivery_queue *queue);
/* Frees everything; nothing may be under way. */
void queue_clear(struct delivery_queue *queue);
/* The endpoint, made when it is not there; NULL: too many, or no memory. */
struct queue_endpoint *queue_endpoint(struct delivery_queue *queue, int64_t account,
                                      int64_t endpoint);
struct queue_endpoint *queue_find(struct delivery_queue *queue, int64_t account, int64_t endpoint);
/* Frees those that have nothing and whose past does not count any more. */
void queue_forget_idle(struct delivery_queue *queue, int64_t monotonic_us);

/* Whether a request to it may begin now. */
bool queue_may_begin(const struct delivery_queue *queue, const struct queue_endpoint *endpoint,
                     int64_t monotonic_us);
/* In the order of rounds, behind all others. */
void queue_move_last(struct delivery_queue *queue, struct queue_endpoint *endpoint);
/* How many deliveries are worth loading for it. */
int64_t queue_load_limit(const struct queue_endpoint *endpoint);
bool queue_is_unrecorded(const struct queue_endpoint *endpoint, int64_t notice);
/* Forgets what was loaded and has not begun. */
void queue_drop_loaded(struct queue_endpoint *endpoint);

/* Takes the next loaded delivery as under way; it is the caller's to free. */
struct queue_item *queue_begin(struct delivery_queue *queue, struct queue_endpoint *endpoint);
/* Its request has ended; it stays unrecorded. */
void queue_end(struct delivery_queue *queue, struct queue_endpoint *endpoint, bool acknowledged,
               int64_t duration_us, int64_t monotonic_us);
void queue_recorded(struct queue_endpoint *endpoint, int64_t notice);

#endif
