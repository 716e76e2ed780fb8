/* How the renewer treats the result of a pass: which faults it retries, and which it reports to the
 * operator. */
#include "testing.h"
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
	struct lease_renewer *lease_renewer;
	sample_open(&sample, MODALITY_HASH_ONLY, 0);
	settings = (struct settings){.evidence_interval = 3600 * US_PER_SECOND};
	service = (struct service){.settings = &settings, .store = sample.store};
	assert_int_equal(lease_renewer_start(&lease_renewer, &error), OK);
	renewer_init(&renewer, &service, "node", lease_renewer);
	atomic_store(&stopping, false);
	return 0;
}

static int tear_down(void **state)
{
	lease_renewer_stop(renewer.lease.lease_renewer);
	sample_close(&sample);
	return 0;
}

/* After a pass with that result: how long it pauses, and how many failures are counted. */
static void expect_run(int result, int64_t seconds, int64_t failures)
{
	outcome = result;
	assert_int_equal(renewer_run(&renewer, &stopping), seconds * US_PER_SECOND);
	assert_int_equal(atomic_load(&service.counters.evidence_failures), failures);
}

TEST_CASE(failures_are_counted)
{
	expect_run(OK, 3600, 0);
	expect_run(ERR_AUTHORITY, 1, 1);
	expect_run(ERR_AUTHORITY, 2, 2);
	expect_run(OK, 3600, 2);
	expect_run(ERR_IO, 1, 3);
}

/* A single refusal means that another node was faster. */
TEST_CASE(refused_again_is_a_failure)
{
	expect_run(ERR_REFUSED, 1, 0);
	expect_run(ERR_REFUSED, 1, 1);
	expect_run(ERR_REFUSED, 2, 2);
	expect_run(ERR_REFUSED, 4, 3);
	expect_run(OK, 3600, 3);
	expect_run(ERR_REFUSED, 1, 3);
}

TEST_CASE(whoever_stops_does_not_fail)
{
	atomic_store(&stopping, true);
	for (int i = 0; i < 3; i++)
		expect_run(ERR_REFUSED, 1, 0);
}

/* A read-only copy renews nothing and takes no lease until it is resumed. */
TEST_CASE(a_quiet_store_is_left_alone)
{
	passes = 0;
	atomic_store(&service.read_only_since_us, 1);
	expect_run(OK, 1, 0);
	assert_int_equal(passes, 0);
	atomic_store(&service.read_only_since_us, 0);
	expect_run(OK, 3600, 0);
	assert_int_equal(passes, 1);
}

TEST_MAIN_EACH(set_up, tear_down)
