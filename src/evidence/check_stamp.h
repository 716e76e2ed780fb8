/* Recomputes one archive timestamp from the leaves in its blocks up to its token: for `store
 * check`.
 */
#ifndef EVIDENCE_CHECK_STAMP_H
#define EVIDENCE_CHECK_STAMP_H

#include "store/store.h"

/* OK; ERR_CORRUPT with the fault in words in error->cause; ERR_NOT_FOUND: there is none; another
 * error when it could not be checked. */
int check_stamp(struct store *store, int64_t stamp, struct error *error) MUST_CHECK;

#endif
