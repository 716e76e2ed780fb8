/* The holders of leases, their duration and release. The times are invented. */
#include "testing.h"
#include "sample.h"
#include "store/nodes/leases.h"

static struct sample sample;
static struct error error;

static int set_up(void **state)
{
	sample_open(&sample, MODALITY_HASH_ONLY, 100000);
	return 0;
}

/* For 50 from the given time. */
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

TEST_CASE(test_it_is_its_holders_until_it_has_run_out)
{
	assert_true(take(LEASE_SEALER, "a", 100));
	assert_false(take(LEASE_SEALER, "b", 149));
	assert_true(take(LEASE_SEALER, "b", 150));
	assert_false(take(LEASE_SEALER, "a", 151));
}

TEST_CASE(test_its_holder_keeps_it_by_taking_it_again)
{
	assert_true(take(LEASE_DELIVERER, "a", 100));
	assert_true(take(LEASE_DELIVERER, "a", 149));
	assert_false(take(LEASE_DELIVERER, "b", 198));
	assert_true(take(LEASE_DELIVERER, "b", 199));
}

TEST_CASE(test_only_its_holder_gives_it_back)
{
	assert_true(take(LEASE_SWEEP, "a", 100));
	end(LEASE_SWEEP, "b");
	assert_false(take(LEASE_SWEEP, "b", 101));
	end(LEASE_SWEEP, "a");
	assert_true(take(LEASE_SWEEP, "b", 101));
}

TEST_CASE(test_each_work_has_its_own)
{
	assert_true(take(LEASE_SEALER, "a", 100));
	assert_true(take(LEASE_DELIVERER, "b", 100));
	assert_true(take(LEASE_SWEEP, "c", 100));
	end(LEASE_SEALER, "a");
	assert_false(take(LEASE_DELIVERER, "a", 101));
	assert_false(take(LEASE_SWEEP, "a", 101));
	assert_true(take(LEASE_SEALER, "b", 101));
}

TEST_MAIN_EACH(set_up, sample_tear_down)
