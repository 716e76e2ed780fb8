/* Sends the mails of the outbox (store/notices/mails.h): one thread a node, one message at a time,
 * each under a lease, so that several nodes send none twice at the same time. What was not taken is
 * tried again by mail.schedule, with the same Message-ID. Without mail.url, mails end as
 * dropped. */
#ifndef JOBS_MAILER_H
#define JOBS_MAILER_H

#include "base/schedule.h"
#include "jobs/internal.h"
#include "net/mail.h"

struct mailer {
	struct service *service;
	char holder[HOLDER_SIZE];
	struct mail_server server;
	struct address_guard guard;
	struct schedule schedule;
};
/* ERR_VALIDATION: mail.allow_networks or mail.schedule. */
int mailer_init(struct mailer *mailer, struct service *service, const char *node,
                struct error *error) MUST_CHECK;
job_thread_run_function mailer_run;

#endif
