/* The choice of faults. */
#include "testing.h"
#include "tools/fault_plan.h"

static struct fault_plan plan;

TEST_CASE(a_script_comes_first)
{
	plan = (struct fault_plan){0};
	assert_int_equal(fault_plan_script(&plan, "lost,pass,503,unavailable,half,hang", NULL), 0);
	const enum fault expected[] = {FAULT_LOST, FAULT_PASS, FAULT_UNAVAILABLE, FAULT_UNAVAILABLE,
	                               FAULT_HALF, FAULT_HANG, FAULT_PASS,        FAULT_PASS};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
		assert_int_equal(fault_plan_next(&plan), expected[i]);
}

TEST_CASE(an_unknown_word_is_named)
{
	struct error error = {0};
	plan = (struct fault_plan){0};
	assert_int_equal(fault_plan_script(&plan, "lost,explode,half", &error), ERR_USAGE);
	assert_non_null(strstr(error.english, "'explode'"));
	assert_int_equal(fault_plan_script(&plan, "lost,,half", &error), ERR_USAGE);
}

TEST_CASE(a_script_has_a_maximum)
{
	static char text[5 * (FAULT_SCRIPT_MAX + 1) + 1];
	for (size_t i = 0; i <= FAULT_SCRIPT_MAX; i++)
		memcpy(text + 5 * i, "lost,", 6);
	plan = (struct fault_plan){0};
	assert_int_equal(fault_plan_script(&plan, text, NULL), ERR_USAGE);
}

TEST_CASE(a_seed_gives_the_shares)
{
	unsigned counts[FAULT_COUNT] = {0};
	plan = (struct fault_plan){.seed = 1};
	plan.probability[FAULT_LOST] = 0.5;
	plan.probability[FAULT_HANG] = 0.25;
	for (int i = 0; i < 10000; i++)
		counts[fault_plan_next(&plan)]++;
	assert_in_range(counts[FAULT_LOST], 4800, 5200);
	assert_in_range(counts[FAULT_HANG], 2300, 2700);
	assert_in_range(counts[FAULT_PASS], 2300, 2700);
	assert_int_equal(counts[FAULT_UNAVAILABLE] + counts[FAULT_HALF], 0);
}

TEST_CASE(certainty_is_certain)
{
	plan = (struct fault_plan){.seed = 2};
	plan.probability[FAULT_HALF] = 1;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(fault_plan_next(&plan), FAULT_HALF);
}

TEST_MAIN(NULL, NULL)
