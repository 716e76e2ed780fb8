/* Objects that nothing names: content whose event was refused, or whose node died, and documents of
 * a certification that was made anew.
 *
 * Nothing is deleted at the first sight. An old object without a name gets a mark, an empty object
 * "swept/NAME"; it stays where it is and can be read. Once the mark has stood for
 * content.keep_swept, and still nothing names the object, both are deleted; what turns out to be
 * named loses its mark. One node sweeps at a time, only in a place that is this database's alone
 * (sweep_place.h), and only what was changed since it is. */
#ifndef SERVICE_SWEEP_H
#define SERVICE_SWEEP_H

#include "service/service.h"

/* Under the sweep's lease. Ends early once either is set, `lost` when the lease went to another.
 * What came of it is in the log and in counters.sweep_refused. */
void sweep_content(struct service *service, const atomic_bool *stopping, const atomic_bool *lost);

#endif
