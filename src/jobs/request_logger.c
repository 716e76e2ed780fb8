/* Writes the rows of the request log that requests left in the buffer. */
#include "base/log.h"
#include "base/tuned.h"
#include "jobs/internal.h"
#include "service/read_only.h"
#include "service/request_sampler.h"

#define INTERVAL_US US_PER_SECOND

static int write_rows(struct service *service, const struct request_record *rows, size_t count,
                      struct error *error)
{
	size_t added = 0;
	int result = read_only_is_active(service)
	                 ? ERR_UNAVAILABLE
	                 : store_add_requests(service->store, rows, count, &added, error);
	atomic_fetch_add(&service->counters.requests_logged, (int64_t)added);
	atomic_fetch_add(&service->counters.requests_skipped, (int64_t)(count - added));
	if (result)
		request_sampler_drop(service->requests, rows, count);
	return result;
}

int64_t request_logger_run(void *context, const atomic_bool *stopping)
{
	struct request_logger *logger = context;
	struct service *service = logger->service;
	struct error error = {0};
	size_t count;
	(void)stopping;
	const struct request_record *rows = request_sampler_take(service->requests, &count);
	if (count) {
		int result = write_rows(service, rows, count, &error);
		if (result && !logger->failing && !read_only_is_active(service))
			log_warning("requests_not_logged", "cause", error_reason(&error, result));
		logger->failing = result != OK;
	}
	return tuned_up_to("request_log_us", INTERVAL_US);
}
