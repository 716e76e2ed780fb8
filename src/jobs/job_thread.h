/* A named thread that works, waits, and can be woken. */
#ifndef JOBS_JOB_THREAD_H
#define JOBS_JOB_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct job_thread;

/* Does what there is to do, on the thread's thread, and answers after how many microseconds to be
 * called again if nothing wakes it before. Of the settings, and what is made of them, it keeps
 * nothing from one call to the next (base/reading.h) but to see whether they are others. */
typedef int64_t job_thread_run_function(void *context, const atomic_bool *stopping);

/* `name` has at most 15 characters. Runs at once for the first time. */
int job_thread_start(const char *name, job_thread_run_function *run, void *context,
                     struct job_thread **ret_thread, struct error *error) MUST_CHECK;
/* Runs again at once, or as soon as the present run ends. Any thread; NULL-safe. */
void job_thread_wake(struct job_thread *thread);
/* Sets the stop flag and wakes; returns at once. NULL-safe. */
void job_thread_ask_to_stop(struct job_thread *thread);
/* Waits for the end of the thread; the thread can still be woken, to no effect. NULL-safe. */
void job_thread_join(struct job_thread *thread);
/* Once joined, and nobody wakes it any more. NULL-safe. */
void job_thread_free(struct job_thread *thread);

#endif
