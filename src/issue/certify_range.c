#include "issue/certify_range.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "issue/certify.h"
#include "service/clock_start.h"
#include "service/registration_clock.h"

#define SLOW_US (20 * US_PER_SECOND) /* until the first attempt of a slow certification */

#define CONFIG_VERSIONS_MAX (CONFIG_VERSIONS_TEXT_MAX / 24)
/* An archive is a ZIP file of less than 4 GiB, and an event may take half a kilobyte of it. */
#define LIVE_CERTIFICATION_EVENTS_MAX 8000000

static int check_size(const struct certification *certification, struct error *error)
{
	int64_t count = certification->last_sequence - certification->first_sequence + 1;
	if (count < 1)
		return error_set(error, ERR_VALIDATION, MSG_SERVICE_RANGE_EMPTY, NULL);
	int limit = certification->mode == MODE_TEST ? TEST_CERTIFICATION_EVENTS_MAX
	                                             : LIVE_CERTIFICATION_EVENTS_MAX;
	if (count <= limit)
		return OK;
	char most[24], found[24];
	snprintf(most, sizeof most, "%d", limit);
	snprintf(found, sizeof found, "%" PRId64, count);
	return error_set(error, ERR_VALIDATION, MSG_SERVICE_RANGE_SIZE, most, found, NULL);
}

static int resolve_times(struct service *service, struct certification *certification,
                         int64_t cut_us, struct error *error)
{
	return store_resolve_times(service->store, certification->account, certification->chain,
	                           certification->range.from_us, cut_us, &certification->first_sequence,
	                           &certification->last_sequence, error);
}

/* Resolves the request into sequence numbers. *ret_sealed: these are sealed already. */
static int resolve(struct service *service, struct certification *certification, bool *ret_sealed,
                   struct error *error)
{
	const struct certification_range *range = &certification->range;
	struct chain_head head;
	int result =
		store_get_chain(service->store, certification->account, certification->chain, &head, error);
	if (!result)
		result = certification_range_check(range, head.last_sequence, error);
	if (result)
		return result;
	if (range->seq_from) {
		certification->first_sequence = range->seq_from;
		certification->last_sequence = range->seq_to;
	} else {
		result = resolve_times(
			service, certification,
			range_cut_us(range, head.last_received_at_us, certification->requested_at_us), error);
	}
	*ret_sealed = certification->last_sequence <= head.sealed_sequence;
	return result ? result : check_size(certification, error);
}

/* Called after resolve has found events: an empty range is not worth a change. */
static int close_range(struct service *service, struct certification *certification,
                       bool *ret_sealed, struct error *error)
{
	if (certification->range.seq_from)
		return OK;
	struct ledger_clock clock = {
		.now_us = certification->requested_at_us,
		.ahead_us = store_is_shared(service->store) ? 0 : service_clock_ahead_us(service),
		.bound_us = service->settings->seal_clock_bound,
		.refused_for_us = clock_start_refusal_us(service),
	};
	int64_t cut_us, before = certification->last_sequence;
	int result = store_close_range(service->store, certification->account, certification->chain,
	                               &certification->range, &clock, &cut_us, error);
	/* Events that the chain received while this request waited for its lock were received before
	 * the request was accepted. If the clock was set back by more than the bound, the two times
	 * stay different. */
	if (!result && cut_us > certification->requested_at_us &&
	    cut_us - certification->requested_at_us <= clock.bound_us)
		certification->requested_at_us = cut_us;
	if (!result)
		result = resolve_times(service, certification, cut_us, error);
	/* Compared with the value read before: a server that took over may have less. */
	if (!result && certification->last_sequence < before)
		result = error_cause(error, ERR_UNAVAILABLE,
		                     "the store was rolled back while a range was closed");
	assert(result || certification->last_sequence >= before);
	*ret_sealed = *ret_sealed && certification->last_sequence == before;
	return result ? result : check_size(certification, error);
}

static int list_versions(struct service *service, struct certification *certification,
                         struct buf *text, struct error *error)
{
	int64_t versions[CONFIG_VERSIONS_MAX];
	size_t count = 0;
	int result = store_list_config_versions(
		service->store, certification->account, certification->chain, certification->first_sequence,
		certification->last_sequence, CONFIG_VERSIONS_MAX, versions, &count, error);
	if (result == ERR_TOO_LARGE) {
		char most[24];
		snprintf(most, sizeof most, "%zu", CONFIG_VERSIONS_MAX);
		return error_set(error, ERR_VALIDATION, MSG_SERVICE_RANGE_CONFIGS, most, NULL);
	}
	struct json_writer writer = {.out = text};
	json_begin_array(&writer, NULL);
	for (size_t i = 0; i < count; i++)
		json_integer(&writer, NULL, versions[i]);
	json_end_array(&writer);
	certification->config_versions = buf_slice(text).data;
	return result ? result : buf_check(text);
}

static int freeze(struct service *service, const struct certification_order *order, bool closes,
                  struct certification *ret, struct buf *versions, bool *ret_sealed,
                  struct error *error)
{
	const struct key_identity *key = order->key;
	*ret = (struct certification){
		.account = key->account,
		.channel = key->channel,
		.chain = key->chain,
		.key = key->key,
		.mode = key->mode,
		.requested_at_us = range_requested_us(store_now_us(service->store), clock_now_us(),
	                                          service->settings->seal_clock_bound),
		.language = order->language,
		.range = *order->range,
		.fee = service->settings->certification_fee,
		.daily_max = service->settings->certification_per_day,
		.idempotency_key = order->idempotency_key,
		.expected = order->expected,
		.fails = order->fails,
		.seal_history = order->seal_history,
	};
	if (order->slow)
		ret->not_before_us = ret->requested_at_us + SLOW_US;
	memcpy(ret->channel_id, key->channel_id, ID_SIZE);
	int result = resolve(service, ret, ret_sealed, error);
	if (!result && closes)
		result = close_range(service, ret, ret_sealed, error);
	if (result)
		return result;
	assert(ret->first_sequence >= 1 && ret->first_sequence <= ret->last_sequence);
	assert(ret->chain / 2 == ret->channel && ret->chain % 2 == (ret->mode == MODE_TEST));
	assert(ret->mode == MODE_TEST || (!ret->fails && !ret->not_before_us));
	return list_versions(service, ret, versions, error);
}

int certification_freeze(struct service *service, const struct certification_order *order,
                         struct certification *ret, struct buf *versions, bool *ret_sealed,
                         struct error *error)
{
	return freeze(service, order, true, ret, versions, ret_sealed, error);
}

int certification_preview(struct service *service, const struct certification_order *order,
                          struct certification *ret, struct buf *versions, bool *ret_sealed,
                          struct error *error)
{
	return freeze(service, order, false, ret, versions, ret_sealed, error);
}
