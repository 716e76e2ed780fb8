#include "tools/fault_plan.h"

#include "tools/api.h"

static const char *const texts[FAULT_COUNT] = {"pass", "lost", "unavailable", "half", "hang"};

const char *fault_text(enum fault fault)
{
	return texts[fault];
}

static int find_fault(struct slice word)
{
	for (int i = 0; i < FAULT_COUNT; i++)
		if (slice_is(word, texts[i]))
			return i;
	return slice_is(word, "503") ? FAULT_UNAVAILABLE : -1;
}

int fault_plan_script(struct fault_plan *plan, const char *text, struct error *error)
{
	while (*text) {
		size_t size = strcspn(text, ",");
		int fault = find_fault(slice_make(text, size));
		if (fault < 0)
			return tool_fail(error, ERR_USAGE,
			                 "--script has '%.*s'; it may have pass, lost, unavailable (or 503), "
			                 "half and hang, separated by commas.",
			                 (int)(size < 40 ? size : 40), text);
		if (plan->script_size == FAULT_SCRIPT_MAX)
			return tool_fail(error, ERR_USAGE, "--script has more than %d words.",
			                 FAULT_SCRIPT_MAX);
		plan->script[plan->script_size++] = (unsigned char)fault;
		text += size + (text[size] == ',');
	}
	return 0;
}

/* A number from 0 to 1 (splitmix64). */
static double draw(struct fault_plan *plan)
{
	uint64_t value = plan->seed + ++plan->drawn * UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	value ^= value >> 31;
	return (double)(value >> 11) * 0x1p-53;
}

enum fault fault_plan_next(struct fault_plan *plan)
{
	if (plan->script_used < plan->script_size)
		return (enum fault)plan->script[plan->script_used++];
	double left = draw(plan);
	for (int i = FAULT_PASS + 1; i < FAULT_COUNT; i++) {
		if (left < plan->probability[i])
			return (enum fault)i;
		left -= plan->probability[i];
	}
	return FAULT_PASS;
}
