#include "jobs/delivery_queue.h"

#include <assert.h>
#include <stdlib.h>

#include "base/schedule.h"
#include "base/tuned.h"

#define ENDPOINTS_MAX 100000
#define SLOW_US (2 * US_PER_SECOND)
#define PAUSE_FREE_FAILURES 3 /* consecutive failures without a pause */
#define PAUSE_FIRST_US INT64_C(10000)
#define PAUSE_MAX_US US_PER_SECOND
#define DOUBT_KEPT_US (60 * US_PER_SECOND)
#define LOADED_IN_DOUBT_MAX 2
#define ACCOUNT_SHARE 3 /* requests of an account per free slot */

void queue_item_free(struct queue_item *item)
{
	if (!item)
		return;
	buf_free(&item->body);
	free(item);
}

void queue_init(struct delivery_queue *queue)
{
	*queue = (struct delivery_queue){
		.under_way_max = (unsigned)tuned_up_to("deliveries", UNDER_WAY_MAX),
		.under_way_in_doubt_max =
			(unsigned)tuned_up_to("deliveries_in_doubt", UNDER_WAY_IN_DOUBT_MAX),
		.under_way_endpoint_max =
			(unsigned)tuned_up_to("deliveries_of_endpoint", UNDER_WAY_ENDPOINT_MAX),
		.unrecorded_max = (unsigned)tuned_up_to("deliveries_unrecorded", UNRECORDED_MAX),
		.loaded_max = tuned_up_to("deliveries_loaded", LOADED_MAX),
	};
	/* Endpoints in doubt leave requests to the others. */
	assert(queue->under_way_in_doubt_max < queue->under_way_max);
	queue->ring.next = queue->ring.previous = &queue->ring;
}

/* ---- the table ---- */

static size_t bucket_of(int64_t account, int64_t endpoint)
{
	uint64_t mixed = ((uint64_t)account * UINT64_C(0x9e3779b97f4a7c15)) ^ (uint64_t)endpoint;
	return (size_t)((mixed * UINT64_C(0x9e3779b97f4a7c15)) >> 52) % QUEUE_BUCKETS;
}

struct queue_endpoint *queue_find(struct delivery_queue *queue, int64_t account, int64_t endpoint)
{
	struct queue_endpoint *at = queue->buckets[bucket_of(account, endpoint)];
	while (at && (at->account != account || at->endpoint != endpoint))
		at = at->chain;
	return at;
}

/* Adds an endpoint to its account; NULL: out of memory. */
static struct queue_account *join_account(struct delivery_queue *queue, int64_t account)
{
	struct queue_account **at = &queue->accounts[bucket_of(account, 0)];
	while (*at && (*at)->account != account)
		at = &(*at)->chain;
	if (!*at && (*at = calloc(1, sizeof **at)))
		(*at)->account = account;
	if (*at)
		(*at)->endpoints++;
	return *at;
}

static void leave_account(struct delivery_queue *queue, struct queue_account *account)
{
	assert(account->endpoints > 0);
	if (--account->endpoints > 0)
		return;
	struct queue_account **link = &queue->accounts[bucket_of(account->account, 0)];
	while (*link != account)
		link = &(*link)->chain;
	*link = account->chain;
	free(account);
}

struct queue_endpoint *queue_endpoint(struct delivery_queue *queue, int64_t account,
                                      int64_t endpoint)
{
	assert(queue->count <= ENDPOINTS_MAX);
	struct queue_endpoint *found = queue_find(queue, account, endpoint);
	if (found || queue->count == ENDPOINTS_MAX)
		return found;
	found = calloc(1, sizeof *found);
	if (!found)
		return NULL;
	found->of = join_account(queue, account);
	if (!found->of) {
		free(found);
		return NULL;
	}
	found->account = account;
	found->endpoint = endpoint;
	found->end = &found->first;
	struct queue_endpoint **bucket = &queue->buckets[bucket_of(account, endpoint)];
	found->chain = *bucket;
	*bucket = found;
	found->next = &queue->ring;
	found->previous = queue->ring.previous;
	found->next->previous = found->previous->next = found;
	queue->count++;
	return found;
}

static void forget(struct delivery_queue *queue, struct queue_endpoint *endpoint)
{
	assert(endpoint != &queue->ring && queue->count > 0);
	assert(endpoint->previous->next == endpoint && endpoint->next->previous == endpoint);
	assert(endpoint->of->account == endpoint->account); /* never counted for another */
	struct queue_endpoint **link =
		&queue->buckets[bucket_of(endpoint->account, endpoint->endpoint)];
	while (*link != endpoint)
		link = &(*link)->chain;
	*link = endpoint->chain;
	endpoint->previous->next = endpoint->next;
	endpoint->next->previous = endpoint->previous;
	queue_drop_loaded(endpoint);
	leave_account(queue, endpoint->of);
	free(endpoint->url);
	free(endpoint);
	queue->count--;
}

void queue_clear(struct delivery_queue *queue)
{
	while (queue->ring.next != &queue->ring)
		forget(queue, queue->ring.next);
	assert(queue->count == 0);
}

static bool is_idle(const struct queue_endpoint *endpoint, int64_t monotonic_us)
{
	if (endpoint->first || endpoint->due || endpoint->under_way || endpoint->unrecorded_count)
		return false;
	return !endpoint->in_doubt || endpoint->not_before_us + DOUBT_KEPT_US < monotonic_us;
}

void queue_forget_idle(struct delivery_queue *queue, int64_t monotonic_us)
{
	struct queue_endpoint *next;
	for (struct queue_endpoint *at = queue->ring.next; at != &queue->ring; at = next) {
		next = at->next;
		if (is_idle(at, monotonic_us))
			forget(queue, at);
	}
}

/* ---- scheduling ---- */

static bool has_place(unsigned max, unsigned all, unsigned own)
{
	return all < max && own < ACCOUNT_SHARE * (max - all);
}

bool queue_may_begin(const struct delivery_queue *queue, const struct queue_endpoint *endpoint,
                     int64_t monotonic_us)
{
	assert(endpoint->unrecorded_count <= UNRECORDED_MAX);
	assert(endpoint->under_way <= endpoint->of->under_way);
	assert(endpoint->of->under_way <= queue->under_way);
	if (!has_place(queue->under_way_max, queue->under_way, endpoint->of->under_way) ||
	    endpoint->unrecorded_count >= queue->unrecorded_max)
		return false;
	if (!endpoint->in_doubt)
		return endpoint->under_way < queue->under_way_endpoint_max;
	return endpoint->under_way == 0 &&
	       has_place(queue->under_way_in_doubt_max, queue->in_doubt_under_way,
	                 endpoint->of->in_doubt_under_way) &&
	       monotonic_us >= endpoint->not_before_us;
}

void queue_move_last(struct delivery_queue *queue, struct queue_endpoint *endpoint)
{
	assert(endpoint != &queue->ring);
	assert(endpoint->previous->next == endpoint && endpoint->next->previous == endpoint);
	endpoint->previous->next = endpoint->next;
	endpoint->next->previous = endpoint->previous;
	endpoint->next = &queue->ring;
	endpoint->previous = queue->ring.previous;
	endpoint->previous->next = queue->ring.previous = endpoint;
}

int64_t queue_load_limit(const struct delivery_queue *queue, const struct queue_endpoint *endpoint)
{
	assert(endpoint->unrecorded_count <= UNRECORDED_MAX);
	return endpoint->unrecorded_count +
	       (endpoint->in_doubt ? LOADED_IN_DOUBT_MAX : queue->loaded_max);
}

bool queue_is_unrecorded(const struct queue_endpoint *endpoint, int64_t notice)
{
	for (unsigned i = 0; i < endpoint->unrecorded_count; i++)
		if (endpoint->unrecorded[i] == notice)
			return true;
	return false;
}

void queue_drop_loaded(struct queue_endpoint *endpoint)
{
	while (endpoint->first) {
		struct queue_item *item = endpoint->first;
		endpoint->first = item->next;
		queue_item_free(item);
	}
	endpoint->end = &endpoint->first;
}

static void count_in_doubt(struct delivery_queue *queue, struct queue_endpoint *endpoint, int more)
{
	queue->in_doubt_under_way += (unsigned)more;
	endpoint->of->in_doubt_under_way += (unsigned)more;
	assert(endpoint->of->in_doubt_under_way <= endpoint->of->under_way);
	assert(queue->in_doubt_under_way <= queue->under_way);
}

struct queue_item *queue_begin(struct delivery_queue *queue, struct queue_endpoint *endpoint)
{
	assert(endpoint->first && endpoint->unrecorded_count < UNRECORDED_MAX);
	assert(queue->under_way < queue->under_way_max);
	struct queue_item *item = endpoint->first;
	endpoint->first = item->next;
	if (!endpoint->first)
		endpoint->end = &endpoint->first;
	endpoint->unrecorded[endpoint->unrecorded_count++] = item->delivery.notice;
	endpoint->under_way++;
	queue->under_way++;
	endpoint->of->under_way++;
	count_in_doubt(queue, endpoint, endpoint->in_doubt);
	return item;
}

static void set_doubt(struct delivery_queue *queue, struct queue_endpoint *endpoint, bool in_doubt)
{
	if (endpoint->in_doubt == in_doubt)
		return;
	endpoint->in_doubt = in_doubt;
	count_in_doubt(queue, endpoint,
	               in_doubt ? (int)endpoint->under_way : -(int)endpoint->under_way);
}

static int64_t pause_after(unsigned failures)
{
	return failures <= PAUSE_FREE_FAILURES
	           ? 0
	           : backoff_us(failures - PAUSE_FREE_FAILURES, PAUSE_FIRST_US, PAUSE_MAX_US);
}

void queue_end(struct delivery_queue *queue, struct queue_endpoint *endpoint, bool acknowledged,
               int64_t duration_us, int64_t monotonic_us)
{
	assert(endpoint->under_way > 0 && endpoint->under_way <= endpoint->unrecorded_count);
	assert(endpoint->of->under_way > 0 && queue->under_way > 0);
	endpoint->under_way--;
	queue->under_way--;
	endpoint->of->under_way--;
	count_in_doubt(queue, endpoint, -(int)endpoint->in_doubt);
	endpoint->failures = acknowledged ? 0 : endpoint->failures + 1;
	endpoint->not_before_us = monotonic_us + pause_after(endpoint->failures);
	set_doubt(queue, endpoint, !acknowledged || duration_us > SLOW_US);
}

void queue_recorded(struct queue_endpoint *endpoint, int64_t notice)
{
	for (unsigned i = 0; i < endpoint->unrecorded_count; i++)
		if (endpoint->unrecorded[i] == notice) {
			endpoint->unrecorded[i] = endpoint->unrecorded[--endpoint->unrecorded_count];
			return;
		}
}
