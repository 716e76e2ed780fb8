#include <stdlib.h>

#include "testing.h"
#include "base/tuned.h"

TEST_CASE(a_build_with_tests_reads_values_by_their_whole_name)
{
	setenv("TORTURE_SIZES", "batch_max=7,batch=3,queue=0,cache=-1", 1);
	assert_int_equal(tuned("batch", 1024), 3);
	assert_int_equal(tuned("batch_max", 1024), 7);
	assert_int_equal(tuned("max", 1024), 1024);
	assert_int_equal(tuned("queue", 1024), 1024);
	assert_int_equal(tuned("cache", 1024), 1024);
	unsetenv("TORTURE_SIZES");
	assert_int_equal(tuned("batch", 1024), 1024);
}

TEST_CASE(a_value_exceeds_no_array)
{
	setenv("TORTURE_SIZES", "batch=5", 1);
	assert_int_equal(tuned_up_to("batch", 1024), 5);
	assert_int_equal(tuned_up_to("batch", 4), 4);
	assert_int_equal(tuned_up_to("queue", 4), 4);
	unsetenv("TORTURE_SIZES");
}

TEST_MAIN(NULL, NULL)
