/* Evidence is made and verified while one call after another fails: memory, files, OpenSSL. What
 * fails is told, never taken for evidence that is good or bad, and nothing is left half done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "failing.h"
#include "test_archive_fixture.h"

static struct fixture fixture;

static const struct fixture_plan plan = {.mode = MODE_LIVE, .total = 5, .first = 2, .last = 4,
                                         .segment_size = 2, .content = true};

static int set_up(void **state)
{
	(void)state;
	fixture_open(&fixture);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_close(&fixture);
	return 0;
}

static void verifies_or_says_that_it_could_not(void **state)
{
	(void)state;
	struct fixture_archive made;
	assert_int_equal(fixture_make(&fixture, "verified", &plan, &made), 0);
	const char *paths[] = {made.path, made.part_paths[0]};
	int failures = 0;
	for (int at = 1;; at++) {
		struct verify_result result = {0};
		struct error error = {0};
		failing_arm(FAILING_MEMORY | FAILING_FILES | FAILING_OPENSSL, at);
		int code = verify_paths(paths, 2, &fixture.roots, NULL, &result, &error);
		const char *failed = failing_disarm();
		int exit_code = code < 0 ? 2 : verify_exit_code(&result);
		if (!failed) {
			assert_int_equal(exit_code, 0);
			verify_result_free(&result);
			break;
		}
		failures++;
		if (exit_code != 2)
			print_message("call %d, %s: %s: %s\n", at, failed, exit_code ? "not valid" : "VALID",
			              result.first ? result.first->what : "?");
		verify_result_free(&result);
	}
	print_message("%d calls failed in turn\n", failures);
	assert_true(failures > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verifies_or_says_that_it_could_not),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
