/* Delivers notices. One node delivers at a time, under a lease that it renews while there is work;
 * another node takes over when the lease expires. A request starts only if the lease outlasts it,
 * so that two nodes never send the same notice at the same time.
 *
 * Requests run on a separate thread (net/http_multi.h). This thread loads due deliveries and
 * records results, many in one transaction. Reloaded rules take effect once no request is in
 * progress, because open connections were checked against the former rules. A delivery that was
 * acknowledged but not recorded before a crash is repeated with the same id. */
#ifndef JOBS_DELIVERER_H
#define JOBS_DELIVERER_H

#include "jobs/delivery_queue.h"
#include "jobs/internal.h"
#include "net/http_multi.h"
#include "service/webhook.h"

#define DELIVERER_RESULTS_MAX 2048

struct deliverer {
	struct service *service;
	char holder[HOLDER_SIZE];
	struct webhook_rules rules; /* rules of the last settings */
	uint64_t reloads;           /* the service's counter at that time */
	struct sha256 installation; /* the secret; read before the first delivery */
	struct http_multi *many;    /* started before the first delivery */
	struct delivery_queue queue;
	struct attempt_record *results; /* not recorded yet */
	size_t result_count;
	size_t record_count;      /* results that are recorded at once; RECORD_COUNT, less in tests */
	bool result_acknowledged; /* one of them is an acknowledgement */
	/* All times are monotonic. */
	int64_t results_since_us; /* oldest result */
	int64_t recorded_at_us;   /* last attempt to record */
	bool recording_fails;
	int64_t leased_until_us; /* 0: no lease */
	int64_t renew_at_us;
	int64_t check_at_us; /* next check for due endpoints */
	int64_t round_at_us; /* next round over all endpoints */
	int64_t busy_at_us;  /* last time with work */
};
/* Initializes the job. ERR_VALIDATION: invalid settings. */
int deliverer_init(struct deliverer *deliverer, struct service *service, const char *node,
                   struct error *error) MUST_CHECK;
void deliverer_free(struct deliverer *deliverer);
job_thread_run_function deliverer_run;

#endif
