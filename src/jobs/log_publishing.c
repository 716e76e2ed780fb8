/* Publishes the log of segments: its checkpoints and their cosignatures. */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/schedule.h"
#include "base/tuned.h"
#include "evidence/log_publisher.h"
#include "jobs/internal.h"
#include "service/read_only.h"

#define POLL_US US_PER_SECOND
#define PAUSE_MAX_US (60 * US_PER_SECOND)

int log_publishing_init(struct log_publishing *publishing, struct service *service,
                        const char *node, struct lease_renewer *lease_renewer, struct error *error)
{
	*publishing = (struct log_publishing){
		.service = service,
		.lease = {.store = service->store,
	              .lease_renewer = lease_renewer,
	              .name = LEASE_LOG,
	              .holder = publishing->holder},
	};
	snprintf(publishing->holder, sizeof publishing->holder, "%s", node);
	return log_publisher_make(service, &publishing->publisher, error);
}

void log_publishing_free(struct log_publishing *publishing)
{
	log_publisher_free(publishing->publisher);
}

/* Counts the time since when something waits to be published. */
static void note_wait(struct log_publishing *publishing, bool waits)
{
	int64_t now_us = clock_monotonic_us();
	if (!waits)
		publishing->waits_since_us = 0;
	else if (publishing->waits_since_us == 0)
		publishing->waits_since_us = now_us;
	atomic_store(&publishing->service->counters.log_waiting_seconds,
	             waits ? (now_us - publishing->waits_since_us) / US_PER_SECOND : 0);
}

/* Lets another node try, whose key may be the right one; not if the store was set back, since the
 * refusal is right whatever another node knows. */
static int64_t give_up(struct log_publishing *publishing, int result, const struct error *error)
{
	bool set_back = result == ERR_CORRUPT;
	log_publisher_forget(publishing->publisher);
	if (!set_back && renewed_lease_end(&publishing->lease, NULL))
		log_warning("lease_not_ended", "name", "log");
	note_wait(publishing, true);
	atomic_store(&publishing->service->counters.log_set_back, set_back);
	log_warning("log_not_published", "error", error_code_text(result), "cause",
	            error_reason(error, result));
	return backoff_us(++publishing->failures, POLL_US, PAUSE_MAX_US);
}

int64_t log_publishing_run(void *context, const atomic_bool *stopping)
{
	struct log_publishing *publishing = context;
	struct error error = {0};
	bool leased = false;
	if (read_only_is_active(publishing->service))
		return READ_ONLY_POLL_US;
	int result = renewed_lease_take(&publishing->lease, &leased, &error);
	if (!result && leased) {
		result = log_publisher_run(publishing->publisher, tuned_up_to("log_poll_us", POLL_US / 2),
		                           &error);
		renewed_lease_pause(&publishing->lease);
	} else if (!result) {
		result = log_publisher_follow(publishing->publisher, &error);
	}
	if (result && !atomic_load(stopping))
		return give_up(publishing, result, &error);
	publishing->failures = 0;
	atomic_store(&publishing->service->counters.log_set_back, 0);
	note_wait(publishing, leased && !log_publisher_is_done(publishing->publisher));
	return tuned_up_to("log_poll_us", POLL_US);
}
