/* The start of the jobs, while one call after another fails: all run, or none does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

static int tear_down(void **state)
{
	office_close(&office);
	return 0;
}

static void jobs_start_or_say_why_not(void **state)
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
	assert_true(faults > 13); /* each of the threads, for one */
	struct jobs *jobs;
	office.settings.webhook_schedule = "soon";
	assert_int_equal(jobs_start(&office.service, &jobs, &error), ERR_VALIDATION);
	office.settings.webhook_schedule = "1m";
	office.settings.mail_schedule = "soon";
	assert_int_equal(jobs_start(&office.service, &jobs, &error), ERR_VALIDATION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(jobs_start_or_say_why_not, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, office_start_signer, office_stop_signer);
}
