/* A replaced object is freed once no reader of its epoch is left. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "testing.h"
#include "base/epoch.h"

#define THREADS 4
#define REPLACEMENTS 20000

TEST_CASE(nobody_reads)
{
	uint64_t first = epoch_advance(), second = epoch_advance();
	assert_true(second > first);
	assert_true(epoch_is_over(first));
	assert_true(epoch_is_over(second));
}

TEST_CASE(one_who_began_before_counts)
{
	epoch_enter();
	uint64_t number = epoch_advance();
	assert_false(epoch_is_over(number));
	epoch_leave();
	assert_true(epoch_is_over(number));
	epoch_enter(); /* which sees the new object */
	assert_true(epoch_is_over(number));
	uint64_t next = epoch_advance();
	assert_true(epoch_is_over(number));
	assert_false(epoch_is_over(next));
	epoch_leave();
	assert_true(epoch_is_over(next));
}

static sem_t begun, end;

static void *read_once(void *context)
{
	(void)context;
	epoch_enter();
	sem_post(&begun);
	sem_wait(&end);
	return NULL; /* without epoch_leave */
}

/* The end of a thread ends its read section. */
TEST_CASE(threads_end)
{
	sem_init(&begun, 0, 0);
	sem_init(&end, 0, 0);
	for (int i = 0; i < 3; i++) {
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, read_once, NULL), 0);
		sem_wait(&begun);
		uint64_t number = epoch_advance();
		assert_false(epoch_is_over(number));
		sem_post(&end);
		pthread_join(thread, NULL);
		assert_true(epoch_is_over(number));
	}
	sem_destroy(&begun);
	sem_destroy(&end);
}

struct kept {
	atomic_int whole; /* 0: it was freed */
	uint64_t number;
	struct kept *former;
};
static struct kept *_Atomic in_force;
static atomic_bool stopping;
static atomic_int broken;

static void *read_always(void *context)
{
	(void)context;
	while (!atomic_load(&stopping)) {
		epoch_enter();
		struct kept *kept = in_force;
		for (int i = 0; i < 50; i++)
			if (!atomic_load(&kept->whole))
				atomic_fetch_add(&broken, 1);
		epoch_leave();
	}
	return NULL;
}

static struct kept *make(void)
{
	struct kept *kept = calloc(1, sizeof *kept);
	assert_non_null(kept);
	atomic_store(&kept->whole, 1);
	return kept;
}

/* Freed memory is reused at once and cleared, so that a reader that still used it would notice. */
TEST_CASE(nothing_that_is_held_is_given_back)
{
	pthread_t threads[THREADS];
	struct kept *former = NULL, *spare = NULL;
	size_t freed = 0;
	in_force = make();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_always, NULL), 0);
	for (int i = 0; i < REPLACEMENTS; i++) {
		struct kept *fresh = spare ? spare : make();
		spare = NULL;
		atomic_store(&fresh->whole, 1);
		struct kept *old = in_force;
		in_force = fresh;
		old->number = epoch_advance();
		old->former = former;
		former = old;
		for (struct kept **at = &former; *at;) {
			struct kept *one = *at;
			if (!epoch_is_over(one->number)) {
				at = &one->former;
				continue;
			}
			*at = one->former;
			atomic_store(&one->whole, 0);
			freed++;
			if (!spare)
				spare = one;
			else
				free(one);
		}
	}
	atomic_store(&stopping, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&broken), 0);
	assert_true(freed > REPLACEMENTS / 2);
	while (former) {
		struct kept *next = former->former;
		free(former);
		former = next;
	}
	free(in_force);
	free(spare);
}

TEST_MAIN(NULL, NULL)
