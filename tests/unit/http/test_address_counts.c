#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/address_counts.h"

#define ADDRESSES 5000

static void test_limit(void **state)
{
	struct address_counts *counts = address_counts_create();
	assert_non_null(counts);
	assert_false(address_count_take(counts, 7, 0));
	for (int i = 0; i < 3; i++)
		assert_true(address_count_take(counts, 7, 3));
	assert_false(address_count_take(counts, 7, 3));
	assert_true(address_count_take(counts, 8, 3));
	address_count_give(counts, 7);
	assert_true(address_count_take(counts, 7, 3));
	assert_false(address_count_take(counts, 7, 3));
	address_counts_free(counts);
	address_counts_free(NULL);
}

/* Many in each bucket, and each by itself. */
static void test_many(void **state)
{
	struct address_counts *counts = address_counts_create();
	for (int round = 0; round < 2; round++) {
		for (uint64_t address = 0; address < ADDRESSES; address++) {
			assert_true(address_count_take(counts, address * 1024, 1));
			assert_false(address_count_take(counts, address * 1024, 1));
		}
		for (uint64_t address = 0; address < ADDRESSES; address++)
			address_count_give(counts, address * 1024);
	}
	address_counts_free(counts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
