/* A few threads for what may wait: reads of the store, writes of content. The queue is bounded, and
 * owners take turns in it (base/turns.h): one with many requests delays another's by one task. */
#ifndef HTTP_WORKER_H
#define HTTP_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must_check.h"
#include "base/turns.h"

struct worker_pool;

struct task {
	void (*run)(struct task *task);
	uint64_t owner;   /* of the fair queue; 0: none, bounded by the total alone */
	struct turn turn; /* the queue's own */
};

/* At most `owner_threads` of the threads work for one owner at a time, so that tasks that hang
 * leave some to the others. `niceness` of the threads, on top of the process's: 19 gives way to
 * all. NULL when threads cannot be had. */
struct worker_pool *worker_pool_start(size_t threads, size_t owner_threads, size_t queue_max,
                                      int niceness) MUST_CHECK;
/* False when the queue has no room for the owner, who alone may fill half of it. The task must live
 * until it has run. Thread safe. */
bool worker_submit(struct worker_pool *pool, struct task *task) MUST_CHECK;
/* For what has to be done behind something that was taken before, and is bounded by it: never
 * refused. Not after worker_pool_stop. */
void worker_clear_up(struct worker_pool *pool, struct task *task);
size_t worker_queue_length(struct worker_pool *pool);
/* Runs what is queued, then ends the threads. NULL-safe. */
void worker_pool_stop(struct worker_pool *pool);

#endif
