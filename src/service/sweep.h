/* Garbage collection of unreferenced objects: content whose event was refused or whose node
 * crashed, and documents of a certification that was issued again.
 *
 * Deletion has two phases. An old unreferenced object is first marked with an empty object
 * "swept/NAME"; it stays readable. Once the mark is older than content.keep_swept and the object is
 * still unreferenced, both are deleted. If the object is referenced by then, only the mark is
 * deleted. One node sweeps at a time, only in a content store that belongs to this database alone
 * (sweep_claim.h), and only objects changed since that was established. */
#ifndef SERVICE_SWEEP_H
#define SERVICE_SWEEP_H

#include "service/service.h"

/* Sweeps the content store; the caller holds the lease. Ends early once `stopping` or `lost` is
 * set; `lost` means that another node holds the lease. The result is logged and set in
 * counters.sweep_refused. */
void sweep_content(struct service *service, const atomic_bool *stopping, const atomic_bool *lost);

#endif
