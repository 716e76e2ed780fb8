/* The start of the jobs, with each call failing in turn: all run, or none does. */
#include "testing.h"
#include "failing.h"
#include "jobs/jobs.h"
#include "office.h"

static struct office office;
static struct error error;

static int set_up(void **state)
{
	office_open(&office, MODALITY_HASH_ONLY, 1000000);
	return 0;
}

TEST_CASE(jobs_start_or_say_why_not)
{
	const unsigned kinds = FAILING_MEMORY | FAILING_FILES | FAILING_PARTS | FAILING_SYSTEM;
	int faults = 0;
	for (int at = 1;; at++) {
		struct jobs *jobs = NULL;
		failing_arm(kinds, at);
		int result = jobs_start(&office.service, &jobs, &error);
		const char *failed = failing_disarm();
		if (result && (!failed || !failing_is_fault(result)))
			fail_msg("call %d, %s: %d %s", at, failed ? failed : "none", result,
			         error_reason(&error, result));
		assert_true(!result == (office.service.wake != NULL));
		if (result) {
			assert_null(jobs);
			faults++;
		}
		jobs_stop(jobs);
		assert_null(office.service.wake_context);
		if (!failed)
			break;
	}
	assert_true(faults > 13); /* one for each thread */
	struct jobs *jobs;
	office.settings.webhook_schedule = "soon";
	assert_int_equal(jobs_start(&office.service, &jobs, &error), ERR_VALIDATION);
	office.settings.webhook_schedule = "1m";
	office.settings.mail_schedule = "soon";
	assert_int_equal(jobs_start(&office.service, &jobs, &error), ERR_VALIDATION);
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, office_tear_down);
}
