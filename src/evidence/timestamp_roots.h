/* The trust roots that this store's timestamps need, present and former ones. */
#ifndef EVIDENCE_TIMESTAMP_ROOTS_H
#define EVIDENCE_TIMESTAMP_ROOTS_H

#include "service/service.h"

/* Records the root of a certificate path (DER, up to the root), unless it is recorded already. To
 * be called before anything with such a timestamp is written. Thread safe. */
int timestamp_roots_record(struct service *service, struct slice path, struct error *error)
	MUST_CHECK;
/* Appends the recorded roots that `out` does not contain yet, as PEM. */
int timestamp_roots_add(struct store *store, struct buf *out, struct error *error) MUST_CHECK;

#endif
