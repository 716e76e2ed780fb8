/* ledger_move_credits: debts first, then balance; thresholds; bounds. */
#include "testing.h"
#include "ledger/ledger.h"

struct table {
	int64_t balance, unpaid, credits;
	int64_t balance_after, unpaid_after, settled;
};

TEST_CASE(debts_come_first)
{
	static const struct table rows[] = {
		{0, 0, 10, 10, 0, 0}, {0, 3, 10, 7, 0, 3},  {0, 3, 2, 0, 1, 2},
		{-5, 3, 4, -1, 3, 0}, {-5, 3, 5, 0, 3, 0},  {-5, 3, 7, 0, 1, 2},
		{-5, 3, 10, 2, 0, 3}, {10, 0, -4, 6, 0, 0}, {3, 0, -10, -7, 0, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		ARENA_AUTO struct arena arena = {.limit = 65536};
		struct ledger_account account = {.balance = rows[i].balance,
		                                 .unpaid_events = rows[i].unpaid};
		struct ledger_result result;
		int64_t settled;
		assert_int_equal(ledger_move_credits(&account, rows[i].credits, "purchase", "sal_1", &arena,
		                                     &result, &settled, NULL),
		                 OK);
		assert_int_equal(account.balance, rows[i].balance_after);
		assert_int_equal(account.unpaid_events, rows[i].unpaid_after);
		assert_int_equal(settled, rows[i].settled);
		int64_t sum = rows[i].balance;
		for (struct ledger_entry *entry = result.entries; entry; entry = entry->next) {
			sum += entry->credits;
			assert_int_equal(entry->balance, sum);
			assert_string_equal(entry->reference, "sal_1");
		}
		assert_int_equal(sum, account.balance);
	}
}

TEST_CASE(thresholds_fire_and_arm)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	struct ledger_threshold threshold = {.threshold_id = "thr_a", .credits = 10, .armed = true};
	struct ledger_account account = {.balance = 12, .thresholds = &threshold, .threshold_count = 1};
	struct ledger_result result;
	int64_t settled;
	assert_int_equal(
		ledger_move_credits(&account, -2, "adjustment", NULL, &arena, &result, &settled, NULL), OK);
	assert_int_equal(result.notices->type, NOTICE_BALANCE_LOW);
	assert_false(threshold.armed);
	assert_int_equal(
		ledger_move_credits(&account, -2, "adjustment", NULL, &arena, &result, &settled, NULL), OK);
	assert_null(result.notices);
	assert_int_equal(
		ledger_move_credits(&account, 2, "adjustment", NULL, &arena, &result, &settled, NULL), OK);
	assert_false(threshold.armed);
	assert_int_equal(
		ledger_move_credits(&account, 1, "adjustment", NULL, &arena, &result, &settled, NULL), OK);
	assert_true(threshold.armed);
	assert_int_equal(
		ledger_move_credits(&account, -1, "adjustment", NULL, &arena, &result, &settled, NULL), OK);
	assert_int_equal(result.notices->type, NOTICE_BALANCE_LOW);
}

TEST_CASE(out_of_range_is_refused)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	static const int64_t rows[][2] = {{0, 0},
	                                  {1, INT64_MAX},
	                                  {LEDGER_BALANCE_MAX, 1},
	                                  {-LEDGER_BALANCE_MAX, -1},
	                                  {-2, INT64_MIN}};
	for (size_t i = 0; i < 5; i++) {
		struct ledger_account account = {.balance = rows[i][0]};
		struct ledger_result result;
		int64_t settled;
		assert_int_equal(ledger_move_credits(&account, rows[i][1], "adjustment", NULL, &arena,
		                                     &result, &settled, NULL),
		                 ERR_VALIDATION);
		assert_int_equal(account.balance, rows[i][0]);
	}
}

TEST_CASE(credits_last_as_long_as_they_are_used)
{
	static const int64_t rows[][4] = {
		{100, 10, 1, 10},
		{100, 10, 14, 140},
		{99, 100, 1, 0},
		{0, 5, 14, 0},
		{-3, 5, 14, 0},
		{100, 0, 14, -1},
		{100, -5, 14, -1}, /* refunded fees */
		{100, 5, 0, -1},   /* no event yet */
		{LEDGER_FORECAST_DAYS_MAX, 1, 1, LEDGER_FORECAST_DAYS_MAX},
		{LEDGER_FORECAST_DAYS_MAX + 1, 1, 1, -1},
		{INT64_MAX, 1, INT64_MAX, -1},
		{INT64_MAX, INT64_MAX, 14, 14},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(ledger_days_left(rows[i][0], rows[i][1], rows[i][2]), rows[i][3]);
}

TEST_MAIN(NULL, NULL)
