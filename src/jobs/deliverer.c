#include "jobs/deliverer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/tuned.h"
#include "base/utf8.h"
#include "service/read_only.h"
#include "store/nodes/leases.h"

#define LEASE_BEYOND_US (10 * US_PER_SECOND) /* margin beyond the duration of an attempt */
#define RENEW_US (3 * US_PER_SECOND)
#define LEASE_RETRY_US US_PER_SECOND
#define CHECK_INTERVAL_US INT64_C(250000)
#define CHECK_TIME_SHARE 20 /* checks take at most this fraction of the time */
#define ROUND_US INT64_C(50000)
#define LOADED_FRESH_US (2 * US_PER_SECOND)
#define IDLE_US (2 * US_PER_SECOND)
#define DRAIN_US (3 * US_PER_SECOND)
#define LOAD_MEMORY_MAX ((size_t)4 << 20)
#define BODY_MAX ((size_t)64 * 1024)
/* Results are recorded in batches, because every commit waits for the disk: acknowledgements soon,
 * failures together with other results, and after a failure to record with a delay. */
#define RECORD_ACKNOWLEDGED_US INT64_C(20000)
#define RECORD_US INT64_C(250000)
#define RECORD_RETRY_US US_PER_SECOND
#define RECORD_COUNT 512

/* A request in progress. */
struct attempt {
	struct http_exchange exchange;
	struct queue_endpoint *endpoint;
	struct queue_item *item;
	struct webhook_headers headers;
	int64_t at_us;
	char url[];
};

/* Returns whether the settings were reloaded since the rules were read. */
static bool is_reloaded(const struct deliverer *deliverer)
{
	return atomic_load(&deliverer->service->reloads) != deliverer->reloads;
}

/* Reads the rules. Open connections were checked against the former rules and are not reused. */
static int read_rules(struct deliverer *deliverer, struct error *error)
{
	struct webhook_rules rules;
	uint64_t reloads = atomic_load(&deliverer->service->reloads);
	int result = webhook_rules_read(deliverer->service->settings, &rules, error);
	if (result)
		return result;
	struct http_exchange *left = http_multi_stop(deliverer->many);
	assert(!left && deliverer->queue.under_way == 0); /* no request is in progress */
	deliverer->many = NULL;
	deliverer->rules = rules;
	deliverer->reloads = reloads;
	return OK;
}

int deliverer_init(struct deliverer *deliverer, struct service *service, const char *node,
                   struct error *error)
{
	*deliverer = (struct deliverer){
		.service = service,
		.record_count = (size_t)tuned_up_to("deliveries_recorded", RECORD_COUNT),
	};
	snprintf(deliverer->holder, sizeof deliverer->holder, "%s", node);
	queue_init(&deliverer->queue);
	deliverer->results = calloc(DELIVERER_RESULTS_MAX, sizeof *deliverer->results);
	if (!deliverer->results)
		return ERR_NO_MEMORY;
	return read_rules(deliverer, error);
}

static int64_t attempt_max_us(const struct deliverer *deliverer)
{
	return deliverer->rules.timeout_ms * INT64_C(1000);
}

/* ---- recording ---- */

static void count_result(struct deliverer *deliverer, const struct attempt_record *record,
                         struct queue_endpoint *endpoint)
{
	struct counters *counters = &deliverer->service->counters;
	atomic_fetch_add(record->end == DELIVERY_DONE ? &counters->notices_delivered
	                                              : &counters->notice_attempts_failed,
	                 1);
	if (record->end == DELIVERY_USED_UP)
		atomic_fetch_add(&counters->notices_failed, 1);
	if (!record->disabled)
		return;
	atomic_fetch_add(&counters->webhooks_disabled, 1);
	log_warning("webhook_disabled", "endpoint_id", endpoint ? endpoint->endpoint_id : NULL);
	if (endpoint) {
		queue_drop_loaded(endpoint);
		endpoint->due = false;
	}
}

/* Records `count` results and removes them from the queue. */
static int record_some(struct deliverer *deliverer, struct attempt_record *records, size_t count)
{
	assert(count > 0 && count <= DELIVERER_RESULTS_MAX);
	struct error error = {0};
	int result =
		store_record_attempts(deliverer->service->store, records, count, WEBHOOK_FAILURES_MAX,
	                          store_now_us(deliverer->service->store), &error);
	if (result)
		log_warning("deliveries_not_recorded", "error", error_code_text(result), "cause",
		            error_reason(&error, result));
	for (size_t i = 0; i < count && !result; i++) {
		if (!records[i].notice)
			continue;
		struct queue_endpoint *endpoint =
			queue_find(&deliverer->queue, records[i].account, records[i].endpoint);
		count_result(deliverer, &records[i], endpoint);
		if (endpoint)
			queue_recorded(endpoint, records[i].notice);
	}
	return result;
}

/* Returns whether the rows of one endpoint may be the cause, rather than the store. */
static bool is_of_one_endpoint(int result)
{
	return result == ERR_CORRUPT || result == ERR_INTERNAL || result == ERR_REFUSED ||
	       result == ERR_NO_MEMORY;
}

/* Records the results of each endpoint separately, so that a broken endpoint does not delay others.
 * The results of an endpoint are adjacent (store_record_attempts). Returns the number of results
 * that remain, moved to the start. */
static size_t record_each(struct deliverer *deliverer)
{
	struct attempt_record *all = deliverer->results;
	size_t count = deliverer->result_count, kept = 0;
	int result = OK;
	for (size_t first = 0, next; first < count; first = next) {
		for (next = first + 1; next < count && all[next].account == all[first].account &&
		                       all[next].endpoint == all[first].endpoint;)
			next++;
		if (!result || is_of_one_endpoint(result))
			result = record_some(deliverer, &all[first], next - first);
		if (!result)
			continue;
		assert(kept <= first && next <= count);
		memmove(&all[kept], &all[first], (next - first) * sizeof *all);
		kept += next - first;
	}
	return kept;
}

static void record(struct deliverer *deliverer)
{
	if (deliverer->result_count == 0)
		return;
	int result = record_some(deliverer, deliverer->results, deliverer->result_count);
	if (!result)
		deliverer->result_count = 0;
	else if (is_of_one_endpoint(result))
		deliverer->result_count = record_each(deliverer);
	deliverer->recorded_at_us = clock_monotonic_us();
	deliverer->recording_fails = deliverer->result_count > 0;
	if (deliverer->result_count == 0)
		deliverer->result_acknowledged = false;
}

/* Returns when the results must be recorded; INT64_MAX: there are none. */
static int64_t record_at_us(const struct deliverer *deliverer)
{
	if (deliverer->result_count == 0)
		return INT64_MAX;
	if (deliverer->recording_fails)
		return deliverer->recorded_at_us + RECORD_RETRY_US;
	if (deliverer->result_count >= deliverer->record_count)
		return 0;
	return deliverer->results_since_us +
	       (deliverer->result_acknowledged ? RECORD_ACKNOWLEDGED_US : RECORD_US);
}

/* Returns an entry for another result. There is always space, because requests in progress have
 * reserved theirs. */
static struct attempt_record *add_result(struct deliverer *deliverer,
                                         const struct queue_endpoint *endpoint)
{
	assert(deliverer->result_count < DELIVERER_RESULTS_MAX);
	if (deliverer->result_count == 0)
		deliverer->results_since_us = clock_monotonic_us();
	struct attempt_record *record = &deliverer->results[deliverer->result_count++];
	*record = (struct attempt_record){.account = endpoint->account, .endpoint = endpoint->endpoint};
	return record;
}

static bool has_room(const struct deliverer *deliverer)
{
	return deliverer->result_count + deliverer->queue.under_way < DELIVERER_RESULTS_MAX;
}

/* ---- an attempt ---- */

static int sign(const struct deliverer *deliverer, struct attempt *attempt)
{
	const struct queue_endpoint *endpoint = attempt->endpoint;
	char secret[WEBHOOK_SECRET_SIZE], previous[WEBHOOK_SECRET_SIZE];
	bool two = endpoint->previous_secret_until_us > store_now_us(deliverer->service->store);
	webhook_secret(&deliverer->installation, endpoint->endpoint_id, endpoint->secret_version,
	               secret);
	if (two)
		webhook_secret(&deliverer->installation, endpoint->endpoint_id,
		               endpoint->secret_version - 1, previous);
	int result = webhook_sign(&deliverer->rules, attempt->item->delivery.notice_id,
	                          buf_slice(&attempt->item->body), secret, two ? previous : NULL,
	                          attempt->at_us, &attempt->headers);
	explicit_bzero(secret, sizeof secret);
	explicit_bzero(previous, sizeof previous);
	return result;
}

static bool begin(struct deliverer *deliverer, struct queue_endpoint *endpoint)
{
	assert(deliverer->many && endpoint->first && endpoint->url);
	size_t url_size = strlen(endpoint->url) + 1;
	struct attempt *attempt = malloc(sizeof *attempt + url_size);
	if (!attempt)
		return false;
	memset(attempt, 0, sizeof *attempt);
	memcpy(attempt->url, endpoint->url, url_size);
	attempt->endpoint = endpoint;
	attempt->item = endpoint->first;
	attempt->at_us = store_now_us(deliverer->service->store);
	if (sign(deliverer, attempt)) {
		free(attempt);
		return false;
	}
	const struct queue_item *begun = queue_begin(&deliverer->queue, endpoint);
	assert(begun == attempt->item); /* the one that was signed */
	attempt->exchange.request = webhook_request(&deliverer->rules, attempt->url, &attempt->headers,
	                                            buf_slice(&attempt->item->body));
	attempt->exchange.context = attempt;
	http_multi_submit(deliverer->many, &attempt->exchange);
	deliverer->busy_at_us = clock_monotonic_us();
	return true;
}

static uint32_t random_number(void)
{
	uint32_t number;
	random_bytes(&number, sizeof number);
	return number;
}

/* Returns the wait until the next attempt, which the receiver may lengthen; negative: none is left.
 */
static int64_t next_wait_us(const struct deliverer *deliverer, const struct attempt *attempt,
                            int64_t now_us)
{
	const struct http_exchange *exchange = &attempt->exchange;
	int64_t wait_us = schedule_wait_us(&deliverer->rules.schedule,
	                                   attempt->item->delivery.tries + 1, random_number());
	int64_t asked_us =
		webhook_retry_after_us(&deliverer->rules, exchange->result, &exchange->answer, now_us);
	return wait_us >= 0 && wait_us < asked_us ? asked_us : wait_us;
}

static void fill_result(const struct deliverer *deliverer, const struct attempt *attempt,
                        bool acknowledged, struct attempt_record *record)
{
	const struct http_exchange *exchange = &attempt->exchange;
	const struct delivery *delivery = &attempt->item->delivery;
	int64_t now_us = store_now_us(deliverer->service->store);
	int64_t wait_us = acknowledged ? 0 : next_wait_us(deliverer, attempt, now_us);
	struct slice answer = buf_slice(&exchange->answer.body);
	record->notice = delivery->notice;
	record->attempts = delivery->attempts;
	record->tries = delivery->tries;
	/* Computed from the duration, because the request may have waited for its thread. */
	record->at_us = now_us - exchange->duration_us;
	record->duration_us = exchange->duration_us;
	record->end = acknowledged ? DELIVERY_DONE : wait_us < 0 ? DELIVERY_USED_UP : DELIVERY_AGAIN;
	record->next_at_us = now_us + wait_us;
	record->gone = webhook_is_gone(exchange->result, &exchange->answer);
	if (record->gone)
		record->url_digest = sha256_of(attempt->url, strlen(attempt->url));
	if (exchange->result) {
		struct slice kept = utf8_cut(slice_of(error_reason(&exchange->error, exchange->result)),
		                             DELIVERY_ERROR_MAX);
		assert(kept.size < sizeof record->error);
		memcpy(record->error, kept.data, kept.size);
		return;
	}
	assert(exchange->answer.status >= 100 && exchange->answer.status <= 599);
	record->http_status = exchange->answer.status;
	record->answer_size =
		(uint16_t)(answer.size < DELIVERY_ANSWER_MAX ? answer.size : DELIVERY_ANSWER_MAX);
	memcpy(record->answer, answer.data, record->answer_size);
}

static void attempt_free(struct attempt *attempt)
{
	http_answer_free(&attempt->exchange.answer);
	queue_item_free(attempt->item);
	free(attempt);
}

static struct queue_endpoint *end(struct deliverer *deliverer, struct attempt *attempt)
{
	assert(attempt->endpoint && attempt->item);
	struct queue_endpoint *endpoint = attempt->endpoint;
	bool acknowledged =
		webhook_is_acknowledged(attempt->exchange.result, &attempt->exchange.answer);
	struct attempt_record *record = add_result(deliverer, endpoint);
	fill_result(deliverer, attempt, acknowledged, record);
	deliverer->result_acknowledged |= acknowledged;
	queue_end(&deliverer->queue, endpoint, acknowledged, attempt->exchange.duration_us,
	          clock_monotonic_us());
	attempt_free(attempt);
	return endpoint;
}

/* ---- loading ---- */

static int add_item(struct queue_endpoint *endpoint, const struct delivery *delivery)
{
	struct queue_item *item = calloc(1, sizeof *item);
	if (!item)
		return ERR_NO_MEMORY;
	item->delivery = *delivery;
	buf_init(&item->body, BODY_MAX);
	webhook_envelope(delivery->notice_id, delivery->type, delivery->created_at_us, delivery->mode,
	                 delivery->data, &item->body);
	if (buf_check(&item->body)) {
		queue_item_free(item);
		return ERR_NO_MEMORY;
	}
	*endpoint->end = item;
	endpoint->end = &item->next;
	return OK;
}

static int take_batch(struct queue_endpoint *endpoint, const struct delivery_batch *batch)
{
	assert(!endpoint->first); /* loaded ones may be of another address or secret */
	char *url = strdup(batch->url);
	if (!url)
		return ERR_NO_MEMORY;
	free(endpoint->url);
	endpoint->url = url;
	memcpy(endpoint->endpoint_id, batch->endpoint_id, ID_SIZE);
	endpoint->secret_version = batch->secret_version;
	endpoint->previous_secret_until_us = batch->previous_secret_until_us;
	int result = OK;
	for (size_t i = 0; i < batch->count && !result; i++)
		if (!queue_is_unrecorded(endpoint, batch->items[i].notice))
			result = add_item(endpoint, &batch->items[i]);
	return result;
}

static void load(struct deliverer *deliverer, struct queue_endpoint *endpoint, int64_t now_us)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, LOAD_MEMORY_MAX);
	struct error error = {0};
	struct delivery_batch batch = {0};
	int64_t limit = queue_load_limit(&deliverer->queue, endpoint);
	struct store *store = deliverer->service->store;
	int result = store_load_deliveries(store, endpoint->account, endpoint->endpoint,
	                                   store_now_us(store), limit, &arena, &batch, &error);
	if (!result)
		result = take_batch(endpoint, &batch);
	endpoint->loaded_at_us = now_us;
	endpoint->due = !result && (int64_t)batch.count == limit;
	if (result && result != ERR_NOT_FOUND)
		log_warning("deliveries_not_loaded", "error", error_code_text(result), "cause",
		            error_reason(&error, result));
	/* The store lists the endpoint as due although nothing is. An empty result updates the store's
	 * state. */
	bool stale = result == ERR_NOT_FOUND || (!result && batch.count == 0);
	if (stale && endpoint->unrecorded_count == 0 && has_room(deliverer))
		add_result(deliverer, endpoint);
}

static bool lease_outlasts(const struct deliverer *deliverer, int64_t now_us)
{
	return deliverer->leased_until_us - now_us > attempt_max_us(deliverer);
}

static void begin_all(struct deliverer *deliverer, struct queue_endpoint *endpoint)
{
	int64_t now_us = clock_monotonic_us();
	while (lease_outlasts(deliverer, now_us) && has_room(deliverer) && !is_reloaded(deliverer) &&
	       queue_may_begin(&deliverer->queue, endpoint, now_us)) {
		if (endpoint->first && now_us - endpoint->loaded_at_us > LOADED_FRESH_US) {
			queue_drop_loaded(endpoint); /* address, secret or state may have changed */
			endpoint->due = true;
		}
		if (!endpoint->first && endpoint->due)
			load(deliverer, endpoint, now_us);
		if (!endpoint->first || !begin(deliverer, endpoint))
			return;
	}
}

/* ---- round-robin ---- */

static int mark_due(void *context, int64_t account, int64_t endpoint)
{
	struct deliverer *deliverer = context;
	struct queue_endpoint *found = queue_endpoint(&deliverer->queue, account, endpoint);
	if (found)
		found->due = true;
	return OK;
}

static void find_due(struct deliverer *deliverer)
{
	struct error error = {0};
	int64_t started_us = clock_monotonic_us();
	struct store *store = deliverer->service->store;
	int result = store_each_due_webhook(store, store_now_us(store), mark_due, deliverer, &error);
	if (result)
		log_warning("deliveries_not_found", "error", error_code_text(result), "cause",
		            error_reason(&error, result));
	int64_t now_us = clock_monotonic_us();
	int64_t pause_us = result ? LEASE_RETRY_US : (now_us - started_us) * CHECK_TIME_SHARE;
	deliverer->check_at_us = now_us + (pause_us > CHECK_INTERVAL_US ? pause_us : CHECK_INTERVAL_US);
}

/* An endpoint that started a request goes to the end, so that all endpoints get slots when these
 * are scarce. */
static void run_round(struct deliverer *deliverer)
{
	struct delivery_queue *queue = &deliverer->queue;
	struct queue_endpoint *next;
	size_t left = queue->count;
	for (struct queue_endpoint *at = queue->ring.next; left > 0; at = next, left--) {
		next = at->next;
		unsigned before = at->under_way;
		begin_all(deliverer, at);
		if (at->under_way != before)
			queue_move_last(queue, at);
	}
	int64_t now_us = clock_monotonic_us();
	queue_forget_idle(queue, now_us);
	deliverer->round_at_us = now_us + ROUND_US;
}

/* ---- the lease ---- */

static bool hold_lease(struct deliverer *deliverer)
{
	struct error error = {0};
	bool taken = false;
	int64_t duration_us = attempt_max_us(deliverer) + LEASE_BEYOND_US;
	int64_t now_us = clock_monotonic_us();
	int result =
		store_take_lease(deliverer->service->store, LEASE_DELIVERER, deliverer->holder,
	                     store_now_us(deliverer->service->store), duration_us, &taken, &error);
	if (result)
		log_warning("deliverer_not_leased", "error", error_code_text(result), "cause",
		            error_reason(&error, result));
	else
		deliverer->leased_until_us = taken ? now_us + duration_us : 0;
	deliverer->renew_at_us = clock_monotonic_us() + (result ? LEASE_RETRY_US : RENEW_US);
	/* While the store is unavailable, the previous lease is still valid. */
	return deliverer->leased_until_us > clock_monotonic_us();
}

/* ---- main loop ---- */

static void collect_ended(struct deliverer *deliverer, int64_t timeout_us, bool go_on)
{
	struct http_exchange *next;
	for (struct http_exchange *at = http_multi_collect(deliverer->many, timeout_us); at;
	     at = next) {
		next = at->next;
		struct queue_endpoint *endpoint = end(deliverer, at->context);
		if (go_on && !endpoint->in_doubt) /* otherwise it is due later */
			begin_all(deliverer, endpoint);
	}
}

static int64_t earliest(int64_t a_us, int64_t b_us)
{
	return a_us < b_us ? a_us : b_us;
}

/* Returns the time until the next action, unless a request ends before. */
static int64_t time_left(const struct deliverer *deliverer)
{
	int64_t at_us =
		earliest(deliverer->check_at_us, earliest(deliverer->round_at_us, deliverer->renew_at_us));
	int64_t left_us = earliest(at_us, record_at_us(deliverer)) - clock_monotonic_us();
	return left_us > 0 ? left_us : 0;
}

/* Returns whether this run has ended; the next run reads reloaded rules. */
static bool has_ended(const struct deliverer *deliverer)
{
	return deliverer->queue.under_way == 0 && deliverer->result_count == 0 &&
	       (is_reloaded(deliverer) || clock_monotonic_us() - deliverer->busy_at_us > IDLE_US);
}

static void work(struct deliverer *deliverer, const atomic_bool *stopping)
{
	deliverer->busy_at_us = clock_monotonic_us();
	deliverer->check_at_us = deliverer->round_at_us = 0;
	while (!atomic_load(stopping) && !has_ended(deliverer) &&
	       !read_only_is_active(deliverer->service)) {
		int64_t now_us = clock_monotonic_us();
		if (now_us >= deliverer->renew_at_us && !hold_lease(deliverer))
			break;
		if (now_us >= deliverer->check_at_us)
			find_due(deliverer);
		if (now_us >= deliverer->round_at_us)
			run_round(deliverer);
		collect_ended(deliverer, time_left(deliverer), true);
		if (clock_monotonic_us() >= record_at_us(deliverer))
			record(deliverer);
	}
}

/* Waits briefly for requests in progress. */
static void drain(struct deliverer *deliverer)
{
	int64_t end_us = clock_monotonic_us() + DRAIN_US;
	int64_t left_us;
	while (deliverer->queue.under_way > 0 && (left_us = end_us - clock_monotonic_us()) > 0)
		collect_ended(deliverer, left_us, false);
	record(deliverer);
}

/* Abandons requests in progress; they will be sent again. */
static void give_up(struct deliverer *deliverer)
{
	if (deliverer->queue.under_way > 0) {
		struct http_exchange *next;
		for (struct http_exchange *at = http_multi_stop(deliverer->many); at; at = next) {
			next = at->next;
			attempt_free(at->context);
		}
		deliverer->many = NULL;
	}
	deliverer->result_count = 0;
	deliverer->result_acknowledged = false;
	queue_clear(&deliverer->queue);
	queue_init(&deliverer->queue);
}

static int prepare(struct deliverer *deliverer, struct error *error)
{
	assert(deliverer->queue.under_way == 0 && deliverer->result_count == 0);
	int result = is_reloaded(deliverer) ? read_rules(deliverer, error) : OK;
	if (result || deliverer->many)
		return result;
	result = store_get_secret(deliverer->service->store, WEBHOOK_SECRET_NAME,
	                          &deliverer->installation, error);
	return result ? result : http_multi_start(&deliverer->many, error);
}

int64_t deliverer_run(void *context, const atomic_bool *stopping)
{
	struct deliverer *deliverer = context;
	if (read_only_is_active(deliverer->service))
		return READ_ONLY_POLL_US;
	struct error error = {0};
	int64_t due_us = INT64_MAX;
	int result = store_next_delivery(deliverer->service->store, &due_us, &error);
	int64_t wait_us = due_us - store_now_us(deliverer->service->store);
	if (!result && wait_us > 0)
		return earliest(wait_us, CHECK_INTERVAL_US);
	if (!result)
		result = prepare(deliverer, &error);
	if (result) {
		log_warning("deliverer_not_started", "error", error_code_text(result), "cause",
		            error_reason(&error, result));
		return LEASE_RETRY_US;
	}
	if (!hold_lease(deliverer))
		return LEASE_RETRY_US;
	work(deliverer, stopping);
	drain(deliverer);
	give_up(deliverer);
	deliverer->leased_until_us = 0;
	/* A lease that cannot be released expires. */
	(void)!store_end_lease(deliverer->service->store, LEASE_DELIVERER, deliverer->holder, NULL);
	return CHECK_INTERVAL_US;
}

void deliverer_free(struct deliverer *deliverer)
{
	if (!deliverer->results)
		return;
	struct http_exchange *left = http_multi_stop(deliverer->many);
	assert(!left && deliverer->queue.under_way == 0); /* none is in progress between runs */
	queue_clear(&deliverer->queue);
	free(deliverer->results);
	explicit_bzero(&deliverer->installation, sizeof deliverer->installation);
}
