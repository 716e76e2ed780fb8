/* Workers, and the fair queue of their tasks. */
#include <pthread.h>

#include "testing.h"
#include "http/worker.h"

#define TASKS_MAX 400

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	uint64_t held; /* tasks of this owner block */
	size_t begun[4], done;
	uint64_t order[TASKS_MAX]; /* owners, in the order in which their tasks began */
	size_t count;
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct task tasks[TASKS_MAX];
static size_t task_count;

static int set_up(void **state)
{
	seen.held = seen.done = seen.count = task_count = 0;
	for (size_t i = 0; i < 4; i++)
		seen.begun[i] = 0;
	return 0;
}

static void run(struct task *task)
{
	pthread_mutex_lock(&seen.mutex);
	seen.order[seen.count++] = task->owner;
	seen.begun[task->owner]++;
	pthread_cond_broadcast(&seen.changed);
	while (seen.held == task->owner)
		pthread_cond_wait(&seen.changed, &seen.mutex);
	seen.done++;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.mutex);
}

static void hold(uint64_t owner)
{
	pthread_mutex_lock(&seen.mutex);
	seen.held = owner;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.mutex);
}

static void wait_until(const size_t *counter, size_t value)
{
	pthread_mutex_lock(&seen.mutex);
	while (*counter < value)
		pthread_cond_wait(&seen.changed, &seen.mutex);
	pthread_mutex_unlock(&seen.mutex);
}

static bool submit(struct worker_pool *pool, uint64_t owner)
{
	struct task *task = &tasks[task_count++];
	*task = (struct task){.run = run, .owner = owner};
	return worker_submit(pool, task);
}

TEST_CASE(test_a_backlog_is_passed)
{
	struct worker_pool *pool = worker_pool_start(1, 1, 1000, 0);
	hold(1);
	for (int i = 0; i < 300; i++)
		assert_true(submit(pool, 1));
	wait_until(&seen.begun[1], 1);
	assert_true(submit(pool, 2) && submit(pool, 3));
	hold(9);
	wait_until(&seen.done, 302);
	assert_int_equal(seen.order[1] + seen.order[2] + seen.order[3], 1 + 2 + 3);
	worker_pool_stop(pool);
}

/* Tasks that hang leave a thread to the others, and continue when they are released. */
TEST_CASE(test_one_owner_does_not_hold_all_threads)
{
	struct worker_pool *pool = worker_pool_start(3, 2, 1000, 0);
	hold(1);
	for (int i = 0; i < 10; i++)
		assert_true(submit(pool, 1));
	wait_until(&seen.begun[1], 2);
	for (size_t i = 1; i <= 20; i++) {
		assert_true(submit(pool, 2));
		wait_until(&seen.done, i);
	}
	assert_int_equal(seen.begun[1], 2);
	assert_int_equal(worker_queue_length(pool), 8);
	hold(0);
	wait_until(&seen.done, 30);
	worker_pool_stop(pool);
}

/* Tasks without an owner, such as key look-ups, may use all threads. */
TEST_CASE(test_what_is_nobodys_is_not_bounded)
{
	struct worker_pool *pool = worker_pool_start(3, 1, 10, 0);
	hold(0);
	for (int i = 0; i < 3; i++)
		assert_true(submit(pool, 0));
	wait_until(&seen.begun[0], 3);
	for (int i = 0; i < 10; i++)
		assert_true(submit(pool, 0));
	assert_false(submit(pool, 0));
	hold(9);
	worker_pool_stop(pool);
	assert_int_equal(seen.done, 13);
}

TEST_CASE(test_a_queue_that_one_has_filled_has_room_for_others)
{
	struct worker_pool *pool = worker_pool_start(1, 1, 40, 0);
	hold(1);
	assert_true(submit(pool, 1));
	wait_until(&seen.begun[1], 1);
	for (int i = 0; i < 20; i++)
		assert_true(submit(pool, 1));
	assert_false(submit(pool, 1));
	assert_true(submit(pool, 2));
	struct task *clearing = &tasks[task_count++];
	*clearing = (struct task){.run = run, .owner = 1};
	worker_submit_cleanup(pool, clearing); /* never refused */
	hold(9);
	wait_until(&seen.done, 23);
	worker_pool_stop(pool);
}

/* A stop runs all queued tasks, however many one owner has. */
TEST_CASE(test_a_stop_leaves_nothing)
{
	struct worker_pool *pool = worker_pool_start(4, 1, 1000, 0);
	hold(1);
	for (int i = 0; i < 100; i++)
		assert_true(submit(pool, 1));
	wait_until(&seen.begun[1], 1);
	hold(9);
	worker_pool_stop(pool);
	assert_int_equal(seen.done, 100);
}

TEST_MAIN_EACH(set_up, NULL)
