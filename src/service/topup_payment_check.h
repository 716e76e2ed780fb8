/* Check before the first top-up of each account in a resumed copy of a store (read_only.h). Since
 * the copy was made, the original may have charged the customer for sales that the copy does not
 * know. */
#ifndef SERVICE_TOPUP_PAYMENT_CHECK_H
#define SERVICE_TOPUP_PAYMENT_CHECK_H

#include "service/service.h"

/* Queries the payment provider, unless that was done since the store was resumed. *ret_held: the
 * customer has paid for a sale that is not paid here, or the provider does not disclose payments.
 * The top-up was then turned off, and that was logged. ERR_NETWORK: no response; to be retried. */
int topup_payment_check(struct service *service, int64_t account, bool *ret_held,
                        struct error *error) MUST_CHECK;

#endif
