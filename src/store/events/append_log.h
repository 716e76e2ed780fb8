/* The append log of the embedded engine: events in insertion order, with the runs that index them
 * by chain (db/append_run.h). */
#ifndef STORE_EVENTS_APPEND_LOG_H
#define STORE_EVENTS_APPEND_LOG_H

#include "db/append_run.h"
#include "store/store_internal.h"

/* The end of a chain's list of runs. */
struct arrival_runs_end {
	struct append_run last;   /* as far as known: at least its number; 0: none */
	struct append_run beyond; /* the target of its jump; {0}: not known */
};
/* Returns the number of the last event in the log; 0: the log is empty. */
int append_log_last(struct db_connection *connection, int64_t *ret, struct error *error) MUST_CHECK;
/* Adds a run of `count` consecutive events of a chain, which begin at position `arrival` of the log
 * with the event number `event`, after all earlier events of the chain. *end becomes the new end.
 * The caller updates the row of the chain. */
int append_log_add_run(struct db_connection *connection, int64_t arrival, int64_t event,
                       int64_t count, struct arrival_runs_end *end, struct error *error) MUST_CHECK;
/* Reads a run; {0} for number 0. Returns ERR_CORRUPT when it does not exist. */
int append_log_read_run(struct db_connection *connection, int64_t arrival, struct append_run *ret,
                        struct error *error) MUST_CHECK;

#endif
