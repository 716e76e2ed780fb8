/* Which requests get a row in the request log, and how many a row represents. */
#include "testing.h"
#include "base/clock.h"
#include "service/request_sampler.h"

#define START (1000 * US_PER_SECOND)
#define PER_DAY 8000 /* bursts: 750 of 6,000 that succeed, 250 of 2,000 that fail */
#define SUCCEEDED_BURST 750
#define FAILED_BURST 250

static struct request_sampler *sampler;
static int64_t account;
static bool failed;

static int set_up(void **state)
{
	sampler = request_sampler_make();
	assert_non_null(sampler);
	return 0;
}

static int tear_down(void **state)
{
	request_sampler_free(sampler);
	return 0;
}

static void fill(struct request_record *record, const void *context)
{
	assert_null(context);
	assert_int_equal(record->account, 0);
	record->account = account;
	record->status = failed ? 404 : 200;
}

static bool add(int64_t of_account, bool has_failed, int64_t now_us)
{
	account = of_account;
	failed = has_failed;
	const struct sampled_request request = {
		.account = of_account, .failed = has_failed, .per_day = PER_DAY, .fill = fill};
	return request_sampler_add(sampler, &request, now_us);
}

/* Adds requests until one gets no row; returns the number of rows. */
static int add_all(int64_t of_account, bool has_failed, int64_t now_us)
{
	int count = 0;
	while (add(of_account, has_failed, now_us))
		count++;
	return count;
}

static size_t take(void)
{
	size_t count;
	(void)request_sampler_take(sampler, &count);
	return count;
}

/* Uses up the bucket. */
static int add_burst(int64_t of_account, bool has_failed, int64_t now_us)
{
	int count = 0, added = 1;
	while (added > 0) {
		added = add_all(of_account, has_failed, now_us);
		count += added;
		(void)take();
	}
	return count;
}

TEST_CASE(an_account_has_a_share_of_the_buffer)
{
	assert_int_equal(add_all(1, false, START), REQUEST_SHARE_MAX);
	assert_int_equal(add_all(1, true, START), REQUEST_SHARE_MAX);
	assert_int_equal(add_all(2, false, START), REQUEST_SHARE_MAX);
	assert_int_equal(take(), 3 * REQUEST_SHARE_MAX);
	assert_int_equal(take(), 0);
	assert_int_equal(add_all(1, false, START), REQUEST_SHARE_MAX);
}

TEST_CASE(a_full_buffer_takes_no_row)
{
	int accounts = REQUEST_ROWS_MAX / REQUEST_SHARE_MAX;
	for (int i = 1; i <= accounts; i++)
		assert_int_equal(add_all(i, false, START), REQUEST_SHARE_MAX);
	assert_false(add(accounts + 1, false, START));
	assert_false(add(accounts + 1, true, START));
	assert_int_equal(take(), REQUEST_ROWS_MAX);
	assert_true(add(accounts + 1, true, START));
}

TEST_CASE(failures_have_a_bucket_of_their_own)
{
	assert_int_equal(add_burst(1, false, START), SUCCEEDED_BURST);
	assert_int_equal(add_burst(1, true, START), FAILED_BURST);
	assert_int_equal(add_burst(2, true, START), FAILED_BURST);
}

TEST_CASE(buckets_refill)
{
	int64_t interval_us = US_PER_DAY / 6000; /* of requests that succeed */
	assert_int_equal(add_burst(1, false, START), SUCCEEDED_BURST);
	assert_int_equal(add_burst(1, true, START), FAILED_BURST);
	assert_false(add(1, false, START + interval_us - 1));
	assert_true(add(1, false, START + interval_us));
	assert_false(add(1, false, START + interval_us));
	assert_false(add(1, true, START + 3 * interval_us - 1));
	assert_true(add(1, true, START + 3 * interval_us));
	assert_int_equal(add_burst(1, false, START + 10 * US_PER_DAY), SUCCEEDED_BURST);
	/* Later requests may have been read from an earlier clock. */
	assert_false(add(1, false, START));
}

TEST_CASE(a_row_represents_those_without)
{
	size_t count;
	assert_int_equal(add_all(1, false, START), REQUEST_SHARE_MAX); /* and one without a row */
	for (int i = 0; i < 9; i++)
		assert_false(add(1, false, START));
	const struct request_record *rows = request_sampler_take(sampler, &count);
	assert_int_equal(count, REQUEST_SHARE_MAX);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(rows[i].represents, 1);
	assert_true(add(1, true, START));
	assert_true(add(1, false, START));
	assert_true(add(1, false, START));
	rows = request_sampler_take(sampler, &count);
	assert_int_equal(count, 3);
	assert_int_equal(rows[0].represents, 1); /* of another kind */
	assert_int_equal(rows[1].represents, 11);
	assert_int_equal(rows[2].represents, 1);
}

TEST_CASE(what_was_not_written_is_counted_later)
{
	size_t count;
	assert_true(add(1, false, START));
	assert_true(add(1, false, START));
	assert_true(add(1, true, START));
	assert_true(add(2, true, START));
	const struct request_record *rows = request_sampler_take(sampler, &count);
	request_sampler_drop(sampler, rows, count);
	assert_true(add(1, false, START));
	assert_true(add(1, true, START));
	rows = request_sampler_take(sampler, &count);
	assert_int_equal(count, 2);
	assert_int_equal(rows[0].represents, 3);
	assert_int_equal(rows[1].represents, 2);
}

/* New accounts replace those that were idle longest; nothing else happens to the others. */
TEST_CASE(any_number_of_accounts_has_rows)
{
	assert_int_equal(add_burst(1, false, START), SUCCEEDED_BURST);
	for (int64_t i = 2; i < 50000; i++) {
		assert_true(add(i, false, START + i));
		assert_false(add(1, false, START + i));
		if (i % REQUEST_ROWS_MAX == 0)
			(void)take();
	}
	size_t count;
	static const struct request_record gone = {.account = 2, .status = 200, .represents = 1};
	request_sampler_drop(sampler, &gone, 1); /* of an account that is not in the table any more */
	(void)request_sampler_take(sampler, &count);
	assert_true(add(2, false, START + 50000));
	assert_int_equal(request_sampler_take(sampler, &count)->represents, 1);
}

TEST_CASE(the_least_setting_keeps_one_of_each_kind)
{
	account = 1;
	struct sampled_request request = {.account = 1, .per_day = 1, .fill = fill};
	assert_true(request_sampler_add(sampler, &request, START));
	assert_false(request_sampler_add(sampler, &request, START));
	request.failed = failed = true;
	assert_true(request_sampler_add(sampler, &request, START));
	assert_false(request_sampler_add(sampler, &request, START));
}

TEST_CASE(failures_are_errors_and_what_did_not_arrive)
{
	assert_false(request_has_failed(200, false));
	assert_false(request_has_failed(304, false));
	assert_true(request_has_failed(400, false));
	assert_true(request_has_failed(503, false));
	assert_true(request_has_failed(200, true));
	assert_true(request_has_failed(0, false));
}

int main(void)
{
	return tests_run(NULL, NULL, set_up, tear_down);
}
