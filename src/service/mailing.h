/* Sends mails of the outbox (store/notices/mails.h). A mail that the server does not accept is
 * retried according to mail.schedule, with the same Message-ID. Without mail.url, mails are
 * dropped. */
#ifndef SERVICE_MAILING_H
#define SERVICE_MAILING_H

#include "base/schedule.h"
#include "net/mail.h"
#include "service/service.h"
#include "store/notices/mails.h"

/* State derived from the settings. It contains pointers into itself and must not be moved. */
struct mailing {
	struct service *service;
	const char *holder; /* holder of the mails' leases; borrowed */
	struct mail_server server;
	struct address_guard guard;
	struct schedule schedule;
};
/* ERR_VALIDATION: mail.allow_networks or mail.schedule. */
int mailing_init(struct mailing *mailing, struct service *service, const char *holder,
                 struct error *error) MUST_CHECK;

/* Tries to send a claimed mail once and records the result. While the store is unavailable the
 * function waits, until `stopping` is set, because a sent mail without a recorded result would be
 * sent again. */
void mailing_deliver(const struct mailing *mailing, const struct mail *mail,
                     const atomic_bool *stopping);

#endif
