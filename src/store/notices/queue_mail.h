/* Queues e-mails (mails.h) in the transaction that causes them. Private to src/store. */
#ifndef STORE_QUEUE_MAIL_H
#define STORE_QUEUE_MAIL_H

#include "db/db.h"
#include "store/notices/mails.h"

#define MAIL_VALUES_MAX 8192 /* bytes of JSON */

/* Queues a mail to the account's owner. `values` is a JSON object. For an account without an e-mail
 * address nothing is queued, and the result is OK. */
int store_queue_mail(struct db_connection *connection, int64_t account, const char *template_name,
                     struct slice values, int64_t now_us, struct error *error) MUST_CHECK;

/* Queues a mail to another recipient; account 0: no account. */
struct mail_to {
	const char *recipient;
	enum language language;
};
int store_queue_mail_to(struct db_connection *connection, int64_t account, const struct mail_to *to,
                        const char *template_name, struct slice values, int64_t now_us,
                        struct error *error) MUST_CHECK;

#endif
