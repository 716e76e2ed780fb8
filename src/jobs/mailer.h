/* Sends the mails of the outbox (store/notices/mails.h). Each node has one thread, which sends one
 * mail at a time under a lease, so that no two nodes send the same mail at the same time. */
#ifndef JOBS_MAILER_H
#define JOBS_MAILER_H

#include "jobs/internal.h"
#include "service/mailing.h"

struct mailer {
	struct service *service;
	char holder[HOLDER_SIZE];
	uint64_t reloads;    /* the service's counter when `mailing` was made */
	bool claims_sign_in; /* whether the last mail came from the sign-in queue */
	struct mailing mailing;
};
/* Initializes the job. ERR_VALIDATION: see mailing_init. */
int mailer_init(struct mailer *mailer, struct service *service, const char *node,
                struct error *error) MUST_CHECK;
job_thread_run_function mailer_run;

#endif
