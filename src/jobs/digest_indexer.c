/* Builds the index of digests from registered events. */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/tuned.h"
#include "jobs/internal.h"
#include "store/events/digest_index.h"

#define INTERVAL_US US_PER_SECOND               /* between two checks of the embedded store */
#define SHARED_INTERVAL_US (10 * US_PER_SECOND) /* and of a server, which reads all chains */
#define AFTER_FAILURE_US (10 * US_PER_SECOND)
/* Length of the pause after a step, in durations of the step: the job takes at most a quarter of a
 * processor or of the writer. */
#define PAUSES 3
#define LEASE_US (60 * US_PER_SECOND)
#define LEASE_RENEWED_US (20 * US_PER_SECOND)

void digest_indexer_init(struct digest_indexer *indexer, struct service *service, const char *node)
{
	*indexer = (struct digest_indexer){.service = service};
	snprintf(indexer->holder, sizeof indexer->holder, "%s", node);
}

/* The lease only saves the cost of steps that a second node would do in vain. */
static int take_lease(struct digest_indexer *indexer, bool *ret_taken, struct error *error)
{
	struct store *store = indexer->service->store;
	int64_t now_us = clock_monotonic_us();
	*ret_taken = true;
	if (!store_is_shared(store) || now_us < indexer->lease_until_us)
		return OK;
	int result = store_take_lease(store, LEASE_DIGESTS, indexer->holder, store_now_us(store),
	                              LEASE_US, ret_taken, error);
	if (!result && *ret_taken)
		indexer->lease_until_us = now_us + LEASE_RENEWED_US;
	return result;
}

/* Nothing but the index is written, so a read-only copy builds it, too. */
int64_t digest_indexer_run(void *context, const atomic_bool *stopping)
{
	struct digest_indexer *indexer = context;
	struct store *store = indexer->service->store;
	int64_t idle_us = store_is_shared(store) ? SHARED_INTERVAL_US : INTERVAL_US;
	struct digest_progress progress = {0};
	struct error error = {0};
	bool leased = false;
	int result = take_lease(indexer, &leased, &error);
	if (!result && !leased)
		return tuned_up_to("digests_us", idle_us);
	int64_t began_us = clock_monotonic_us();
	if (!result)
		result = store_index_digests(store, &progress, &error);
	if (progress.lag_known)
		atomic_store(&indexer->service->counters.digest_index_lag, progress.lag);
	if (progress.was_damaged)
		log_error("digest_index_damaged", "cause", progress.damage);
	if (result && atomic_load(stopping))
		return AFTER_FAILURE_US;
	if (result) {
		log_warning("digest_index_not_updated", "cause", error_reason(&error, result));
		return tuned_up_to("digests_failed_us", AFTER_FAILURE_US);
	}
	return progress.worked ? PAUSES * (clock_monotonic_us() - began_us)
	                       : tuned_up_to("digests_us", idle_us);
}
