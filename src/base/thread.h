/* Assertions against blocking in polling threads, and timed waits.
 *
 * A thread that polls the sockets of many clients must never block on a disk or the network,
 * because it would delay all clients and every deadline. Such a thread calls thread_mark_polling
 * once. Functions that may block call thread_assert_may_block, which asserts that the thread is not
 * a polling thread. The assertion reads one thread-local variable and stays on in release builds.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

extern _Thread_local bool thread_is_polling;

/* Marks this thread as a polling thread until it ends. */
static inline void thread_mark_polling(void)
{
	thread_is_polling = true;
}

/* Asserts that this thread may block on a disk, the network or another process. */
static inline void thread_assert_may_block(void)
{
	assert(!thread_is_polling);
}

/* Waits for the condition until `until_us` of the monotonic clock. Returns false on timeout.
 * Spurious wakeups are possible. */
bool thread_wait_until(pthread_cond_t *changed, pthread_mutex_t *mutex, int64_t until_us);

#endif
