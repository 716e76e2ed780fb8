/* Before the first top-up of each account in a store that was woken (quiet.h): the original of a
 * copy may have charged the customer since the copy was made, for sales that the copy does not
 * know. */
#ifndef SERVICE_TOPUP_LOOK_H
#define SERVICE_TOPUP_LOOK_H

#include "service/service.h"

/* Asks the payment provider, where that was not done since the store was woken. *ret_held: the
 * customer has paid for a sale that is not paid here, or the provider does not tell: the top-up was
 * turned off, and the log tells the operator. ERR_NETWORK: no answer, to be asked again. */
int topup_look(struct service *service, int64_t account, bool *ret_held, struct error *error)
	MUST_CHECK;

#endif
