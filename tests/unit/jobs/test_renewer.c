/* What the renewer makes of how a pass ends: what passes by itself, and what an operator hears of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs/internal.h"
#include "sample.h"
#include "evidence/renewal.h"

static struct sample sample;
static struct settings settings;
static struct service service;
static struct renewer renewer;
static struct error error;
static atomic_bool stopping;
static int outcome; /* of each pass */
static int passes;

int __wrap_renewal_pass(const struct renewal *renewal, struct error *why);
int __wrap_renewal_pass(const struct renewal *renewal, struct error *why)
{
	(void)renewal;
	passes++;
	return outcome ? error_cause(why, outcome, "as told") : OK;
}

static int set_up(void **state)
{
	struct keeper *keeper;
	(void)state;
	sample_open(&sample, MODALITY_HASH_ONLY, 0);
	settings = (struct settings){.evidence_interval = 3600 * US_PER_SECOND};
	service = (struct service){.settings = &settings, .store = sample.store};
	assert_int_equal(keeper_start(&keeper, &error), OK);
	renewer_init(&renewer, &service, "node", keeper);
	atomic_store(&stopping, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	keeper_end(renewer.lease.keeper);
	sample_close(&sample);
	return 0;
}

/* After a pass that ends so: how long it pauses, and how many failures were counted by then. */
static void expect_run(int result, int64_t seconds, int64_t failures)
{
	outcome = result;
	assert_int_equal(renewer_run(&renewer, &stopping), seconds * US_PER_SECOND);
	assert_int_equal(atomic_load(&service.counters.evidence_failures), failures);
}

static void failures_are_counted(void **state)
{
	(void)state;
	expect_run(OK, 3600, 0);
	expect_run(ERR_AUTHORITY, 1, 1);
	expect_run(ERR_AUTHORITY, 2, 2);
	expect_run(OK, 3600, 2);
	expect_run(ERR_IO, 1, 3);
}

/* Once, another node was faster. */
static void refused_again_is_a_failure(void **state)
{
	(void)state;
	expect_run(ERR_REFUSED, 1, 0);
	expect_run(ERR_REFUSED, 1, 1);
	expect_run(ERR_REFUSED, 2, 2);
	expect_run(ERR_REFUSED, 4, 3);
	expect_run(OK, 3600, 3);
	expect_run(ERR_REFUSED, 1, 3);
}

static void whoever_stops_does_not_fail(void **state)
{
	(void)state;
	atomic_store(&stopping, true);
	for (int i = 0; i < 3; i++)
		expect_run(ERR_REFUSED, 1, 0);
}

/* A copy renews nothing, and takes no lease, until it is woken. */
static void a_quiet_store_is_left_alone(void **state)
{
	(void)state;
	passes = 0;
	atomic_store(&service.quiet_since_us, 1);
	expect_run(OK, 1, 0);
	assert_int_equal(passes, 0);
	atomic_store(&service.quiet_since_us, 0);
	expect_run(OK, 3600, 0);
	assert_int_equal(passes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(failures_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused_again_is_a_failure, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whoever_stops_does_not_fail, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_quiet_store_is_left_alone, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
