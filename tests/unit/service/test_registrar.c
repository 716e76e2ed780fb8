/* How sequencers make batches of what waits. The store is not asked: its call is caught here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/clock.h"
#include "service/registrar.h"

#define ITEMS_MAX 4000
#define BATCH_MAX 1024

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool closed;   /* a batch that was begun does not end */
	size_t begun;  /* batches */
	size_t sizes[ITEMS_MAX];
	int64_t items[ITEMS_MAX]; /* numbers of the items, in the order in which they were given */
	size_t item_count, done;
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int __wrap_store_register_batch(struct store *store, unsigned sequencer,
                                struct registration_batch *batch, struct error *error);
unsigned __wrap_store_sequencer_count(struct store *store);
struct db *__wrap_store_db(struct store *store);
int __wrap_db_maintain(struct db *db, struct error *error);

int __wrap_store_register_batch(struct store *store, unsigned sequencer,
                                struct registration_batch *batch, struct error *error)
{
	pthread_mutex_lock(&seen.mutex);
	seen.sizes[seen.begun++] = batch->count;
	for (size_t i = 0; i < batch->count; i++)
		seen.items[seen.item_count++] = batch->items[i]->occurred_at_us;
	pthread_cond_broadcast(&seen.changed);
	while (seen.closed)
		pthread_cond_wait(&seen.changed, &seen.mutex);
	pthread_mutex_unlock(&seen.mutex);
	return OK;
}

unsigned __wrap_store_sequencer_count(struct store *store)
{
	return 1;
}

struct db *__wrap_store_db(struct store *store)
{
	return NULL;
}

int __wrap_db_maintain(struct db *db, struct error *error)
{
	return OK;
}

static void note_done(struct pending_registration *pending)
{
	pthread_mutex_lock(&seen.mutex);
	seen.done++;
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

static void close_gate(bool closed)
{
	pthread_mutex_lock(&seen.mutex);
	seen.closed = closed;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.mutex);
}

struct fixture {
	struct settings settings;
	struct service service;
	struct pending_registration items[ITEMS_MAX];
	size_t count;
};

static struct fixture *start(bool sharded)
{
	seen.begun = seen.item_count = seen.done = 0;
	struct fixture *fixture = calloc(1, sizeof *fixture);
	fixture->settings.store_sharded = sharded;
	fixture->service.settings = &fixture->settings;
	assert_int_equal(registrar_start(&fixture->service, &fixture->service.registrar, NULL), OK);
	return fixture;
}

static void stop(struct fixture *fixture)
{
	registrar_stop(fixture->service.registrar);
	assert_int_equal(seen.item_count, fixture->count);
	assert_int_equal(seen.done, fixture->count);
	free(fixture);
}

static void submit(struct fixture *fixture, int64_t account)
{
	struct pending_registration *pending = &fixture->items[fixture->count];
	pending->registration.account = account;
	pending->registration.chain = MODE_TEST;
	pending->registration.occurred_at_us = (int64_t)fixture->count++;
	pending->done = note_done;
	assert_int_equal(register_submit(&fixture->service, pending, NULL), OK);
}

static int64_t account_at(const struct fixture *fixture, size_t place)
{
	return fixture->items[seen.items[place]].registration.account;
}

/* Every batch of one account, everything once, an account's items in the order they came in. */
static void assert_one_account_each(const struct fixture *fixture)
{
	int64_t last[64];
	for (size_t i = 0; i < 64; i++)
		last[i] = -1;
	size_t place = 0;
	for (size_t batch = 0; batch < seen.begun; batch++) {
		assert_in_range(seen.sizes[batch], 1, BATCH_MAX);
		int64_t account = account_at(fixture, place);
		for (size_t i = 0; i < seen.sizes[batch]; i++, place++) {
			assert_int_equal(account_at(fixture, place), account);
			assert_true(seen.items[place] > last[account]);
			last[account] = seen.items[place];
		}
	}
	assert_int_equal(place, fixture->count);
}

/* One is under way while the others come in. */
static void submit_behind_one(struct fixture *fixture, size_t count, int64_t accounts)
{
	close_gate(true);
	submit(fixture, 1);
	wait_until(&seen.begun, 1);
	for (size_t i = 0; i < count; i++)
		submit(fixture, (int64_t)i % accounts);
	close_gate(false);
	wait_until(&seen.done, count + 1);
}

static void what_waits_makes_one_batch(void **state)
{
	struct fixture *fixture = start(false);
	submit_behind_one(fixture, 60, 6);
	assert_int_equal(seen.begun, 2);
	assert_int_equal(seen.sizes[1], 60);
	for (size_t i = 0; i < 61; i++)
		assert_int_equal(seen.items[i], i);
	stop(fixture);
}

static void sharded_it_makes_one_for_each_account(void **state)
{
	struct fixture *fixture = start(true);
	submit_behind_one(fixture, 60, 6);
	assert_int_equal(seen.begun, 7);
	for (size_t i = 1; i < 7; i++)
		assert_int_equal(seen.sizes[i], 10);
	assert_int_equal(account_at(fixture, 1), 0); /* whoever waits longest */
	assert_one_account_each(fixture);
	stop(fixture);
}

static void batches_have_an_end(void **state)
{
	for (int sharded = 0; sharded < 2; sharded++) {
		struct fixture *fixture = start(sharded);
		submit_behind_one(fixture, 2 * BATCH_MAX + 1, 1);
		assert_int_equal(seen.begun, 4);
		assert_int_equal(seen.sizes[1], BATCH_MAX);
		assert_int_equal(seen.sizes[3], 1);
		stop(fixture);
	}
}

/* Coming and going in any order, none is lost, none is done twice. */
static void histories_of_any_shape_end_well(void **state)
{
	unsigned seed = (unsigned)clock_now_us();
	print_message("seed %u\n", seed);
	for (int round = 0; round < 30; round++) {
		struct fixture *fixture = start(true);
		while (fixture->count < 300) {
			close_gate(rand_r(&seed) % 2);
			for (int burst = rand_r(&seed) % 40; burst > 0; burst--)
				submit(fixture, rand_r(&seed) % (1 + round));
			if (rand_r(&seed) % 3)
				continue;
			close_gate(false);
			wait_until(&seen.done, fixture->count);
		}
		close_gate(false);
		wait_until(&seen.done, fixture->count);
		assert_one_account_each(fixture);
		stop(fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_waits_makes_one_batch),
	    cmocka_unit_test(sharded_it_makes_one_for_each_account),
	    cmocka_unit_test(batches_have_an_end),
	    cmocka_unit_test(histories_of_any_shape_end_well),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
