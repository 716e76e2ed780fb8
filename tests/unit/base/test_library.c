/* Libraries that are loaded at their first use: once, and with a cause when they cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/library.h"

#define ALL(FUNCTION) FUNCTION(double, hypot, (double a, double b), (a, b))

LIBRARY_FUNCTIONS(ALL)

static const struct library_function functions[] = {ALL(LIBRARY_ROW)};

static void test_called(void **state)
{
	struct library library = {"libm.so.6", functions, 1, false};
	struct error error;
	volatile double three = 3;
	assert_null(hypot_loaded);
	assert_int_equal(library_load(&library, &error), OK);
	assert_ptr_not_equal(hypot_loaded, hypot);
	assert_true(hypot(three, 4) == 5);
	assert_int_equal(library_load(&library, NULL), OK);
}

static void test_absent(void **state)
{
	struct library library = {"libabsent.so.1", functions, 1, false};
	struct error error;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(library_load(&library, &error), ERR_UNAVAILABLE);
		assert_non_null(strstr(error.cause, "libabsent.so.1"));
	}
}

static void test_another(void **state)
{
	static void *place;
	static const struct library_function more[] = {{"hypot", &place}, {"no_such_function", &place}};
	struct library library = {"libm.so.6", more, 2, false};
	struct error error;
	assert_int_equal(library_load(&library, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error.cause, "no_such_function"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_called),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
