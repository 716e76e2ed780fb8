#include "http/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct worker_pool {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct task *first;
	struct task **last;
	size_t length;
	size_t queue_max;
	bool stopping;
	size_t thread_count;
	pthread_t threads[];
};

static void *work(void *context)
{
	struct worker_pool *pool = context;
	pthread_setname_np(pthread_self(), "http-worker");
	pthread_mutex_lock(&pool->lock);
	for (;;) {
		while (!pool->first && !pool->stopping)
			pthread_cond_wait(&pool->work, &pool->lock);
		struct task *task = pool->first;
		if (!task)
			break;
		pool->first = task->next;
		if (!pool->first)
			pool->last = &pool->first;
		pool->length--;
		pthread_mutex_unlock(&pool->lock);
		task->run(task);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

struct worker_pool *worker_pool_start(size_t threads, size_t queue_max)
{
	struct worker_pool *pool = calloc(1, sizeof *pool + threads * sizeof(pthread_t));
	if (!pool)
		return NULL;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pool->last = &pool->first;
	pool->queue_max = queue_max;
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
	task->next = NULL;
	*pool->last = task;
	pool->last = &task->next;
	pool->length++;
	pthread_cond_signal(&pool->work);
}

bool worker_submit(struct worker_pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	bool taken = pool->length < pool->queue_max && !pool->stopping;
	if (taken)
		append(pool, task);
	pthread_mutex_unlock(&pool->lock);
	return taken;
}

void worker_clear_up(struct worker_pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	append(pool, task);
	pthread_mutex_unlock(&pool->lock);
}

size_t worker_queue_length(struct worker_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	size_t length = pool->length;
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
	free(pool);
}
