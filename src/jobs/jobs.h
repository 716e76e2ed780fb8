/* The background work of a node: sealing rounds, issuing certifications, delivering notices,
 * sending e-mails, automatic top-ups with their payments, housekeeping, and looking at itself.
 *
 * Every job's state lives in the store; a crash at any point loses nothing and repeats nothing that
 * was completed. Several nodes may run the same jobs. Each kind has threads of its own. */
#ifndef JOBS_JOBS_H
#define JOBS_JOBS_H

#include "service/service.h"

struct jobs;

/* Starts the threads, which service_wake wakes from then on. Working files go to `work` in the data
 * directory, which is emptied first. */
int jobs_start(struct service *service, struct jobs **ret_jobs, struct error *error) MUST_CHECK;
/* Asks all to stop and waits: a round ends its exchange with the authority, a certification is
 * given back to be taken up again. Whoever calls service_wake has ended before: HTTP and the
 * administration. NULL-safe. */
void jobs_stop(struct jobs *jobs);

#endif
