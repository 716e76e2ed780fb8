/* How threads wait.
 *
 * No thread that polls sockets for many may wait for a disk or a network on behalf of one: all the
 * others, and every deadline, would wait with it. A thread that polls says so once; what may wait
 * asserts that nobody does it there. The assertion costs a look at a variable of the thread, and
 * stays on in release. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

extern _Thread_local bool thread_is_polling;

/* This thread polls, from now to its end. */
static inline void thread_polls(void)
{
	thread_is_polling = true;
}

/* What follows may wait for a disk, a network, or another process. */
static inline void thread_may_wait(void)
{
	assert(!thread_is_polling);
}

/* Waits for a change of the condition; false: none came before the monotonic clock showed so much.
 * Spurious changes are possible, as ever. */
bool thread_wait_until(pthread_cond_t *changed, pthread_mutex_t *mutex, int64_t until_us);

#endif
