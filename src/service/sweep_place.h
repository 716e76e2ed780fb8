/* Whether the content is this database's to sweep. */
#ifndef SERVICE_SWEEP_PLACE_H
#define SERVICE_SWEEP_PLACE_H

#include "service/service.h"

/* Under the lease: makes this sweep the place's last one. ERR_REFUSED, with the sentence for the
 * operator: a copy of the database sweeps there too, or this is one; then the marker says so to
 * both, and neither sweeps. *ret_since_us: what was last changed before is not to be swept. */
int sweep_take_place(struct service *service, int64_t *ret_since_us, struct error *error)
	MUST_CHECK;

#endif
