#include "testing.h"
#include "base/arena.h"

TEST_CASE(test_aligned_zeroed_apart)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 1000000);
	for (size_t round = 0; round < 3; round++) {
		char *previous = NULL;
		for (size_t size = 0; size < 600; size++) {
			char *data = arena_alloc(&arena, size);
			assert_non_null(data);
			assert_int_equal((uintptr_t)data % 16, 0);
			assert_ptr_not_equal(data, previous);
			for (size_t i = 0; i < size; i++)
				assert_int_equal(data[i], 0);
			memset(data, 0xa5, size);
			previous = data;
		}
		arena_reset(&arena);
		assert_int_equal(arena.used, 0);
	}
}

TEST_CASE(test_limit)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 64 * 1024);
	assert_non_null(arena_alloc(&arena, 64 * 1024));
	assert_null(arena_alloc(&arena, 1));
	arena_reset(&arena);
	assert_null(arena_alloc(&arena, 64 * 1024 + 1));
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc(&arena, SIZE_MAX - 8));
	size_t count = 0;
	while (arena_alloc(&arena, 16))
		count++;
	assert_int_equal(count, 4096);
	assert_int_equal(arena.used, arena.limit);
	arena_free(&arena);
	assert_non_null(arena_alloc(&arena, 64 * 1024));
}

TEST_CASE(test_larger_than_a_block)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 10000000);
	char *small = arena_text(&arena, "small");
	char *large = arena_alloc(&arena, 3000000);
	assert_non_null(large);
	memset(large, 'x', 3000000);
	assert_string_equal(small, "small");
}

/* Kept blocks are used again, and what exceeds the limit is freed. */
TEST_CASE(test_keep)
{
	struct budget budget = {.allowance = 64 << 20};
	struct arena arena;
	arena_init_counted(&arena, 64 << 20, &budget, 0);
	arena_keep(&arena, 2 << 20);
	for (int round = 0; round < 5; round++) {
		size_t before = budget.held;
		for (int i = 0; i < 1200; i++) {
			char *data = arena_alloc(&arena, 1000);
			assert_non_null(data);
			for (int k = 0; k < 1000; k++)
				assert_int_equal(data[k], 0);
			memset(data, 'x', 1000);
			assert_true(arena_has(&arena, data));
		}
		assert_true(round == 0 || budget.held == before);
		arena_reset(&arena);
		assert_int_equal(arena.used, 0);
	}
	for (int i = 0; i < 20000; i++)
		assert_non_null(arena_alloc(&arena, 1000));
	assert_non_null(arena_alloc(&arena, 5 << 20)); /* larger than any kept block */
	assert_true(budget.held > 20 << 20);
	arena_reset(&arena);
	assert_true(budget.held < 10 << 20);
	arena_free(&arena);
	assert_int_equal(budget.held, 0);
}

TEST_CASE(test_text)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 1000);
	char *copy = arena_copy(&arena, "a\0b", 3);
	assert_memory_equal(copy, "a\0b\0", 4);
	assert_string_equal(arena_copy(&arena, NULL, 0), "");
	assert_string_equal(arena_text(&arena, "text"), "text");
	assert_string_equal(arena_printf(&arena, "%s-%d", "x", 12), "x-12");
	assert_null(arena_printf(&arena, "%2000d", 1));
	assert_null(arena_copy(&arena, "", SIZE_MAX));
}

TEST_MAIN(NULL, NULL)
