#include "http/worker.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/epoch.h"

struct worker_pool {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct fair_queue waiting;
	size_t owner_threads;
	size_t queue_max;
	int niceness;
	bool stopping;
	size_t thread_count;
	pthread_t threads[];
};

struct choosing {
	const struct worker_pool *pool;
	struct task *task;
};

/* Chooses a task whose owner has fewer busy threads than its limit. A worker that finishes for such
 * an owner checks again. */
static enum fair_queue_choice choose(void *context, struct fair_queue_item *turn)
{
	struct choosing *choosing = context;
	const struct worker_pool *pool = choosing->pool;
	struct task *task = (struct task *)((char *)turn - offsetof(struct task, turn));
	if (task->owner && turn->owner->busy >= pool->owner_threads && !pool->stopping)
		return FAIR_QUEUE_OWNER_SKIPPED;
	turn->owner->busy++;
	choosing->task = task;
	return FAIR_QUEUE_TAKEN;
}

static struct task *take(struct worker_pool *pool)
{
	struct choosing choosing = {.pool = pool};
	(void)fair_queue_take(&pool->waiting, 1, choose, &choosing);
	return choosing.task;
}

/* Lowers the priority of this thread. */
static void lower_priority(int niceness)
{
	id_t thread = (id_t)gettid();
	if (niceness)
		(void)setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + niceness);
}

static void *work(void *context)
{
	struct worker_pool *pool = context;
	pthread_setname_np(pthread_self(), "http-worker");
	lower_priority(pool->niceness);
	pthread_mutex_lock(&pool->lock);
	for (;;) {
		struct task *task;
		while (!(task = take(pool)) && !pool->stopping)
			pthread_cond_wait(&pool->work, &pool->lock);
		if (!task)
			break;
		struct fair_queue_owner *owner =
			task->turn.owner; /* saved, because the task may free itself */
		pthread_mutex_unlock(&pool->lock);
		epoch_enter();
		task->run(task);
		epoch_leave();
		pthread_mutex_lock(&pool->lock);
		fair_queue_end(&pool->waiting, owner);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

struct worker_pool *worker_pool_start(size_t threads, size_t owner_threads, size_t queue_max,
                                      int niceness)
{
	struct worker_pool *pool = calloc(1, sizeof *pool + threads * sizeof(pthread_t));
	if (!pool)
		return NULL;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	fair_queue_init(&pool->waiting);
	pool->owner_threads = owner_threads;
	pool->queue_max = queue_max;
	pool->niceness = niceness;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (pool->thread_count < threads &&
	       pthread_create(&pool->threads[pool->thread_count], NULL, work, pool) == 0)
		pool->thread_count++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pool->thread_count == threads)
		return pool;
	worker_pool_stop(pool);
	return NULL;
}

static void append(struct worker_pool *pool, struct task *task)
{
	assert(task->run);
	fair_queue_add(&pool->waiting, &task->turn, task->owner);
	pthread_cond_signal(&pool->work);
}

bool worker_submit(struct worker_pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	bool room = task->owner ? fair_queue_has_room(&pool->waiting, task->owner, pool->queue_max)
	                        : pool->waiting.length < pool->queue_max;
	bool taken = room && !pool->stopping;
	if (taken)
		append(pool, task);
	pthread_mutex_unlock(&pool->lock);
	return taken;
}

void worker_submit_cleanup(struct worker_pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	append(pool, task);
	pthread_mutex_unlock(&pool->lock);
}

size_t worker_queue_length(struct worker_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	size_t length = pool->waiting.length;
	pthread_mutex_unlock(&pool->lock);
	return length;
}

void worker_pool_stop(struct worker_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (size_t i = 0; i < pool->thread_count; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	fair_queue_free(&pool->waiting);
	free(pool);
}
