/* Receipts of an account: a burst, then one each minute; and no more room than there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "service/receipt_rate.h"

static struct receipt_rate rate;
static struct error error;
static int64_t now_us;

static int set_up(void **state)
{
	(void)state;
	rate = (struct receipt_rate){0};
	now_us = 5 * US_PER_SECOND;
	return 0;
}

static void spend(const char *account)
{
	for (int i = 0; i < RECEIPT_RATE_BURST; i++)
		assert_int_equal(receipt_rate_take(&rate, account, now_us, &error), OK);
	assert_int_equal(receipt_rate_take(&rate, account, now_us, &error), ERR_RATE_LIMITED);
}

static void a_burst_and_then_one_each_minute(void **state)
{
	spend("acc_one");
	assert_int_equal(error.retry_after_seconds, 60);
	assert_non_null(strstr(error.english, "in 1 min"));
	assert_int_equal(receipt_rate_take(&rate, "acc_two", now_us, &error), OK);
	now_us += RECEIPT_RATE_PAUSE_US - 1;
	assert_int_equal(receipt_rate_take(&rate, "acc_one", now_us, &error), ERR_RATE_LIMITED);
	assert_int_equal(error.retry_after_seconds, 1);
	now_us++;
	assert_int_equal(receipt_rate_take(&rate, "acc_one", now_us, &error), OK);
	assert_int_equal(receipt_rate_take(&rate, "acc_one", now_us, &error), ERR_RATE_LIMITED);
	now_us += RECEIPT_RATE_BURST * RECEIPT_RATE_PAUSE_US;
	spend("acc_one");
}

/* Whoever asked longest ago gives way, so that who asks for many stays known. */
static void the_account_with_most_left_gives_way(void **state)
{
	char account[ID_SIZE];
	spend("acc_one");
	for (int i = 0; i < 2 * RECEIPT_RATE_ACCOUNTS; i++) {
		snprintf(account, sizeof account, "acc_%d", i);
		assert_int_equal(receipt_rate_take(&rate, account, now_us + i, &error), OK);
	}
	assert_int_equal(receipt_rate_take(&rate, "acc_one", now_us, &error), ERR_RATE_LIMITED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_burst_and_then_one_each_minute, set_up),
		cmocka_unit_test_setup(the_account_with_most_left_gives_way, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
