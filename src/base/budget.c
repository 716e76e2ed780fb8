#include "base/budget.h"

#include <assert.h>
#include <stdint.h>

static size_t steps(size_t size)
{
	return (size + BUDGET_STEP - 1) / BUDGET_STEP * BUDGET_STEP;
}

/* Makes the allowance and the grants cover `size` bytes in total. */
static bool make_room(struct budget *budget, unsigned kind, size_t size)
{
	size_t room = budget->allowance + budget->granted;
	if (size <= room)
		return true;
	size_t more = steps(size - room);
	if (!budget->source || !budget->source->take(budget, kind, more)) {
		budget->refused = true;
		return false;
	}
	budget->granted += more;
	budget->granted_for[kind] += more;
	return true;
}

static void return_grants(struct budget *budget, unsigned kind, size_t *excess)
{
	size_t size = budget->granted_for[kind] < *excess ? budget->granted_for[kind] : *excess;
	if (!size)
		return;
	assert(size <= budget->granted);
	budget->granted -= size;
	budget->granted_for[kind] -= size;
	*excess -= size;
	budget->source->give(budget, kind, size);
}

/* Returns the grants that are no longer needed, those of `kind` first. */
static void return_excess(struct budget *budget, unsigned kind)
{
	size_t needed = budget->held > budget->reserved ? budget->held : budget->reserved;
	size_t granted = needed > budget->allowance ? steps(needed - budget->allowance) : 0;
	size_t excess = budget->granted > granted ? budget->granted - granted : 0;
	return_grants(budget, kind, &excess);
	for (unsigned other = 0; other < BUDGET_KINDS; other++)
		return_grants(budget, other, &excess);
}

bool budget_take_slowly(struct budget *budget, unsigned kind, size_t size)
{
	assert(kind < BUDGET_KINDS);
	if (size > SIZE_MAX / 4 || !make_room(budget, kind, budget->held + size)) {
		budget->refused = true;
		return false;
	}
	budget->held += size;
	return true;
}

void budget_give_slowly(struct budget *budget, unsigned kind, size_t size)
{
	assert(kind < BUDGET_KINDS && size <= budget->held);
	budget->held -= size;
	if (budget->reserved > budget->held + budget->reserve)
		budget->reserved = budget->held + budget->reserve;
	return_excess(budget, kind);
}

bool budget_reserve(struct budget *budget, unsigned kind, size_t size)
{
	if (size > SIZE_MAX / 4 || !make_room(budget, kind, budget->held + size))
		return false;
	if (budget->reserved < budget->held + size)
		budget->reserved = budget->held + size;
	if (budget->reserve < size)
		budget->reserve = size;
	return true;
}

void budget_release(struct budget *budget)
{
	budget->reserved = budget->reserve = 0;
	if (budget->granted)
		return_excess(budget, 0);
}
