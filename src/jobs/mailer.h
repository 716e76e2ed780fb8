/* Has the mails of the outbox (store/notices/mails.h) delivered: one thread a node, one message at
 * a time, each under a lease, so that several nodes send none twice at the same time. */
#ifndef JOBS_MAILER_H
#define JOBS_MAILER_H

#include "jobs/internal.h"
#include "service/mailing.h"

struct mailer {
	struct service *service;
	char holder[HOLDER_SIZE];
	uint64_t reloads;  /* the service's, when it was made */
	bool sign_in_turn; /* of which the last turn was */
	struct mailing mailing;
};
/* ERR_VALIDATION as mailing_init. */
int mailer_init(struct mailer *mailer, struct service *service, const char *node,
                struct error *error) MUST_CHECK;
job_thread_run_function mailer_run;

#endif
