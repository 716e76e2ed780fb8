/* Events as the embedded engine keeps them: in the order in which they came, with the runs by which
 * they are found (db/arrivals.h). */
#ifndef STORE_ARRIVALS_H
#define STORE_ARRIVALS_H

#include "db/arrivals.h"
#include "store/internal.h"

/* Where a chain's runs end. */
struct arrival_runs_end {
	struct arrival_run last;   /* as far as it is known: at least its number, 0: none */
	struct arrival_run beyond; /* to which it jumps, as far as it is known; {0}: it is not */
};
/* The number of what came last; 0: nothing did. */
int arrivals_last(struct db_connection *connection, int64_t *ret, struct error *error) MUST_CHECK;
/* `count` events of a chain that stand one behind the other from `arrival` on, the first one with
 * the number `event`, behind all that the chain has, whose end is this one then: the chain's row
 * is the caller's to write. */
int arrivals_add_run(struct db_connection *connection, int64_t arrival, int64_t event,
                     int64_t count, struct arrival_runs_end *end, struct error *error) MUST_CHECK;
/* ERR_CORRUPT when it is not there; {0} for 0. */
int arrivals_read_run(struct db_connection *connection, int64_t arrival, struct arrival_run *ret,
                      struct error *error) MUST_CHECK;

#endif
