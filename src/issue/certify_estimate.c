/* Estimate of a certification: the bytes of its documents, and whether a request would be accepted.
 */
#include "issue/certify.h"
#include "issue/certify_range.h"
#include "report/report.h"
#include "service/read_only.h"
#include "store/events/segments.h"

/* Upper bounds, in addition to the content: both reports, a row of a report, and the overhead of
 * each event in the archive and the content part. */
#define REPORTS_BYTES ((int64_t)1 << 20)
#define ROW_BYTES 1024
#define EVENT_BYTES 512
#define SEGMENT_MEMORY_MAX ((size_t)4 << 20)
#define SUMMED_EVENTS_MAX 10000 /* number of events whose content is added up individually */

/* Estimates the content; never too low, because few of a day's events may have most of its
 * content. */
static int expect_content(struct service *service, const struct certification *certification,
                          int64_t *ret_bytes, struct error *error)
{
	const int64_t first = certification->first_sequence, last = certification->last_sequence;
	struct content_estimate estimate;
	int result = store_estimate_content(service->store, certification->account,
	                                    certification->chain, first, last, &estimate, error);
	if (!result && !estimate.exact && last - first < SUMMED_EVENTS_MAX)
		return store_sum_content(service->store, certification->account, certification->chain,
		                         first, last, ret_bytes, error);
	if (!result)
		*ret_bytes = estimate.most;
	return result;
}

/* Computes the size of the seal documents before the range; never too low, because they are
 * compressed. */
static int expect_history(struct service *service, const struct certification *certification,
                          int64_t *ret_bytes, struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct segment_record segment;
	arena_init(&arena, SEGMENT_MEMORY_MAX);
	if (!certification->seal_history || certification->mode == MODE_TEST)
		return OK;
	int result = store_find_segment(service->store, certification->account, certification->chain,
	                                certification->first_sequence, &arena, &segment, error);
	if (result && result != ERR_NOT_FOUND)
		return result;
	return store_measure_seals(service->store, certification->account, certification->chain, 1,
	                           result ? INT64_MAX : segment.number, ret_bytes, error);
}

int certification_expect_bytes(struct service *service, struct certification *certification,
                               struct error *error)
{
	const struct settings *settings = service->settings;
	int64_t content = 0, history = 0,
			events = certification->last_sequence - certification->first_sequence + 1;
	int64_t since_us = certification->requested_at_us - settings->certification_share_within;
	bool alike = false;
	int result = OK;
	certification->stored_max = settings->account_stored_bytes;
	if (settings->certification_share_within > 0)
		result = store_has_same_range_certification(service->store, certification, since_us, &alike,
		                                            error);
	if (!result && !alike)
		result = expect_content(service, certification, &content, error);
	if (!result)
		result = expect_history(service, certification, &history, error);
	int64_t rows = events < REPORT_EVENT_ROWS_MAX ? events : REPORT_EVENT_ROWS_MAX;
	certification->expected_bytes =
		REPORTS_BYTES + rows * ROW_BYTES + (alike ? 0 : events * EVENT_BYTES) + content + history;
	return result;
}

static int check_all(struct service *service, const struct certification_order *order,
                     const struct certification *certification, struct error *why)
{
	int result = read_only_refuse(service, why);
	if (!result)
		result = service_check_writes(order->key, why);
	if (!result)
		result = store_check_certification(
			service->store, service->settings->certification_open_per_account, certification, why);
	return result;
}

int certification_estimate(struct service *service, const struct certification_order *order,
                           struct certification_estimate *ret, struct error *error)
{
	struct certification certification;
	BUF_AUTO struct buf versions;
	buf_init(&versions, CONFIG_VERSIONS_TEXT_MAX);
	*ret = (struct certification_estimate){0};
	struct content_estimate content = {0};
	int result =
		certification_preview(service, order, &certification, &versions, &ret->sealed, error);
	if (!result)
		result = store_estimate_content(service->store, certification.account, certification.chain,
		                                certification.first_sequence, certification.last_sequence,
		                                &content, error);
	if (!result)
		result = certification_expect_bytes(service, &certification, error);
	if (result)
		return result;
	ret->content_bytes = content.bytes;
	ret->content_exact = content.exact;
	ret->first_sequence = certification.first_sequence;
	ret->last_sequence = certification.last_sequence;
	ret->fee = certification.mode == MODE_TEST ? 0 : certification.fee;
	ret->refusal = check_all(service, order, &certification, &ret->why);
	/* A server error says nothing about the request, unless the cause is that the store is a
	 * read-only copy. */
	bool is_fault = ret->refusal && error_http_status(ret->refusal) >= 500;
	if (!is_fault || read_only_is_active(service))
		return OK;
	*error = ret->why;
	return ret->refusal;
}
