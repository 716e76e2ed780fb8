/* certification_range_check: exactly one complete pair, not inverted, within the chain;
 * range_cut_us and range_close: a certified range of time gets no further events. */
#include "testing.h"
#include "ledger/ledger.h"

TEST_CASE(ranges)
{
	static const struct {
		struct certification_range range;
		int expected;
	} rows[] = {
		{{TIME_NONE, TIME_NONE, 1, 10}, OK},
		{{TIME_NONE, TIME_NONE, 10, 10}, OK},
		{{TIME_NONE, TIME_NONE, 1, 11}, ERR_VALIDATION},
		{{TIME_NONE, TIME_NONE, 3, 2}, ERR_VALIDATION},
		{{TIME_NONE, TIME_NONE, -1, 2}, ERR_VALIDATION},
		{{TIME_NONE, TIME_NONE, 1, 0}, ERR_VALIDATION},
		{{TIME_NONE, TIME_NONE, 0, 0}, ERR_VALIDATION},
		{{100, 200, 0, 0}, OK},
		{{200, 200, 0, 0}, ERR_VALIDATION},
		{{300, 200, 0, 0}, ERR_VALIDATION},
		{{100, TIME_NONE, 0, 0}, ERR_VALIDATION},
		{{100, 200, 1, 2}, ERR_VALIDATION},
		{{100, 200, 1, 0}, ERR_VALIDATION},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error error = {0};
		assert_int_equal(certification_range_check(&rows[i].range, 10, &error), rows[i].expected);
		assert_int_equal(error.code, rows[i].expected);
	}
}

TEST_CASE(cuts)
{
	static const struct {
		int64_t to_us, last_us, now_us, expected;
	} rows[] = {
		{500, 100, 200, 200}, /* not after now */
		{150, 100, 200, 150}, {100, 100, 200, 100},
		{50, 100, 200, 50},   {500, 300, 200, 301}, /* the clock was set back */
		{301, 300, 200, 301}, {300, 300, 200, 300},
		{500, 200, 200, 201}, {500, 0, 200, 200}, /* no event was received */
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct certification_range range = {.from_us = 1, .to_us = rows[i].to_us};
		assert_int_equal(range_cut_us(&range, rows[i].last_us, rows[i].now_us), rows[i].expected);
	}
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + 1;
	return (*state >> 33) % below;
}

/* Events and certifications in any order, on a clock that moves forward and back. */
TEST_CASE(closed_ranges_stay_closed)
{
	enum { STEPS = 400, RUNS = 200 };
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		int64_t received[STEPS], last_us = 0, now_us = 1000;
		struct {
			int64_t from_us, cut_us;
			int count;
		} closed[STEPS];
		int events = 0, ranges = 0;
		uint64_t random = seed;
		for (int step = 0; step < STEPS; step++) {
			now_us += (int64_t)draw(&random, 40) - 15;
			if (draw(&random, 3)) {
				last_us = now_us > last_us ? now_us : last_us;
				received[events++] = last_us;
				continue;
			}
			struct certification_range range = {.from_us = (int64_t)draw(&random, 2000)};
			range.to_us = range.from_us + 1 + (int64_t)draw(&random, 6000);
			int64_t before_us = last_us, cut_us = range_cut_us(&range, last_us, now_us);
			bool moved = range_close(cut_us, &last_us);
			assert_int_equal(moved, last_us != before_us);
			closed[ranges].from_us = range.from_us;
			closed[ranges].cut_us = cut_us;
			closed[ranges].count = 0;
			for (int i = 0; i < events; i++)
				closed[ranges].count += received[i] >= range.from_us && received[i] < range.to_us;
			ranges++;
		}
		for (int i = 0; i < ranges; i++) {
			int found = 0;
			for (int j = 0; j < events; j++)
				found += received[j] >= closed[i].from_us && received[j] < closed[i].cut_us;
			assert_int_equal(found, closed[i].count);
		}
	}
}

TEST_CASE(clocks_of_stores_are_believed_within_a_bound)
{
	static const struct {
		int64_t store_us, node_us, expected;
	} rows[] = {{100, 100, 100},     {105, 100, 105}, {106, 100, 105},
	            {1000000, 100, 105}, {99, 100, 99},   {-50, 100, -50}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(range_requested_us(rows[i].store_us, rows[i].node_us, 5),
		                 rows[i].expected);
}

TEST_MAIN(NULL, NULL)
