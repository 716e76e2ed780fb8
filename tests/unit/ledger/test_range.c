/* certification_range_check: exactly one whole pair, not inverted, within the chain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ledger/ledger.h"

static void ranges(void **state)
{
	static const struct {
		struct certification_range range;
		int expected;
	} rows[] = {
		{{TIME_NONE, TIME_NONE, 1, 10}, OK},
		{{TIME_NONE, TIME_NONE, 10, 10}, OK},
		{{TIME_NONE, TIME_NONE, 1, 11}, ERR_VALIDATION},
		{{TIME_NONE, TIME_NONE, 3, 2}, ERR_VALIDATION},
		{{TIME_NONE, TIME_NONE, -1, 2}, ERR_VALIDATION},
		{{TIME_NONE, TIME_NONE, 1, 0}, ERR_VALIDATION},
		{{TIME_NONE, TIME_NONE, 0, 0}, ERR_VALIDATION},
		{{100, 200, 0, 0}, OK},
		{{200, 200, 0, 0}, ERR_VALIDATION},
		{{300, 200, 0, 0}, ERR_VALIDATION},
		{{100, TIME_NONE, 0, 0}, ERR_VALIDATION},
		{{100, 200, 1, 2}, ERR_VALIDATION},
		{{100, 200, 1, 0}, ERR_VALIDATION},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error error;
		error_clear(&error);
		assert_int_equal(certification_range_check(&rows[i].range, 10, &error), rows[i].expected);
		assert_int_equal(error.code, rows[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ranges)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
