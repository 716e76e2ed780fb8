/* Connects purchases and top-ups in the store with the payment provider. The top-up job calls
 * service_decide_topups and service_attempt_payment. The provider's notices arrive through
 * service_payment_notice. The administration requests payment pages. Network requests are never
 * made inside a transaction. Thread safe. */
#ifndef SERVICE_PURCHASE_H
#define SERVICE_PURCHASE_H

#include "service/service.h"
#include "store/money/purchases.h"

/* Applies a notice whose signature was checked. Idempotent; notices may arrive in any order.
 * Returns 0 also if nothing is to be done. ERR_NOT_FOUND: there is no such purchase.
 * ERR_UNAVAILABLE: the provider must repeat the notice. ERR_REFUSED: the amount received is less
 * than the price; nothing changes, and the error is logged. */
int service_payment_notice(struct service *service, const struct payment_notice *notice,
                           struct error *error) MUST_CHECK;

/* Decides every top-up that is due at now_us. */
int service_decide_topups(struct service *service, int64_t now_us, const atomic_bool *stopping,
                          struct error *error) MUST_CHECK;

/* Claims the payment that has been due longest, attempts it once and records the result.
 * ERR_NOT_FOUND: none is due. While the outcome is unknown, the payment stays open with its
 * idempotency key. `holder`: of the lease; one per thread, the same after a restart. */
int service_attempt_payment(struct service *service, const char *holder, struct error *error)
	MUST_CHECK;

/* Counts the outcome of an administration command for /metrics. */
void service_count_purchase(struct service *service, const struct purchase_outcome *outcome);

/* Requests a payment page for a pending purchase from the provider and stores its address. Returns
 * 0 without a page if the provider has none or does not respond. */
int service_make_payment_page(struct service *service, struct slice sale_id, struct error *error)
	MUST_CHECK;
/* Does the same at the request of a user, and stores the address through `store`. ERR_REFUSED: the
 * purchase cannot be paid on a page. ERR_UNAVAILABLE: the provider cannot create a page now. */
int service_request_payment_page(struct service *service, struct store *store, struct slice sale_id,
                                 struct error *error) MUST_CHECK;

#endif
