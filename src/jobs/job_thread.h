/* A named thread that works, waits, and can be woken. */
#ifndef JOBS_JOB_THREAD_H
#define JOBS_JOB_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct job_thread;

/* Runs on the job's thread. Returns the number of microseconds after which to call it again, unless
 * it is woken before. It must not keep settings, or objects derived from them, between calls
 * (base/epoch.h), except to detect that they have changed. */
typedef int64_t job_thread_run_function(void *context, const atomic_bool *stopping);

/* Starts a thread and calls `run` immediately. `name` has at most 15 characters. */
int job_thread_start(const char *name, job_thread_run_function *run, void *context,
                     struct job_thread **ret_thread, struct error *error) MUST_CHECK;
/* Calls `run` again immediately, or when the present call returns. Any thread; NULL-safe. */
void job_thread_wake(struct job_thread *thread);
/* Sets the stop flag and wakes the thread; does not block. NULL-safe. */
void job_thread_request_stop(struct job_thread *thread);
/* Waits for the thread to end; waking it afterwards has no effect. NULL-safe. */
void job_thread_join(struct job_thread *thread);
/* Frees a joined thread that is no longer woken. NULL-safe. */
void job_thread_free(struct job_thread *thread);

#endif
