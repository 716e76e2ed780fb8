/* The embedded store's index of client_refs (client_refs.h), where it is damaged. */
#ifndef STORE_REF_INDEX_H
#define STORE_REF_INDEX_H

#include <stdatomic.h>

#include "store/store.h"

/* How many parts are known to be damaged, and in the error's cause one of them; none on a server.
 * Any thread. */
int64_t store_ref_index_damaged(struct store *store, struct error *ret_what);
/* Makes them of events, while serving: what a registration needs of them is ERR_UNAVAILABLE until
 * then. Ends early when *stopping, and goes on at the next call. For one thread, and only where
 * parts are damaged. */
int store_ref_index_repair(struct store *store, const atomic_bool *stopping, int64_t *ret_repaired,
                           struct error *error) MUST_CHECK;

#endif
