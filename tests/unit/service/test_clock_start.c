/* The result of the clock comparison at each start, and its effect on registrations meanwhile.
 * Clocks, authorities and the store come from the test. */
#include "testing.h"
#include "logged.h"
#include "base/log.h"
#include "seal/authority.h"
#include "seal/clock_state.h"
#include "service/clock_start.h"
#include "service/registration_clock.h"
#include "store/nodes/unverified_clock.h"

#define SECOND US_PER_SECOND
#define NOW (INT64_C(1000000) * SECOND)
#define BOUND (5 * SECOND)
#define AUTHORITIES 3

static struct {
	int64_t now_us, boot_us;
	bool known; /* an authority has given a time, from which the local clock differs by off_us */
	int64_t off_us;
	int answers;   /* index of the authority that answers; AUTHORITIES: none */
	int64_t tells; /* the difference in its answer */
	int asked;     /* number of authorities, in order */
	bool fails;    /* they report why they do not answer */
	bool marked;   /* in the store */
	int64_t until_us;
	int store_result;
	int state_at_mark;
} world;

static struct settings settings;
static struct service service;
static const atomic_bool goes_on, stops = true;

int64_t __wrap_clock_now_us(void);
int64_t __wrap_clock_boot_us(void);
bool __wrap_store_is_shared(const struct store *store);
int64_t __wrap_authorities_latest_time_us(struct authorities *authorities);
bool __wrap_authorities_compare_clock(struct authorities *authorities, int64_t *ret_off_us);
bool __wrap_authorities_request_time_of(struct authorities *authorities, size_t index,
                                        struct authority_failures *failures);
int __wrap_store_begin_unverified_clock(struct store *store, struct error *error);
int __wrap_store_end_unverified_clock(struct store *store, int64_t until_us, struct error *error);
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
	return false;
}

int64_t __wrap_authorities_latest_time_us(struct authorities *authorities)
{
	return world.now_us;
}

bool __wrap_authorities_compare_clock(struct authorities *authorities, int64_t *ret_off_us)
{
	*ret_off_us = world.off_us;
	return world.known;
}

bool __wrap_authorities_request_time_of(struct authorities *authorities, size_t index,
                                        struct authority_failures *failures)
{
	if (index == AUTHORITIES)
		return false;
	assert_int_equal(index, world.asked++);
	if (world.fails)
		failures->items[failures->count++] =
			(typeof(*failures->items)){.name = "one", .reason = "HTTP 401"};
	if ((int)index == world.answers) {
		world.known = true;
		world.off_us = world.tells;
	}
	return true;
}

int __wrap_store_begin_unverified_clock(struct store *store, struct error *error)
{
	world.state_at_mark = atomic_load(&service.comparison.state);
	world.marked = world.marked || !world.store_result;
	return world.store_result;
}

int __wrap_store_end_unverified_clock(struct store *store, int64_t until_us, struct error *error)
{
	if (!world.store_result && world.marked)
		world.until_us = until_us;
	world.marked = world.marked && world.store_result;
	return world.store_result;
}

struct clock_state __wrap_clock_state_read(void)
{
	return (struct clock_state){.synchronized = true};
}

/* A service that has started. */
static int set_up(void **state)
{
	static char an_authority;
	memset(&world, 0, sizeof world);
	memset(&logged, 0, sizeof logged);
	world.now_us = NOW;
	world.boot_us = 10 * SECOND;
	world.answers = AUTHORITIES;
	settings = (struct settings){.seal_clock_bound = BOUND};
	service = (struct service){.settings = &settings};
	service.authorities = (struct authorities *)&an_authority; /* never dereferenced */
	clock_start_begin(&service);
	return 0;
}

static void ask_and_decide(void)
{
	int64_t pause_us;
	world.asked = 0;
	if (clock_start_query(&service, &goes_on, &pause_us))
		clock_start_decide(&service);
	assert_true(pause_us > 0);
}

static void expect_refused(const char *cause)
{
	struct error error = {0};
	struct ledger_clock clock = service_clock(&service);
	assert_true(ledger_clock_is_refused(&clock));
	assert_int_equal(service_clock_ready(&service, &error), ERR_CLOCK);
	assert_non_null(strstr(error.cause, cause));
}

static void expect_accepted(void)
{
	struct ledger_clock clock = service_clock(&service);
	assert_false(ledger_clock_is_refused(&clock));
	assert_int_equal(service_clock_ready(&service, NULL), OK);
}

TEST_CASE(nothing_is_received_before_the_outcome)
{
	expect_refused("being compared");
	clock_start_decide(&service);
	expect_refused("being compared");
	world.answers = 0;
	ask_and_decide();
	expect_accepted();
	assert_int_equal(world.asked, 1);
	assert_int_equal(logged.count, 0);
	ask_and_decide();
	assert_int_equal(world.asked, 0);
}

TEST_CASE(without_authorities_nothing_is_compared)
{
	service = (struct service){.settings = &settings};
	clock_start_begin(&service);
	expect_accepted();
	ask_and_decide();
	clock_start_decide(&service);
	expect_accepted();
	assert_int_equal(world.asked, 0);
}

TEST_CASE(more_than_the_bound_is_refused_either_way)
{
	static const struct {
		int64_t off_us;
		const char *cause;
	} cases[] = {
		{BOUND, NULL},
		{-BOUND, NULL},
		{BOUND + 1, "5 s ahead of"},
		{-BOUND - 1, "5 s behind"},
		{3600 * SECOND, "3600 s ahead of"},
		{-3600 * SECOND, "3600 s behind"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		set_up(state);
		world.answers = 0;
		world.tells = cases[i].off_us;
		for (int times = 0; times < 2; times++) {
			ask_and_decide();
			if (!cases[i].cause) {
				expect_accepted();
				continue;
			}
			expect_refused(cases[i].cause);
			expect_logged(1, LOG_ERROR, "clock_rejected", cases[i].cause);
			assert_int_equal(world.asked, AUTHORITIES); /* another may agree */
		}
		assert_false(world.marked);
	}
}

/* A corrected clock needs no restart. */
TEST_CASE(a_clock_that_is_set_right_is_relied_on)
{
	world.answers = 1;
	world.tells = 3600 * SECOND;
	ask_and_decide();
	expect_refused("3600 s ahead");
	world.off_us = SECOND;
	clock_start_decide(&service);
	expect_accepted();
	expect_logged(2, LOG_INFO, "clock_accepted", "agrees");
	world.off_us = 3600 * SECOND; /* from here on other rules apply */
	clock_start_decide(&service);
	expect_accepted();
}

TEST_CASE(where_none_answers_registration_goes_on)
{
	ask_and_decide();
	assert_true(world.marked);
	assert_int_equal(world.state_at_mark, CLOCK_COMPARING); /* it is stored before the first one */
	expect_accepted();
	expect_logged(1, LOG_WARNING, "clock_not_compared", "no timestamp authority");
	ask_and_decide();
	assert_int_equal(logged.count, 1);
	assert_int_equal(world.asked, AUTHORITIES);
	world.now_us = NOW + 7 * SECOND;
	(void)service_clock(&service);
	world.now_us = NOW - 3600 * SECOND; /* set back in the meantime */
	world.answers = 2;
	ask_and_decide();
	assert_false(world.marked);
	assert_int_equal(world.until_us, NOW + 7 * SECOND);
	expect_accepted();
	expect_logged(2, LOG_INFO, "clock_compared", "agrees");
}

TEST_CASE(one_that_answers_later_may_show_a_difference)
{
	ask_and_decide();
	expect_accepted();
	world.answers = 0;
	world.tells = 60 * SECOND;
	ask_and_decide();
	expect_refused("60 s ahead");
	assert_true(world.marked);
	world.now_us = NOW + SECOND;
	world.off_us = 0;
	clock_start_decide(&service);
	expect_accepted();
	assert_false(world.marked);
	assert_int_equal(world.until_us, NOW + SECOND);
}

/* While an authority hangs, not all have been asked. */
TEST_CASE(one_that_hangs_is_not_waited_for)
{
	world.boot_us += 15 * SECOND - 1;
	clock_start_decide(&service);
	expect_refused("being compared");
	world.boot_us++;
	clock_start_decide(&service);
	expect_accepted();
	assert_true(world.marked);
}

/* The comparison of another node may have ended the mark. */
TEST_CASE(as_long_as_it_lasts_the_mark_stays)
{
	ask_and_decide();
	world.marked = false;
	clock_start_decide(&service);
	assert_true(world.marked);
}

/* The mark of an earlier process that ended before it could compare its clock. */
TEST_CASE(a_mark_that_was_left_is_ended)
{
	world.marked = true;
	world.answers = 0;
	ask_and_decide();
	assert_false(world.marked);
	assert_int_equal(world.until_us, NOW);
}

TEST_CASE(what_cannot_be_kept_is_no_outcome)
{
	world.store_result = ERR_UNAVAILABLE;
	ask_and_decide();
	expect_refused("being compared");
	expect_logged(1, LOG_WARNING, "clock_comparison_not_recorded", "cause");
	world.answers = 0;
	ask_and_decide();
	expect_refused("being compared");
	world.store_result = OK;
	clock_start_decide(&service);
	expect_accepted();
}

TEST_CASE(a_copy_that_is_quiet_asks_nobody)
{
	atomic_store(&service.read_only_since_us, 1);
	ask_and_decide();
	assert_int_equal(world.asked, 0);
	assert_int_equal(service_clock_ready(&service, NULL), OK);
	world.boot_us += 3600 * SECOND;
	clock_start_decide(&service);
	atomic_store(&service.read_only_since_us, 0);
	clock_start_decide(&service);
	expect_refused("being compared");
	world.answers = 0;
	ask_and_decide();
	expect_accepted();
}

TEST_CASE(a_service_that_stops_asks_no_more)
{
	int64_t pause_us;
	(void)clock_start_query(&service, &stops, &pause_us);
	assert_int_equal(world.asked, 0);
}

TEST_CASE(failures_of_a_query_are_logged)
{
	int64_t pause_us;
	world.fails = true;
	assert_true(clock_start_query(&service, &goes_on, &pause_us));
	assert_int_equal(logged.count, AUTHORITIES);
	assert_string_equal(logged.event, "authority_failed");
	assert_string_equal(logged.fields, "authority=one reason=HTTP 401 ");
}

TEST_CASE(its_refusals_are_no_chains_fault)
{
	struct registration refused = {.account = 12, .chain = 34};
	assert_false(service_log_clock_refusal(&service, &refused));
	assert_int_equal(logged.count, 0);
}

TEST_MAIN_EACH(set_up, NULL)
