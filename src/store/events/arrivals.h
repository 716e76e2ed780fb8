/* The append log of the embedded engine: events in insertion order, with the runs that index them
 * by chain (db/arrivals.h). */
#ifndef STORE_ARRIVALS_H
#define STORE_ARRIVALS_H

#include "db/arrivals.h"
#include "store/internal.h"

/* The end of a chain's list of runs. */
struct arrival_runs_end {
	struct arrival_run last;   /* as far as known: at least its number; 0: none */
	struct arrival_run beyond; /* the target of its jump; {0}: not known */
};
/* Returns the number of the last event in the log; 0: the log is empty. */
int arrivals_last(struct db_connection *connection, int64_t *ret, struct error *error) MUST_CHECK;
/* Adds a run of `count` consecutive events of a chain, which begin at position `arrival` of the log
 * with the event number `event`, after all earlier events of the chain. *end becomes the new end.
 * The caller updates the row of the chain. */
int arrivals_add_run(struct db_connection *connection, int64_t arrival, int64_t event,
                     int64_t count, struct arrival_runs_end *end, struct error *error) MUST_CHECK;
/* Reads a run; {0} for number 0. Returns ERR_CORRUPT when it does not exist. */
int arrivals_read_run(struct db_connection *connection, int64_t arrival, struct arrival_run *ret,
                      struct error *error) MUST_CHECK;

#endif
