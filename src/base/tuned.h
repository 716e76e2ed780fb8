/* Tunable constants of rarely executed code: batches, pages, queues, caches and intervals.
 *
 * A build with tests reads other values from the environment, so that test campaigns reach this
 * code within thousands of events: TORTURE_SIZES="refs_gathered=300,log_moved=65536". All processes
 * that open a store must use the same values, because some determine its layout. Other builds
 * ignore the environment. */
#ifndef BASE_TUNED_H
#define BASE_TUNED_H

#include <stdint.h>

/* Returns the value of `name`, at least 1, or `usual` if none is set. Any thread may call. */
int64_t tuned(const char *name, int64_t usual);
/* Does the same, but returns at most `most`, which is also the usual value. For arrays of that
 * size. */
int64_t tuned_up_to(const char *name, int64_t most);

#endif
