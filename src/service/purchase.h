/* Money at work: where purchases and top-ups of the store meet the payment provider. The top-up job
 * calls service_decide_topups and service_try_payment; the provider's notices come in through
 * service_payment_notice; the administration asks for pages. Network calls are made here, never
 * inside a transaction. Thread safe. */
#ifndef SERVICE_PURCHASE_H
#define SERVICE_PURCHASE_H

#include "service/service.h"
#include "store/money/purchases.h"

/* Applies a notice whose signature was checked, however often and in whatever order notices come. 0
 * also for what needs nothing. ERR_NOT_FOUND: no such purchase here. ERR_UNAVAILABLE: it must come
 * again. ERR_REFUSED: less was received than the price; nothing changes, and the log tells the
 * operator. */
int service_payment_notice(struct service *service, const struct payment_notice *notice,
                           struct error *error) MUST_CHECK;

/* Decides every top-up that is due at now_us. */
int service_decide_topups(struct service *service, int64_t now_us, const atomic_bool *stopping,
                          struct error *error) MUST_CHECK;

/* Takes the payment that has been due longest, tries it once and writes what came of it.
 * ERR_NOT_FOUND: none is due. While the outcome is not known it stays under way with its
 * idempotency key. `holder`: of the lease, one for each thread, the same after a restart. */
int service_try_payment(struct service *service, const char *holder, struct error *error)
	MUST_CHECK;

/* Counts for /metrics what an administration command has done. */
void service_count_purchase(struct service *service, const struct purchase_outcome *outcome);

/* Asks the provider for a page on which a pending purchase can be paid by hand and keeps its
 * address. 0 without a page where the provider has none or does not answer. */
int service_make_payment_page(struct service *service, struct slice sale_id, struct error *error)
	MUST_CHECK;
/* The same of who asks for the page, and keeps it in that store. ERR_REFUSED: it is not to be paid
 * there; ERR_UNAVAILABLE: the provider makes none just now. */
int service_ask_payment_page(struct service *service, struct store *store, struct slice sale_id,
                             struct error *error) MUST_CHECK;

#endif
