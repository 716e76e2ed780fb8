/* Repairs damaged parts of the embedded store's client_ref index. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "jobs/internal.h"
#include "service/read_only.h"
#include "store/events/ref_index.h"

#define INTERVAL_US US_PER_SECOND
#define AFTER_FAILURE_US (60 * US_PER_SECOND)

int64_t index_repairer_run(void *context, const atomic_bool *stopping)
{
	struct service *service = context;
	struct error error = {0};
	char number[24];
	if (read_only_is_active(service))
		return READ_ONLY_POLL_US;
	int64_t damaged = store_ref_index_damaged(service->store, &error);
	atomic_store(&service->counters.ref_index_damaged, damaged);
	if (damaged == 0)
		return INTERVAL_US;
	snprintf(number, sizeof number, "%" PRId64, damaged);
	log_error("ref_index_damaged", "parts", number, "cause", error.cause);
	int64_t repaired = 0;
	error_clear(&error);
	int result = store_ref_index_repair(service->store, stopping, &repaired, &error);
	atomic_fetch_add(&service->counters.ref_index_repaired, repaired);
	if (repaired > 0) {
		snprintf(number, sizeof number, "%" PRId64, repaired);
		log_info("ref_index_repaired", "parts", number);
	}
	if (!result)
		return INTERVAL_US;
	log_error("ref_index_not_repaired", "cause", error_reason(&error, result));
	return AFTER_FAILURE_US;
}
