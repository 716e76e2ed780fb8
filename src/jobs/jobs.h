/* Background jobs of a node: sealing rounds, issuing certifications, renewing evidence, delivering
 * notices, sending e-mails, automatic top-ups with their payments, housekeeping, and monitoring.
 *
 * The state of every job is in the store; a crash loses nothing and repeats nothing that was
 * completed. Several nodes may run the same jobs. Each kind of job has its own threads. */
#ifndef JOBS_JOBS_H
#define JOBS_JOBS_H

#include "service/service.h"

struct jobs;

/* Starts the threads, which service_wake wakes from then on. Working files are written to `work` in
 * the data directory, which is emptied first. */
int jobs_start(struct service *service, struct jobs **ret_jobs, struct error *error) MUST_CHECK;
/* Stops all threads and waits: a round completes its exchange with the authority, and
 * certifications in progress are released. All callers of service_wake (HTTP and the
 * administration) must have ended. NULL-safe. */
void jobs_stop(struct jobs *jobs);

#endif
