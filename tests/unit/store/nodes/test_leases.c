/* Who holds a lease, until when, and who gives it back. Times are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sample.h"
#include "store/nodes/leases.h"

static struct sample sample;
static struct error error;

static int set_up(void **state)
{
	sample_open(&sample, MODALITY_HASH_ONLY, 100000);
	return 0;
}

static int tear_down(void **state)
{
	sample_close(&sample);
	return 0;
}

/* For 50 from now on. */
static bool take(enum lease_name name, const char *holder, int64_t now_us)
{
	bool taken = false;
	assert_int_equal(store_take_lease(sample.store, name, holder, now_us, 50, &taken, &error), OK);
	return taken;
}

static void end(enum lease_name name, const char *holder)
{
	assert_int_equal(store_end_lease(sample.store, name, holder, &error), OK);
}

static void test_it_is_its_holders_until_it_has_run_out(void **state)
{
	assert_true(take(LEASE_SEALER, "a", 100));
	assert_false(take(LEASE_SEALER, "b", 149));
	assert_true(take(LEASE_SEALER, "b", 150));
	assert_false(take(LEASE_SEALER, "a", 151));
}

static void test_its_holder_keeps_it_by_taking_it_again(void **state)
{
	assert_true(take(LEASE_DELIVERER, "a", 100));
	assert_true(take(LEASE_DELIVERER, "a", 149));
	assert_false(take(LEASE_DELIVERER, "b", 198));
	assert_true(take(LEASE_DELIVERER, "b", 199));
}

static void test_only_its_holder_gives_it_back(void **state)
{
	assert_true(take(LEASE_SWEEP, "a", 100));
	end(LEASE_SWEEP, "b");
	assert_false(take(LEASE_SWEEP, "b", 101));
	end(LEASE_SWEEP, "a");
	assert_true(take(LEASE_SWEEP, "b", 101));
}

static void test_each_work_has_its_own(void **state)
{
	assert_true(take(LEASE_SEALER, "a", 100));
	assert_true(take(LEASE_DELIVERER, "b", 100));
	assert_true(take(LEASE_SWEEP, "c", 100));
	end(LEASE_SEALER, "a");
	assert_false(take(LEASE_DELIVERER, "a", 101));
	assert_false(take(LEASE_SWEEP, "a", 101));
	assert_true(take(LEASE_SEALER, "b", 101));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_it_is_its_holders_until_it_has_run_out),
		TEST(test_its_holder_keeps_it_by_taking_it_again),
		TEST(test_only_its_holder_gives_it_back),
		TEST(test_each_work_has_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
