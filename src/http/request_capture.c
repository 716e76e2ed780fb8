#include "http/request_capture.h"

#include <assert.h>
#include <stdio.h>

#include "http/http_internal.h"
#include "service/request_sampler.h"
#include "http/request_text.h"

struct ended {
	const struct exchange *exchange;
	int status;
	bool cut;
	int64_t duration_us;
};

static void fill(struct request_record *record, const void *context)
{
	const struct ended *ended = context;
	const struct exchange *exchange = ended->exchange;
	const char *prefix = exchange->service->settings->service_prefix;
	record->account = exchange->key.account;
	record->channel = exchange->key.channel;
	record->key = exchange->key.key;
	record->at_us = clock_now_us() - ended->duration_us;
	bool is_id = request_number_parse(slice_of(exchange->request_id), &record->number);
	assert(is_id);
	record->method = exchange->method;
	record->route = exchange->route ? exchange->route->pattern : NULL;
	record->code = exchange->error_code ? error_code_text(exchange->error_code) : NULL;
	request_path_write(prefix, exchange->path, record->path, sizeof record->path);
	request_query_write(prefix, exchange->query,
	                    exchange->operation ? exchange->operation->parameters : NULL, record->query,
	                    sizeof record->query);
	snprintf(record->incident_id, sizeof record->incident_id, "%s", exchange->incident_id);
	record->status = ended->status;
	record->aborted = ended->cut;
	record->duration = ended->duration_us;
	record->bytes_in = (int64_t)exchange->body_seen;
	record->bytes_out = ended->status ? request_log_bytes_out(exchange) : 0;
}

void request_capture(const struct exchange *exchange, bool answered, bool cut, int64_t now_us)
{
	struct service *service = exchange->service;
	int64_t per_day = service->settings->requests_per_day;
	/* Includes revoked keys and keys of disabled accounts. */
	if (!exchange->key.key || !per_day)
		return;
	const struct ended ended = {
		.exchange = exchange,
		.status = request_log_status(exchange, answered),
		.cut = cut,
		.duration_us = now_us - exchange->started_us,
	};
	const struct sampled_request request = {
		.account = exchange->key.account,
		.failed = request_has_failed(ended.status, cut),
		.per_day = per_day,
		.fill = fill,
		.context = &ended,
	};
	if (!request_sampler_add(service->requests, &request, now_us))
		atomic_fetch_add_explicit(&service->counters.requests_skipped, 1, memory_order_relaxed);
}
