/* Leases: which of several nodes does a work that one at a time may do.
 *
 * A lease is its holder's until its time has passed, by the clock that all nodes share
 * (store_now_us); whoever holds it takes it again to keep it, and another can take it once it has
 * run out or was given back. Holders have names that are the same after a restart, so that a node
 * takes up what it left. A holder that was stopped for long can find its lease gone in the middle
 * of its work: so what is done under one is harmless twice, or refused the second time.
 *
 * Work of which many pieces are done at a time (certifications, mails, payments) has a lease of the
 * same kind in the row of each piece. Thread safe. */
#ifndef STORE_NODES_LEASES_H
#define STORE_NODES_LEASES_H

#include "store/store.h"

enum lease_name { LEASE_SEALER, LEASE_DELIVERER, LEASE_SWEEP, LEASE_RENEWER, LEASE_SIGNER_LIST };

/* True when `holder` has the lease until now_us + duration_us: it was free, had run out, or was its
 * own already. */
int store_take_lease(struct store *store, enum lease_name name, const char *holder, int64_t now_us,
                     int64_t duration_us, bool *ret_taken, struct error *error) MUST_CHECK;
/* Gives it back early; another's stays. */
int store_end_lease(struct store *store, enum lease_name name, const char *holder,
                    struct error *error) MUST_CHECK;

#endif
