/* The store's own: queues e-mails (mails.h) in the transaction that causes them. */
#ifndef STORE_QUEUE_MAIL_H
#define STORE_QUEUE_MAIL_H

#include "db/db.h"
#include "store/notices/mails.h"

#define MAIL_VALUES_MAX 8192 /* bytes of JSON */

/* Queues inside the caller's open transaction. `values` is a JSON object. An account without an
 * e-mail address has nobody to tell: then nothing is queued, and that is no error. */
int store_queue_mail(struct db_connection *connection, int64_t account, const char *template_name,
                     struct slice values, int64_t now_us, struct error *error) MUST_CHECK;

/* To somebody else than the account's owner; account 0: on no account. */
struct mail_to {
	const char *recipient;
	enum language language;
};
int store_queue_mail_to(struct db_connection *connection, int64_t account, const struct mail_to *to,
                        const char *template_name, struct slice values, int64_t now_us,
                        struct error *error) MUST_CHECK;

#endif
