/* Damage and repair of the client_ref index of the embedded store (client_refs.h). */
#ifndef STORE_REF_INDEX_H
#define STORE_REF_INDEX_H

#include <stdatomic.h>

#include "store/store.h"

/* Returns the number of damaged parts and describes one of them in the cause of the error; 0 on a
 * server. Any thread. */
int64_t store_ref_index_damaged(struct store *store, struct error *ret_what);
/* Rebuilds the damaged parts from events, while serving. Registrations that need them get
 * ERR_UNAVAILABLE until then. Ends early when *stopping is set, and continues with the next call.
 * For one thread, and only when parts are damaged. */
int store_ref_index_repair(struct store *store, const atomic_bool *stopping, int64_t *ret_repaired,
                           struct error *error) MUST_CHECK;

#endif
