/* What the job of the request log does when the store writes no row, or not each. */
#include "testing.h"
#include "jobs/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "service/request_sampler.h"

static struct service service;
static struct request_logger logger;
static int store_result;
static size_t left_out; /* rows of a server that is unavailable */
static int64_t represented;
static int calls, warnings;

int __wrap_store_add_requests(struct store *store, const struct request_record *records,
                              size_t count, size_t *ret_added, struct error *error);
int __wrap_store_add_requests(struct store *store, const struct request_record *records,
                              size_t count, size_t *ret_added, struct error *error)
{
	calls++;
	for (size_t i = 0; i < count; i++)
		represented += records[i].represents;
	if (!store_result)
		*ret_added = count - left_out;
	return store_result ? error_cause(error, store_result, "no disk") : OK;
}

void __wrap_log_write(enum log_level level, const char *event, ...);
void __wrap_log_write(enum log_level level, const char *event, ...)
{
	assert_string_equal(event, "requests_not_logged");
	assert_int_equal(level, LOG_WARNING);
	warnings++;
}

static int set_up(void **state)
{
	service = (struct service){.requests = request_sampler_make()};
	assert_non_null(service.requests);
	logger = (struct request_logger){.service = &service};
	store_result = OK;
	left_out = 0;
	represented = calls = warnings = 0;
	return 0;
}

static int tear_down(void **state)
{
	request_sampler_free(service.requests);
	return 0;
}

static void fill(struct request_record *record, const void *context)
{
	record->account = 1;
	record->status = 200;
}

static void add(int count)
{
	const struct sampled_request request = {.account = 1, .per_day = 100000, .fill = fill};
	for (int i = 0; i < count; i++)
		assert_true(request_sampler_add(service.requests, &request, clock_monotonic_us()));
}

static void run_job(void)
{
	represented = 0;
	assert_int_equal(request_logger_run(&logger, NULL), US_PER_SECOND);
}

static void assert_counted(int64_t logged, int64_t skipped)
{
	assert_int_equal(atomic_load(&service.counters.requests_logged), logged);
	assert_int_equal(atomic_load(&service.counters.requests_skipped), skipped);
}

TEST_CASE(rows_are_written_once)
{
	run_job();
	assert_int_equal(calls, 0);
	add(3);
	run_job();
	run_job();
	assert_int_equal(calls, 1);
	assert_counted(3, 0);
	assert_int_equal(warnings, 0);
}

TEST_CASE(rows_that_fail_are_represented_by_later_ones)
{
	store_result = ERR_UNAVAILABLE;
	for (int i = 0; i < 3; i++) {
		add(2);
		run_job();
	}
	assert_int_equal(warnings, 1);
	assert_counted(0, 6);
	store_result = OK;
	add(1);
	run_job();
	assert_int_equal(represented, 7);
	assert_counted(1, 6);
	store_result = ERR_UNAVAILABLE;
	add(1);
	run_job();
	assert_int_equal(warnings, 2);
}

TEST_CASE(a_read_only_copy_is_not_written)
{
	atomic_store(&service.read_only_since_us, 1);
	add(2);
	run_job();
	assert_int_equal(calls, 0);
	assert_int_equal(warnings, 0);
	assert_counted(0, 2);
	atomic_store(&service.read_only_since_us, 0);
	add(1);
	run_job();
	assert_int_equal(represented, 3);
}

TEST_CASE(rows_of_an_unavailable_server_are_counted)
{
	left_out = 2;
	add(5);
	run_job();
	assert_counted(3, 2);
}

int main(void)
{
	return tests_run(NULL, NULL, set_up, tear_down);
}
