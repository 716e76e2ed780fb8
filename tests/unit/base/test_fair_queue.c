/* The fair queue takes from the owners in turn and keeps the order of each owner. */
#include <time.h>

#include "testing.h"
#include "base/fair_queue.h"

#define ITEMS_MAX 5000
#define OWNERS 40

struct item {
	struct fair_queue_item turn;
	uint64_t owner;
	size_t number; /* in the order of adding */
	bool wanted;
};

static struct fair_queue turns;
static struct item items[ITEMS_MAX];
static size_t count;
static struct item *taken[ITEMS_MAX];
static size_t taken_count, asked;
static uint64_t unwanted_owner;

static int set_up(void **state)
{
	fair_queue_init(&turns);
	count = taken_count = asked = 0;
	unwanted_owner = 0;
	return 0;
}

static enum fair_queue_choice choose(void *context, struct fair_queue_item *turn)
{
	struct item *item = (struct item *)turn;
	asked++;
	if (unwanted_owner && item->owner == unwanted_owner)
		return FAIR_QUEUE_OWNER_SKIPPED;
	if (!item->wanted)
		return FAIR_QUEUE_SKIPPED;
	taken[taken_count++] = item;
	return FAIR_QUEUE_TAKEN;
}

static struct item *add(uint64_t owner)
{
	struct item *item = &items[count];
	*item = (struct item){.owner = owner, .number = count++, .wanted = true};
	fair_queue_add(&turns, &item->turn, owner);
	return item;
}

static void add_many(uint64_t owner, size_t number)
{
	while (number-- > 0)
		add(owner);
}

static size_t take(size_t max)
{
	return fair_queue_take(&turns, max, choose, NULL);
}

static void assert_owners(size_t from, size_t number, const uint64_t *owners)
{
	for (size_t i = 0; i < number; i++)
		assert_int_equal(taken[from + i]->owner, owners[i]);
}

static void clear(void)
{
	unwanted_owner = 0;
	for (size_t i = 0; i < count; i++)
		items[i].wanted = true;
	taken_count = 0;
	(void)take(ITEMS_MAX);
	assert_int_equal(turns.length, 0);
	assert_int_equal(turns.owners, 0);
	fair_queue_free(&turns);
}

TEST_CASE(test_alone_it_is_a_queue)
{
	add_many(7, 100);
	assert_int_equal(take(30), 30);
	add_many(7, 10);
	assert_int_equal(take(1000), 80);
	for (size_t i = 0; i < 110; i++)
		assert_int_equal(taken[i]->number, i);
	assert_int_equal(asked, 110);
	assert_int_equal(take(1), 0);
	clear();
}

/* However many entries one owner has, the first entry of another is among the first two. */
TEST_CASE(test_a_backlog_is_passed)
{
	add_many(1, 4000);
	add(2);
	assert_int_equal(take(2), 2);
	assert_owners(0, 2, (const uint64_t[]){1, 2});
	add_many(3, 2);
	add(2);
	assert_int_equal(take(5), 5);
	assert_owners(2, 5, (const uint64_t[]){1, 3, 2, 1, 3});
	clear();
}

/* A batch is filled as if its entries were taken one by one. */
TEST_CASE(test_a_batch_is_filled_in_rounds)
{
	add_many(1, 6);
	add_many(2, 3);
	add_many(3, 1);
	assert_int_equal(take(4), 4);
	assert_int_equal(take(100), 6);
	assert_owners(0, 10, (const uint64_t[]){1, 2, 3, 1, 2, 1, 2, 1, 1, 1});
	clear();
}

TEST_CASE(test_what_is_left_keeps_its_place)
{
	add_many(1, 3);
	add_many(2, 3);
	items[0].wanted = items[3].wanted = items[4].wanted = false;
	assert_int_equal(take(100), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(taken[i]->number, ((const size_t[]){1, 5, 2})[i]);
	assert_int_equal(asked, 6); /* each once */
	items[0].wanted = items[3].wanted = items[4].wanted = true;
	add(1);
	assert_int_equal(take(100), 4);
	for (size_t i = 3; i < 7; i++)
		assert_int_equal(taken[i]->number, ((const size_t[]){3, 0, 4, 6})[i - 3]);
	clear();
}

TEST_CASE(test_an_owner_is_left_as_a_whole)
{
	add_many(1, 1000);
	add_many(2, 2);
	unwanted_owner = 1;
	assert_int_equal(take(10), 2);
	assert_int_equal(asked, 3);
	assert_int_equal(turns.length, 1000);
	clear();
}

TEST_CASE(test_there_is_always_room_for_another)
{
	for (uint64_t owner = 1; owner <= 3; owner++) {
		while (fair_queue_has_room(&turns, owner, 100))
			add(owner);
		assert_true(fair_queue_has_room(&turns, owner + 1, 100));
	}
	assert_int_equal(count, 50 + 25 + 13);
	while (count < 100)
		add(count);
	assert_false(fair_queue_has_room(&turns, 1000, 100));
	clear();
}

TEST_CASE(test_who_is_busy_is_remembered)
{
	add(5);
	assert_int_equal(take(1), 1);
	struct fair_queue_owner *owner = add(6)->turn.owner;
	owner->busy++;
	assert_int_equal(take(1), 1);
	assert_ptr_equal(add(6)->turn.owner, owner);
	assert_int_equal(owner->busy, 1);
	assert_int_equal(take(1), 1);
	fair_queue_end(&turns, owner);
	assert_int_equal(add(6)->turn.owner->busy, 0);
	clear();
}

/* The order of each owner is kept, nothing is lost, and no owner gets two entries more than a
 * waiting one. */
TEST_CASE(test_any_history)
{
	unsigned seed = (unsigned)time(NULL);
	print_message("seed %u\n", seed);
	size_t next[OWNERS] = {0}, added[OWNERS] = {0};
	size_t numbers[OWNERS][ITEMS_MAX / OWNERS];
	while (count + 50 < ITEMS_MAX) {
		for (int burst = rand_r(&seed) % 50; burst > 0; burst--) {
			size_t owner = (size_t)(rand_r(&seed) % OWNERS);
			owner = rand_r(&seed) % 2 ? 0 : owner;
			if (added[owner] == ITEMS_MAX / OWNERS)
				owner = (size_t)(rand_r(&seed) % OWNERS);
			if (added[owner] == ITEMS_MAX / OWNERS)
				continue;
			numbers[owner][added[owner]++] = count;
			add(owner);
		}
		size_t shares[OWNERS] = {0}, waited[OWNERS];
		for (size_t i = 0; i < OWNERS; i++)
			waited[i] = added[i] - next[i];
		taken_count = 0;
		size_t max = (size_t)(rand_r(&seed) % 40);
		size_t length = turns.length;
		assert_int_equal(take(max), max < length ? max : length);
		for (size_t i = 0; i < taken_count; i++) {
			uint64_t owner = taken[i]->owner;
			assert_int_equal(taken[i]->number, numbers[owner][next[owner]++]);
			shares[owner]++;
		}
		for (size_t i = 0; i < OWNERS; i++)
			for (size_t j = 0; j < OWNERS; j++)
				assert_true(shares[i] <= shares[j] + 1 || shares[j] == waited[j]);
		if (turns.length == 0 && rand_r(&seed) % 400 == 0)
			break;
		bool full = true;
		for (size_t i = 0; i < OWNERS; i++)
			full = full && added[i] == ITEMS_MAX / OWNERS;
		if (full)
			break;
	}
	clear();
}

TEST_MAIN_EACH(set_up, NULL)
