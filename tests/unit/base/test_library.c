/* Libraries that are loaded at first use: only once, and with a cause when they cannot be
 * loaded. */

#include "testing.h"
#include "base/library.h"

static double (*hypot_loaded)(double x, double y);
static const struct library_function functions[] = {{"hypot", (void **)&hypot_loaded}};

TEST_CASE(test_called)
{
	struct library library = {"libm.so.6", functions, 1, false};
	struct error error;
	volatile double three = 3;
	assert_null(hypot_loaded);
	assert_int_equal(library_load(&library, &error), OK);
	assert_true(hypot_loaded(three, 4) == 5);
	assert_int_equal(library_load(&library, NULL), OK);
}

TEST_CASE(test_absent)
{
	struct library library = {"libabsent.so.1", functions, 1, false};
	struct error error;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(library_load(&library, &error), ERR_UNAVAILABLE);
		assert_non_null(strstr(error.cause, "libabsent.so.1"));
	}
}

TEST_CASE(test_another)
{
	static void *place;
	static const struct library_function more[] = {{"hypot", &place}, {"no_such_function", &place}};
	struct library library = {"libm.so.6", more, 2, false};
	struct error error;
	assert_int_equal(library_load(&library, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error.cause, "no_such_function"));
}

TEST_MAIN(NULL, NULL)
