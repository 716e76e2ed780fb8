/* The job that makes evidence records and renews timestamps before they expire. */
#include <stdio.h>

#include "base/log.h"
#include "base/schedule.h"
#include "base/tuned.h"
#include "evidence/renewal.h"
#include "jobs/internal.h"
#include "service/read_only.h"
#include "store/evidence/evidence.h"

#define PAUSE_FIRST_US US_PER_SECOND
#define PAUSE_MAX_US (600 * US_PER_SECOND)
/* The search reads all certifications; after an upgrade no older nodes remain. */
#define FORGOTTEN_EVERY_US (6 * 3600 * US_PER_SECOND)

void renewer_init(struct renewer *renewer, struct service *service, const char *node,
                  struct lease_renewer *lease_renewer)
{
	*renewer = (struct renewer){
		.service = service,
		.lease = {.store = service->store,
	              .lease_renewer = lease_renewer,
	              .name = LEASE_RENEWER,
	              .holder = renewer->holder},
	};
	snprintf(renewer->holder, sizeof renewer->holder, "%s", node);
}

static int64_t shorter(int64_t pause_us, int64_t interval_us)
{
	return pause_us < interval_us ? pause_us : interval_us;
}

static int64_t or_zero(int64_t time_us)
{
	return time_us == TIME_NONE ? 0 : time_us;
}

/* Updates the metrics of this node, regardless of which node does the work. */
static void look(struct service *service)
{
	struct evidence_state state;
	struct error error = {0};
	int64_t due_us = TIME_NONE;
	int result = store_read_evidence_state(service->store, &state, &error);
	if (!result)
		result =
			store_evidence_due_since(service->store, clock_now_us(),
		                             service->settings->evidence_renew_before, &due_us, &error);
	if (result) {
		log_warning("evidence_not_checked", "cause", error_reason(&error, result));
		return;
	}
	atomic_store(&service->counters.evidence_waiting_since_us, or_zero(state.waiting_since_us));
	atomic_store(&service->counters.evidence_first_end_us, or_zero(state.first_end_us));
	atomic_store(&service->counters.evidence_due_since_us, or_zero(due_us));
	atomic_store(&service->counters.evidence_lost, state.lost);
}

/* Returns whether a refusal is temporary: another node was faster, or has the lease now. A repeated
 * refusal is an error. */
static bool is_passing(struct renewer *renewer, int result)
{
	bool again = renewer->refused;
	renewer->refused = result == ERR_REFUSED;
	return renewer->refused && !again;
}

/* At the start, and periodically afterwards. */
static int queue_forgotten(struct renewer *renewer, const struct renewal *renewal,
                           struct error *error)
{
	if (clock_monotonic_us() < renewer->missing_check_at_us ||
	    !store_is_whole(renewal->service->store))
		return OK;
	int result = renewal_queue_missing(renewal, error);
	if (!result)
		renewer->missing_check_at_us =
			clock_monotonic_us() + tuned_up_to("missing_us", FORGOTTEN_EVERY_US);
	return result;
}

int64_t renewer_run(void *context, const atomic_bool *stopping)
{
	struct renewer *renewer = context;
	if (read_only_is_active(renewer->service))
		return READ_ONLY_POLL_US;
	struct service *service = renewer->service;
	const struct renewal renewal = {service, stopping, &renewer->lease.lost};
	int64_t interval_us = service->settings->evidence_interval;
	struct error error = {0};
	bool leased = false;
	int result = renewed_lease_take(&renewer->lease, &leased, &error);
	if (!result && !leased) {
		renewer->refused = false;
		look(service);
		return interval_us; /* another node does the work */
	}
	if (!result) {
		result = queue_forgotten(renewer, &renewal, &error);
		if (!result)
			result = renewal_pass(&renewal, &error);
		renewed_lease_pause(&renewer->lease);
		if (renewed_lease_end(&renewer->lease, NULL))
			log_warning("renewer_lease_not_released", "cause", "it runs out");
	}
	look(service);
	if (is_passing(renewer, result) || !result || atomic_load(stopping)) {
		renewer->failures = 0;
		return result ? shorter(PAUSE_FIRST_US, interval_us) : interval_us;
	}
	atomic_fetch_add(&service->counters.evidence_failures, 1);
	log_error("evidence_not_renewed", "error", error_code_text(result), "cause",
	          error_reason(&error, result));
	return backoff_us(++renewer->failures, PAUSE_FIRST_US, PAUSE_MAX_US);
}
