/* Exclusive ownership of the content store for the sweep. */
#ifndef SERVICE_SWEEP_CLAIM_H
#define SERVICE_SWEEP_CLAIM_H

#include "service/service.h"

/* Registers this sweep as the last one of the content store; the caller holds the lease.
 * ERR_REFUSED, with a message for the operator: another copy of the database sweeps there, too. The
 * marker then makes both refuse to sweep. *ret_since_us: objects last changed before this time must
 * not be swept. */
int sweep_claim_store(struct service *service, int64_t *ret_since_us, struct error *error)
	MUST_CHECK;

#endif
