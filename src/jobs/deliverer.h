/* Delivers notices: one node at a time, under a lease that it renews while there is work, and that
 * another node takes over when it runs out. A request begins only while the lease outlasts it, so
 * that no two nodes ever send the same notice at the same time.
 *
 * Requests run on a thread of their own (net/http_many.h); this one loads what is due, and records
 * what became of it, many results in one transaction. A reload's rules count once no request is
 * under way: connections that are kept open were judged by the former. What was acknowledged in the
 * moment of a crash, before it was recorded, is delivered again with the same id. */
#ifndef JOBS_DELIVERER_H
#define JOBS_DELIVERER_H

#include "jobs/delivery_queue.h"
#include "jobs/internal.h"
#include "net/http_many.h"
#include "service/webhook.h"

#define DELIVERER_RESULTS_MAX 2048

struct deliverer {
	struct service *service;
	char holder[HOLDER_SIZE];
	struct webhook_rules rules; /* of the settings as they were read last */
	uint64_t reloads;           /* the service's, then */
	struct sha256 installation; /* secret, once there was something to do */
	struct http_many *many;     /* likewise */
	struct delivery_queue queue;
	struct attempt_record *results; /* not recorded yet */
	size_t result_count;
	bool result_acknowledged; /* one of them */
	/* All monotonic. */
	int64_t results_since_us; /* the oldest */
	int64_t recorded_at_us;   /* last attempt to record */
	bool recording_fails;
	int64_t leased_until_us; /* 0: no lease */
	int64_t renew_at_us;
	int64_t look_at_us;  /* for endpoints with something due */
	int64_t round_at_us; /* for turns that came with time */
	int64_t busy_at_us;  /* last had something to do */
};
/* ERR_VALIDATION when the settings cannot be used. */
int deliverer_init(struct deliverer *deliverer, struct service *service, const char *node,
                   struct error *error) MUST_CHECK;
void deliverer_free(struct deliverer *deliverer);
job_thread_run_function deliverer_run;

#endif
