/* Mails of the outbox (store/notices/mails.h) at work: composed, sent, and ended or put off. What
 * was not taken is tried again by mail.schedule, with the same Message-ID. Without mail.url, mails
 * end as dropped. */
#ifndef SERVICE_MAILING_H
#define SERVICE_MAILING_H

#include "base/schedule.h"
#include "net/mail.h"
#include "service/service.h"
#include "store/notices/mails.h"

/* What the settings say of it. It points into itself, so it stays where it was made. */
struct mailing {
	struct service *service;
	const char *holder; /* of the leases of the mails it is given; borrowed */
	struct mail_server server;
	struct address_guard guard;
	struct schedule schedule;
};
/* ERR_VALIDATION: mail.allow_networks or mail.schedule. */
int mailing_init(struct mailing *mailing, struct service *service, const char *holder,
                 struct error *error) MUST_CHECK;

/* Tries a claimed mail once and records what came of it. A store that is away is waited for, until
 * `stopping` is set, since what was sent and is not recorded would be sent again. */
void mailing_deliver(const struct mailing *mailing, const struct mail *mail,
                     const atomic_bool *stopping);

#endif
