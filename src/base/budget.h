/* What one holder may have of memory that many share: an allowance, which costs nothing to use, and
 * beyond it what a source grants, in steps. Arenas and buffers take from the budget that they are
 * given when they grow, and give back what they free; one that is refused fails as it does when
 * memory is gone.
 *
 * A budget belongs to one thread at a time, as what it counts does. A source may serve many
 * budgets, each in its thread. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must_check.h"

#define BUDGET_STEP ((size_t)16 * 1024)
#define BUDGET_KINDS 4

struct budget;

/* Both are called with multiples of BUDGET_STEP, at least one. */
struct budget_source {
	/* False: it cannot be had now, and nothing was taken. */
	bool (*take)(struct budget *budget, unsigned kind, size_t size);
	void (*give)(struct budget *budget, unsigned kind, size_t size);
};

struct budget {
	const struct budget_source *source; /* NULL: the allowance is all */
	size_t allowance;                   /* bytes */
	size_t held;
	size_t reserved;                  /* what `held` may become without asking the source: */
	size_t reserve;                   /* at most this much beyond `held` */
	size_t granted;                   /* by the source: the sum of the following */
	size_t granted_for[BUDGET_KINDS]; /* by the kind of what asked */
	bool refused;                     /* something was, since this was last made false */
};

/* The general case of budget_take. */
bool budget_take_slowly(struct budget *budget, unsigned kind, size_t size) MUST_CHECK;
/* `size` bytes more; NULL: no budget, and so always true. False: it may not have them. */
static inline bool budget_take(struct budget *budget, unsigned kind, size_t size)
{
	if (!budget)
		return true;
	if (size > budget->allowance + budget->granted - budget->held)
		return budget_take_slowly(budget, kind, size);
	budget->held += size;
	return true;
}
/* `size` bytes less, of those that were taken. */
void budget_give_slowly(struct budget *budget, unsigned kind, size_t size);
static inline void budget_give(struct budget *budget, unsigned kind, size_t size)
{
	if (!budget)
		return;
	if (budget->granted || size > budget->held)
		budget_give_slowly(budget, kind, size);
	else
		budget->held -= size;
}
/* That `size` bytes beyond those held can be taken without being refused, however often some are
 * given back, until budget_release; never more than that is kept ready. False: they cannot, and
 * nothing changed. */
bool budget_reserve(struct budget *budget, unsigned kind, size_t size) MUST_CHECK;
void budget_release(struct budget *budget);

#endif
