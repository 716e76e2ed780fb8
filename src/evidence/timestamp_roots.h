/* Which roots evidence of this store needs for its timestamps, now and of before. */
#ifndef EVIDENCE_TIMESTAMP_ROOTS_H
#define EVIDENCE_TIMESTAMP_ROOTS_H

#include "service/service.h"

/* Before anything is written that has a timestamp with this path (DER, up to the root): puts the
 * root on record, unless it is known to be. Thread safe. */
int timestamp_roots_keep(struct service *service, struct slice path, struct error *error)
	MUST_CHECK;
/* Appends those on record, as PEM, unless they stand in `out`. */
int timestamp_roots_add(struct store *store, struct buf *out, struct error *error) MUST_CHECK;

#endif
