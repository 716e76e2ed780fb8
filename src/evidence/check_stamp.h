/* Recomputes one archive timestamp from the leaves in its blocks to its token, for `store
 * check`. */
#ifndef EVIDENCE_CHECK_STAMP_H
#define EVIDENCE_CHECK_STAMP_H

#include "store/store.h"

/* Checks an archive timestamp. ERR_CORRUPT: the fault is in error->cause. ERR_NOT_FOUND: there is
 * no such timestamp. Other errors: it could not be checked. */
int check_stamp(struct store *store, int64_t stamp, struct error *error) MUST_CHECK;

#endif
