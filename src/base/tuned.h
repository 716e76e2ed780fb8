/* Constants that decide when code runs that runs seldom: how much gathers before a run is written,
 * how long the log grows, how many registrations a batch has.
 *
 * A build with tests takes other values from the environment, so that campaigns reach that code
 * within thousands of events: TORTURE_SIZES="refs_gathered=300,log_moved=65536". Every process that
 * opens a store gets the same, since some of them are its layout's. Any other build does not look
 * at the environment. */
#ifndef BASE_TUNED_H
#define BASE_TUNED_H

#include <stdint.h>

/* The value of that name, from 1 on; `usual` where there is none. Any thread. */
int64_t tuned(const char *name, int64_t usual);

#endif
