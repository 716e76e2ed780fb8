#include "testing.h"
#include "base/error.h"
#include "http/shares.h"

#define OWNERS 5000

TEST_CASE(test_limit)
{
	struct shares *shares = shares_create();
	assert_non_null(shares);
	assert_int_equal(share_take(shares, 7, 1, 0), ERR_RATE_LIMITED);
	for (int i = 0; i < 3; i++)
		assert_int_equal(share_take(shares, 7, 1, 3), 0);
	assert_int_equal(share_take(shares, 7, 1, 3), ERR_RATE_LIMITED);
	assert_int_equal(share_take(shares, 8, 1, 3), 0);
	share_release(shares, 7, 1);
	assert_int_equal(share_take(shares, 7, 1, 3), 0);
	assert_int_equal(share_take(shares, 7, 1, 3), ERR_RATE_LIMITED);
	assert_int_equal(share_held(shares, 7), 3);
	shares_free(shares);
	shares_free(NULL);
}

TEST_CASE(test_amounts)
{
	struct shares *shares = shares_create();
	assert_int_equal(share_take(shares, 7, 101, 100), ERR_RATE_LIMITED);
	assert_int_equal(share_held(shares, 7), 0);
	assert_int_equal(share_take(shares, 7, 60, 100), 0);
	assert_int_equal(share_take(shares, 7, 41, 100), ERR_RATE_LIMITED);
	assert_int_equal(share_take(shares, 7, 1, 50), ERR_RATE_LIMITED); /* a limit that was lowered */
	assert_int_equal(share_take(shares, 7, 40, 100), 0);
	share_release(shares, 7, 30);
	assert_int_equal(share_held(shares, 7), 70);
	share_release(shares, 7, 70);
	assert_int_equal(share_held(shares, 7), 0);
	shares_free(shares);
}

/* Many in each bucket, each counted separately. */
TEST_CASE(test_many)
{
	struct shares *shares = shares_create();
	for (int round = 0; round < 2; round++) {
		for (uint64_t owner = 0; owner < OWNERS; owner++) {
			assert_int_equal(share_take(shares, owner * 1024, 1, 1), 0);
			assert_int_equal(share_take(shares, owner * 1024, 1, 1), ERR_RATE_LIMITED);
		}
		for (uint64_t owner = 0; owner < OWNERS; owner++)
			share_release(shares, owner * 1024, 1);
	}
	shares_free(shares);
}

TEST_MAIN(NULL, NULL)
