/* A pool of a few threads for blocking tasks: reads of the store, writes of content. The queue is
 * bounded and is a fair queue by owner (base/fair_queue.h): an owner with many requests delays
 * another owner's request by at most one task. */
#ifndef HTTP_WORKER_H
#define HTTP_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fair_queue.h"
#include "base/must_check.h"

struct worker_pool;

struct task {
	void (*run)(struct task *task);
	uint64_t owner;              /* owner in the fair queue; 0: none, bounded only by the total */
	struct fair_queue_item turn; /* used by the queue */
};

/* Starts a pool. At most `owner_threads` threads work for one owner at a time, so that hanging
 * tasks leave threads to others. `niceness` is added to that of the process; 19 is the lowest
 * priority. NULL: threads are not available. */
struct worker_pool *worker_pool_start(size_t threads, size_t owner_threads, size_t queue_max,
                                      int niceness) MUST_CHECK;
/* Queues a task. False: the queue has no capacity for the owner; a single owner can fill half of
 * it. The task must live until it has run. Thread safe. */
bool worker_submit(struct worker_pool *pool, struct task *task) MUST_CHECK;
/* Queues a cleanup task, which is never refused. The number of such tasks is bounded by tasks
 * accepted earlier. Not after worker_pool_stop. */
void worker_submit_cleanup(struct worker_pool *pool, struct task *task);
size_t worker_queue_length(struct worker_pool *pool);
/* Runs the queued tasks, then ends the threads. NULL-safe. */
void worker_pool_stop(struct worker_pool *pool);

#endif
