#include <pthread.h>
#include "testing.h"
#include "base/arena.h"
#include "base/budget.h"
#include "base/buf.h"

#define ALLOWANCE ((size_t)10000)
#define THREADS 4
#define ROUNDS 20000

/* The limit that all budgets share: `most` bytes. */
static struct {
	pthread_mutex_t lock;
	size_t most, out, highest;
	size_t out_for[BUDGET_KINDS];
	int takes;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool take(struct budget *budget, unsigned kind, size_t size)
{
	assert_true(size > 0 && size % BUDGET_STEP == 0);
	pthread_mutex_lock(&shared.lock);
	bool fits = size <= shared.most - shared.out;
	if (fits) {
		shared.out += size;
		shared.out_for[kind] += size;
	}
	if (shared.out > shared.highest)
		shared.highest = shared.out;
	shared.takes++;
	pthread_mutex_unlock(&shared.lock);
	return fits;
}

static void give(struct budget *budget, unsigned kind, size_t size)
{
	assert_true(size > 0 && size % BUDGET_STEP == 0);
	pthread_mutex_lock(&shared.lock);
	assert_true(size <= shared.out && size <= shared.out_for[kind]);
	shared.out -= size;
	shared.out_for[kind] -= size;
	pthread_mutex_unlock(&shared.lock);
}

static const struct budget_source source = {take, give};

static struct budget fresh(size_t most)
{
	shared.most = most;
	shared.out = shared.highest = 0;
	shared.takes = 0;
	memset(shared.out_for, 0, sizeof shared.out_for);
	return (struct budget){.source = &source, .allowance = ALLOWANCE};
}

static uint64_t next(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static void expect_sound(const struct budget *budget)
{
	size_t sum = 0;
	for (unsigned kind = 0; kind < BUDGET_KINDS; kind++)
		sum += budget->granted_for[kind];
	assert_int_equal(sum, budget->granted);
	assert_true(budget->held <= budget->allowance + budget->granted);
	size_t needed = budget->held > budget->reserved ? budget->held : budget->reserved;
	assert_true(budget->granted < BUDGET_STEP ||
	            budget->allowance + budget->granted - BUDGET_STEP < needed);
}

TEST_CASE(the_allowance_asks_nobody)
{
	struct budget budget = fresh(0);
	for (int i = 0; i < 100; i++) {
		assert_true(budget_take(&budget, 0, ALLOWANCE));
		budget_give(&budget, 0, ALLOWANCE);
	}
	assert_int_equal(shared.takes, 0);
	assert_true(budget_take(&budget, 0, ALLOWANCE));
	assert_false(budget_take(&budget, 0, 1));
	assert_true(budget.refused && budget.held == ALLOWANCE);
	assert_false(budget_take(&budget, 0, SIZE_MAX));
	assert_true(budget_take(NULL, 0, SIZE_MAX));
	budget_give(NULL, 0, SIZE_MAX);
}

TEST_CASE(without_a_source_the_allowance_is_all)
{
	struct budget budget = {.allowance = 10};
	assert_true(budget_take(&budget, 0, 10));
	assert_false(budget_take(&budget, 0, 1) || budget_reserve(&budget, 0, 1));
	budget_give(&budget, 0, 10);
}

/* A random history of takes, gives, reserves and refusals by the source. */
TEST_CASE(any_history_is_sound)
{
	uint64_t random = 7;
	size_t held[BUDGET_KINDS] = {0}, sum = 0;
	struct budget budget = fresh(20 * BUDGET_STEP);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned kind = (unsigned)(next(&random) % BUDGET_KINDS);
		size_t size = next(&random) % (2 * BUDGET_STEP);
		size_t granted = budget.granted;
		switch (next(&random) % 5) {
		case 0:
		case 1:
			if (budget_take(&budget, kind, size)) {
				held[kind] += size;
				sum += size;
			} else {
				assert_int_equal(budget.granted, granted);
			}
			break;
		case 2:
		case 3:
			size = size < held[kind] ? size : held[kind];
			budget_give(&budget, kind, size);
			held[kind] -= size;
			sum -= size;
			break;
		default:
			if (next(&random) % 4 == 0)
				budget_release(&budget);
			else if (budget_reserve(&budget, kind, size))
				assert_true(budget.allowance + budget.granted - budget.held >= size);
		}
		assert_int_equal(budget.held, sum);
		assert_int_equal(budget.granted, shared.out);
		expect_sound(&budget);
	}
	assert_true(shared.highest == shared.most);
	budget_release(&budget);
	for (unsigned kind = 0; kind < BUDGET_KINDS; kind++)
		budget_give(&budget, kind, held[kind]);
	assert_int_equal(budget.held, 0);
	assert_int_equal(shared.out, 0);
}

/* Reserved memory is available when all else is used up, and after some was given back. */
TEST_CASE(what_is_reserved_is_there)
{
	struct budget budget = fresh(4 * BUDGET_STEP), other = budget;
	assert_true(budget_reserve(&budget, 1, ALLOWANCE + BUDGET_STEP));
	assert_true(budget_take(&other, 0, ALLOWANCE + 3 * BUDGET_STEP));
	for (int i = 0; i < 3; i++) {
		assert_true(budget_take(&budget, 2, ALLOWANCE + BUDGET_STEP));
		budget_give(&budget, 2, ALLOWANCE + BUDGET_STEP);
	}
	assert_false(budget_reserve(&budget, 1, ALLOWANCE + BUDGET_STEP + 1));
	budget_release(&budget);
	assert_int_equal(budget.granted, 0);
	budget_give(&other, 0, ALLOWANCE + 3 * BUDGET_STEP);
	assert_int_equal(shared.out, 0);
}

/* Memory that was in use when it was reserved is not kept after it is given back. */
TEST_CASE(what_is_given_back_is_not_reserved)
{
	struct budget budget = fresh(20 * BUDGET_STEP);
	assert_true(budget_take(&budget, 0, ALLOWANCE + 9 * BUDGET_STEP));
	assert_true(budget_reserve(&budget, 1, ALLOWANCE + 2 * BUDGET_STEP));
	budget_give(&budget, 0, ALLOWANCE + 9 * BUDGET_STEP);
	assert_int_equal(budget.granted, 2 * BUDGET_STEP);
	assert_true(budget_take(&budget, 1, ALLOWANCE + 2 * BUDGET_STEP));
	assert_int_equal(budget.granted, 2 * BUDGET_STEP);
	budget_give(&budget, 1, ALLOWANCE + 2 * BUDGET_STEP);
	budget_release(&budget);
	assert_int_equal(shared.out, 0);
}

static void *churn(void *context)
{
	uint64_t random = (uint64_t)(uintptr_t)context;
	struct budget budget = {.source = &source, .allowance = ALLOWANCE};
	for (int i = 0; i < ROUNDS / 4; i++) {
		struct arena arena;
		struct buf buf;
		arena_init_counted(&arena, SIZE_MAX / 2, &budget, 1);
		buf_init_counted(&buf, SIZE_MAX / 2, &budget, 2);
		for (int n = 0; n < 4; n++) {
			(void)!arena_alloc(&arena, next(&random) % 20000);
			buf_add(&buf, "some text", next(&random) % 9);
			(void)!buf_extend(&buf, next(&random) % 20000);
		}
		if (next(&random) % 2)
			arena_reset(&arena);
		if (next(&random) % 2)
			buf_fit(&buf);
		assert_true(budget.held == arena.held + buf.capacity);
		arena_free(&arena);
		buf_free(&buf);
		assert_true(budget.held == 0 && budget.granted == 0);
	}
	return NULL;
}

TEST_CASE(a_source_serves_threads_within_its_limit)
{
	pthread_t threads[THREADS];
	fresh(3 * BUDGET_STEP);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared.out, 0);
	assert_true(shared.highest > 0 && shared.highest <= shared.most);
}

/* ---- arenas and buffers ---- */

TEST_CASE(an_arena_counts_its_blocks)
{
	struct budget budget = fresh(BUDGET_STEP);
	struct arena arena;
	arena_init_counted(&arena, (size_t)1 << 30, &budget, 1);
	char *first = arena_alloc(&arena, 1);
	assert_non_null(first);
	assert_true(arena_has(&arena, first) && !arena_has(&arena, &budget));
	assert_true(budget.held == arena.held && arena.held >= 4096 && !budget.granted);
	assert_non_null(arena_alloc(&arena, ALLOWANCE));
	assert_true(budget.granted == BUDGET_STEP && budget.granted_for[1] == BUDGET_STEP);
	assert_null(arena_alloc(&arena, BUDGET_STEP));
	assert_true(budget.refused && budget.held == arena.held);
	arena_reset(&arena);
	assert_true(budget.held == arena.held);
	arena_free(&arena);
	assert_true(!budget.held && !budget.granted && !shared.out);
	assert_non_null(arena_alloc(&arena, 1)); /* within the same budget */
	assert_true(budget.held == arena.held && arena.held > 0);
	arena_free(&arena);
}

TEST_CASE(a_buffer_counts_its_capacity)
{
	static const char text[ALLOWANCE];
	struct budget budget = fresh(BUDGET_STEP);
	struct buf buf;
	buf_init_counted(&buf, (size_t)1 << 30, &budget, 2);
	buf_add(&buf, text, sizeof text);
	assert_true(buf_check(&buf) == 0 && budget.held == buf.capacity);
	buf_add(&buf, text, sizeof text);
	buf_add(&buf, text, sizeof text);
	assert_true(buf_check(&buf) != 0 && !buf.full && budget.refused);
	assert_true(buf.size == sizeof text || buf.size == 2 * sizeof text);
	assert_true(budget.held == buf.capacity);
	buf_clear(&buf);
	buf_add_byte(&buf, 'a');
	buf_fit(&buf);
	assert_true(buf.capacity == 2 && budget.held == 2 && !budget.granted);
	free(buf_take(&buf));
	assert_int_equal(budget.held, 0);
	buf_add_byte(&buf, 'a');
	assert_int_equal(budget.held, buf.capacity);
	buf_free(&buf);
	assert_true(!budget.held && !shared.out);
}

TEST_MAIN(NULL, NULL)
