/* A named thread that works, waits, and can be woken. */
#ifndef JOBS_WORKER_H
#define JOBS_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct worker;

/* Does what there is to do, on the worker's thread, and answers after how many microseconds to be
 * called again if nothing wakes it before. */
typedef int64_t worker_run_function(void *context, const atomic_bool *stopping);

/* `name` has at most 15 characters. Runs at once for the first time. */
int worker_start(const char *name, worker_run_function *run, void *context,
                 struct worker **ret_worker, struct error *error)
    __attribute__((warn_unused_result));
/* Runs again at once, or as soon as the present run ends. Any thread; NULL-safe. */
void worker_wake(struct worker *worker);
/* Sets the stop flag and wakes; returns at once. NULL-safe. */
void worker_ask_to_stop(struct worker *worker);
/* Waits for the end of the thread; the worker can still be woken, to no effect. NULL-safe. */
void worker_join(struct worker *worker);
/* Once joined, and nobody wakes it any more. NULL-safe. */
void worker_free(struct worker *worker);

#endif
