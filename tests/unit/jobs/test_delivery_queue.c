/* The fair queue of deliveries. */
#include "testing.h"
#include "jobs/delivery_queue.h"

static struct delivery_queue queue;

static int set_up(void **state)
{
	queue_init(&queue);
	return 0;
}

static int tear_down(void **state)
{
	queue_clear(&queue);
	assert_int_equal(queue.count, 0);
	return 0;
}

static void hold(struct queue_endpoint *endpoint, int64_t notice)
{
	struct queue_item *item = calloc(1, sizeof *item);
	assert_non_null(item);
	item->delivery.notice = notice;
	*endpoint->end = item;
	endpoint->end = &item->next;
}

static void begin(struct queue_endpoint *endpoint, int64_t notice)
{
	hold(endpoint, notice);
	struct queue_item *item = queue_begin(&queue, endpoint);
	assert_int_equal(item->delivery.notice, notice);
	queue_item_free(item);
}

TEST_CASE(test_a_few_at_a_time)
{
	struct queue_endpoint *endpoint = queue_endpoint(&queue, 1, 2);
	assert_ptr_equal(queue_endpoint(&queue, 1, 2), endpoint);
	assert_ptr_equal(queue_find(&queue, 1, 2), endpoint);
	assert_null(queue_find(&queue, 2, 1));
	for (int64_t i = 1; i <= UNDER_WAY_ENDPOINT_MAX; i++) {
		assert_true(queue_may_begin(&queue, endpoint, 0));
		begin(endpoint, i);
	}
	assert_false(queue_may_begin(&queue, endpoint, 0));
	assert_true(queue_is_unrecorded(endpoint, 4) && !queue_is_unrecorded(endpoint, 5));
	queue_end(&queue, endpoint, true, 1000, 1);
	assert_true(queue_may_begin(&queue, endpoint, 1));
	queue_recorded(endpoint, 4);
	assert_false(queue_is_unrecorded(endpoint, 4));
	for (int i = 0; i < 3; i++)
		queue_end(&queue, endpoint, true, 1000, 1);
}

TEST_CASE(test_what_is_not_recorded_has_a_limit)
{
	struct queue_endpoint *endpoint = queue_endpoint(&queue, 1, 1);
	for (int64_t i = 1; i <= UNRECORDED_MAX; i++) {
		assert_true(queue_may_begin(&queue, endpoint, 0));
		begin(endpoint, i);
		queue_end(&queue, endpoint, true, 1, 0);
	}
	assert_false(queue_may_begin(&queue, endpoint, 0));
	queue_recorded(endpoint, 17);
	assert_true(queue_may_begin(&queue, endpoint, 0));
}

/* One at a time, with pauses that grow to a second; a quick acknowledgment ends the doubt. */
TEST_CASE(test_doubt)
{
	struct queue_endpoint *endpoint = queue_endpoint(&queue, 1, 1);
	int64_t now_us = 0, pause_us = 0, last_us = 0;
	for (int i = 0; i < 20; i++) {
		assert_true(queue_may_begin(&queue, endpoint, now_us));
		begin(endpoint, i + 1);
		if (i > 0)
			assert_false(queue_may_begin(&queue, endpoint, now_us)); /* one at a time */
		queue_end(&queue, endpoint, false, 1000, now_us);
		queue_recorded(endpoint, i + 1);
		pause_us = endpoint->not_before_us - now_us;
		assert_in_range(pause_us, last_us, US_PER_SECOND);
		assert_int_equal(queue_may_begin(&queue, endpoint, now_us), pause_us == 0);
		last_us = pause_us;
		now_us = endpoint->not_before_us;
	}
	assert_int_equal(pause_us, US_PER_SECOND);
	begin(endpoint, 100);
	queue_end(&queue, endpoint, true, 3 * US_PER_SECOND, now_us); /* slow: still in doubt */
	assert_true(endpoint->in_doubt);
	begin(endpoint, 101);
	queue_end(&queue, endpoint, true, 1000, now_us);
	assert_false(endpoint->in_doubt);
	for (int64_t i = 0; i < UNDER_WAY_ENDPOINT_MAX; i++)
		begin(endpoint, 200 + i);
	assert_int_equal(queue.under_way, UNDER_WAY_ENDPOINT_MAX);
	for (int i = 0; i < UNDER_WAY_ENDPOINT_MAX; i++)
		queue_end(&queue, endpoint, i > 0, 1000, now_us);
	assert_int_equal(queue.under_way, 0);
	assert_int_equal(queue.in_doubt_under_way, 0);
}

TEST_CASE(test_those_in_doubt_leave_places_for_the_others)
{
	enum { DEAD = 1000 };
	unsigned begun = 0;
	for (int64_t i = 0; i < DEAD; i++) {
		struct queue_endpoint *endpoint = queue_endpoint(&queue, 10 + i % 50, i);
		begin(endpoint, 1);
		queue_end(&queue, endpoint, false, 1000, 0);
	}
	for (int64_t i = 0; i < DEAD; i++) {
		struct queue_endpoint *endpoint = queue_find(&queue, 10 + i % 50, i);
		if (queue_may_begin(&queue, endpoint, US_PER_SECOND)) {
			begin(endpoint, 2);
			begun++;
		}
	}
	assert_int_equal(begun, UNDER_WAY_IN_DOUBT_MAX);
	struct queue_endpoint *live = queue_endpoint(&queue, 2, 1);
	assert_true(queue_may_begin(&queue, live, US_PER_SECOND));
	for (int64_t i = 0; queue.under_way < UNDER_WAY_MAX; i++)
		begin(queue_endpoint(&queue, 3, i), 1);
	assert_false(queue_may_begin(&queue, live, US_PER_SECOND));
}

/* One account with any number of endpoints, working or not, leaves places for another account. */
TEST_CASE(test_an_account_leaves_places_for_the_others)
{
	for (int dead = 0; dead < 2; dead++) {
		unsigned max = dead ? UNDER_WAY_IN_DOUBT_MAX : UNDER_WAY_MAX;
		unsigned begun[4] = {0};
		for (int64_t account = 1; account < 4; account++)
			for (int64_t i = 0; i < UNDER_WAY_MAX; i++) {
				struct queue_endpoint *endpoint = queue_endpoint(&queue, account, i);
				assert_non_null(endpoint);
				if (dead) {
					begin(endpoint, 1);
					queue_end(&queue, endpoint, false, 1000, 0);
					queue_recorded(endpoint, 1);
				}
				if (!queue_may_begin(&queue, endpoint, US_PER_SECOND))
					continue;
				begin(endpoint, 2);
				begun[account]++;
			}
		assert_int_equal(begun[1], max * 3 / 4);
		assert_true(begun[2] > 0 && begun[3] > 0);
		assert_true(begun[1] + begun[2] + begun[3] < max);
		for (int64_t account = 1; account < 4; account++)
			for (int64_t i = 0; i < UNDER_WAY_MAX; i++) {
				struct queue_endpoint *endpoint = queue_find(&queue, account, i);
				while (endpoint->under_way > 0)
					queue_end(&queue, endpoint, true, 1000, 0);
				queue_recorded(endpoint, 2);
			}
		assert_int_equal(queue.under_way + queue.in_doubt_under_way, 0);
		struct queue_endpoint *again = queue_find(&queue, 1, 0);
		assert_int_equal(again->of->under_way + again->of->in_doubt_under_way, 0);
	}
}

TEST_CASE(test_the_idle_are_forgotten)
{
	struct queue_endpoint *due = queue_endpoint(&queue, 1, 1);
	struct queue_endpoint *doubtful = queue_endpoint(&queue, 1, 2);
	struct queue_endpoint *loaded = queue_endpoint(&queue, 1, 3);
	(void)queue_endpoint(&queue, 1, 4);
	due->due = true;
	begin(doubtful, 1);
	queue_end(&queue, doubtful, false, 1, 0);
	queue_recorded(doubtful, 1);
	hold(loaded, 1);
	queue_forget_idle(&queue, US_PER_SECOND);
	assert_int_equal(queue.count, 3);
	assert_null(queue_find(&queue, 1, 4));
	queue_forget_idle(&queue, 3600 * US_PER_SECOND);
	assert_int_equal(queue.count, 2);
	assert_null(queue_find(&queue, 1, 2));
	queue_move_last(&queue, due);
	assert_ptr_equal(queue.ring.next, loaded);
	assert_ptr_equal(queue.ring.previous, due);
	queue_move_last(&queue, due);
	assert_ptr_equal(queue.ring.previous, due);
	queue_drop_loaded(loaded);
	assert_null(loaded->first);
	hold(loaded, 2);
	assert_int_equal(loaded->first->delivery.notice, 2);
}

TEST_MAIN_EACH(set_up, tear_down)
