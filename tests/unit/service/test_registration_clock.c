/* Which clock the local one is compared with, when registrations are refused because of it, and
 * what is logged. All clocks come from the test. */
#include "testing.h"
#include "logged.h"
#include "base/log.h"
#include "seal/authority.h"
#include "seal/clock_state.h"
#include "service/registration_clock.h"

#define SECOND US_PER_SECOND
#define NOW (INT64_C(1000000) * SECOND)
#define BOUND (5 * SECOND)

static struct {
	int64_t now_us, boot_us;
	bool shared;
	int64_t store_us, authorities_us; /* the latest times that these clocks may show */
	int64_t wait_us;                  /* duration of a query */
	bool synchronized;
	int store_asked;
} world;

static struct settings settings;
static struct service service;

int64_t __wrap_clock_now_us(void);
int64_t __wrap_clock_boot_us(void);
bool __wrap_store_is_shared(const struct store *store);
int64_t __wrap_store_latest_now_us(const struct store *store);
int64_t __wrap_authorities_latest_time_us(struct authorities *authorities);
struct clock_state __wrap_clock_state_read(void);

int64_t __wrap_clock_now_us(void)
{
	return world.now_us;
}

int64_t __wrap_clock_boot_us(void)
{
	return world.boot_us;
}

bool __wrap_store_is_shared(const struct store *store)
{
	world.store_asked++;
	return world.shared;
}

int64_t __wrap_store_latest_now_us(const struct store *store)
{
	world.now_us += world.wait_us;
	return world.store_us + world.wait_us;
}

int64_t __wrap_authorities_latest_time_us(struct authorities *authorities)
{
	world.now_us += world.wait_us;
	return world.authorities_us + world.wait_us;
}

struct clock_state __wrap_clock_state_read(void)
{
	return (struct clock_state){.synchronized = world.synchronized};
}

/* A node of several, with a correct clock. */
static int set_up(void **state)
{
	static char an_authority;
	world.now_us = world.store_us = world.authorities_us = NOW;
	world.boot_us = 10 * SECOND;
	world.wait_us = 0;
	world.shared = true;
	world.synchronized = true;
	world.store_asked = logged.count = 0;
	settings = (struct settings){.seal_clock_bound = BOUND, .tsa_time_bound = 2 * SECOND};
	service = (struct service){.settings = &settings};
	service.authorities = (struct authorities *)&an_authority; /* never dereferenced */
	return 0;
}

TEST_CASE(nodes_are_compared_with_their_store)
{
	world.now_us = NOW + 7 * SECOND;
	world.authorities_us = NOW + 100 * SECOND;
	assert_int_equal(service_clock_ahead_us(&service), 7 * SECOND);
	world.now_us = NOW - 7 * SECOND;
	assert_int_equal(service_clock_ahead_us(&service), 0);
}

/* The true time may be later than the time in a timestamp, by up to tsa_time_bound. */
TEST_CASE(one_alone_is_compared_with_the_last_timestamps)
{
	world.shared = false;
	world.store_us = 0;
	world.now_us = NOW + 7 * SECOND;
	assert_int_equal(service_clock_ahead_us(&service), 5 * SECOND);
	world.now_us = NOW + 2 * SECOND;
	assert_int_equal(service_clock_ahead_us(&service), 0);
}

TEST_CASE(one_without_timestamps_is_compared_with_nobody)
{
	world.shared = false;
	world.store_us = 0;
	service.authorities = NULL;
	world.now_us = NOW + 100 * SECOND;
	assert_int_equal(service_clock_ahead_us(&service), 0);
	assert_int_equal(service_clock_ready(&service, NULL), OK);
}

TEST_CASE(what_the_answer_takes_is_not_counted)
{
	world.now_us = NOW + 7 * SECOND;
	world.wait_us = 4 * SECOND;
	assert_int_equal(service_clock_ahead_us(&service), 3 * SECOND);
}

TEST_CASE(registrations_are_given_the_clock)
{
	world.now_us = NOW + 3 * SECOND;
	struct ledger_clock clock = service_clock(&service);
	assert_int_equal(clock.now_us, NOW + 3 * SECOND);
	assert_int_equal(clock.ahead_us, 3 * SECOND);
	assert_int_equal(clock.bound_us, BOUND);
}

TEST_CASE(live_registrations_are_refused_beyond_the_bound)
{
	struct error error = {0};
	world.now_us = NOW + BOUND;
	assert_int_equal(service_clock_ready(&service, &error), OK);
	world.now_us++;
	assert_int_equal(service_clock_ready(&service, &error), ERR_CLOCK);
	assert_string_equal(error.cause, "this clock is 5 s ahead of the store's");
	world.shared = false;
	world.now_us = NOW + 8 * SECOND;
	assert_int_equal(service_clock_ready(&service, &error), ERR_CLOCK);
	assert_string_equal(error.cause, "this clock is 6 s ahead of the last timestamp's");
}

TEST_CASE(synchronization_counts_where_it_is_asked_for)
{
	struct error error = {0};
	world.synchronized = false;
	assert_int_equal(service_clock_ready(&service, &error), OK);
	assert_int_equal(service_clock_synchronized(&service, &error), OK);
	settings.seal_strict_clock = true;
	assert_int_equal(service_clock_ready(&service, &error), ERR_CLOCK);
	assert_non_null(strstr(error.cause, "not synchronized"));
	error = (struct error){0};
	assert_int_equal(service_clock_synchronized(&service, &error), ERR_CLOCK);
	assert_non_null(strstr(error.cause, "not synchronized"));
	assert_int_equal(service_clock_synchronized(&service, NULL), ERR_CLOCK);
	world.synchronized = true;
	assert_int_equal(service_clock_ready(&service, &error), OK);
	world.store_asked = 0;
	assert_int_equal(service_clock_synchronized(&service, &error), OK);
	world.now_us = NOW + BOUND + 1; /* checked elsewhere */
	assert_int_equal(service_clock_synchronized(&service, &error), OK);
	assert_int_equal(world.store_asked, 0);
}

TEST_CASE(the_log_is_told_of_each_change_once)
{
	settings.seal_strict_clock = true;
	assert_int_equal(service_clock_synchronized(&service, NULL), OK);
	assert_false(service_watch_clock(&service));
	assert_int_equal(logged.count, 0);
	world.synchronized = false;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(service_clock_synchronized(&service, NULL), ERR_CLOCK);
		expect_logged(1, LOG_ERROR, "clock_rejected", "not synchronized");
	}
	world.now_us = NOW + BOUND + SECOND;
	for (int i = 0; i < 2; i++) {
		assert_true(service_watch_clock(&service));
		expect_logged(2, LOG_ERROR, "clock_rejected", "6 s ahead of the store's");
	}
	world.now_us = NOW;
	for (int i = 0; i < 2; i++) {
		assert_false(service_watch_clock(&service));
		expect_logged(3, LOG_INFO, "clock_accepted", "no longer ahead");
	}
	world.synchronized = true;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(service_clock_synchronized(&service, NULL), OK);
		expect_logged(4, LOG_INFO, "clock_accepted", "it is synchronized");
	}
}

TEST_CASE(a_chain_that_is_ahead_is_told_once_a_minute)
{
	struct registration refused = {.account = 12, .chain = 34, .chain_is_ahead = true};
	assert_true(service_log_clock_refusal(&service, &refused));
	expect_logged(1, LOG_ERROR, "clock_behind_chain", "account=12 chain=34 ");
	world.boot_us += 60 * SECOND - 1;
	assert_true(service_log_clock_refusal(&service, &refused));
	assert_int_equal(logged.count, 1);
	world.boot_us++;
	refused.chain = 35;
	assert_true(service_log_clock_refusal(&service, &refused));
	expect_logged(2, LOG_ERROR, "clock_behind_chain", "account=12 chain=35 ");
}

TEST_CASE(a_clock_that_is_ahead_is_no_chains_fault)
{
	struct registration refused = {.account = 12, .chain = 34};
	world.now_us = NOW + BOUND + 1;
	for (int i = 0; i < 2; i++) {
		assert_false(service_log_clock_refusal(&service, &refused));
		expect_logged(1, LOG_ERROR, "clock_rejected", "ahead of");
	}
}

/* The clock was refused when the batch was decided, and is accepted now. */
TEST_CASE(a_clock_that_was_refused_is_no_chains_fault)
{
	struct registration refused = {.account = 12, .chain = 34};
	assert_false(service_log_clock_refusal(&service, &refused));
	assert_int_equal(logged.count, 0);
}

TEST_MAIN_EACH(set_up, NULL)
