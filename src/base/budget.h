/* Memory budget of one holder, for example a connection, out of memory that many holders share.
 *
 * A budget has an allowance, which is always available. Beyond the allowance it requests grants
 * from a source, in steps of BUDGET_STEP. An arena or a buffer takes from its budget when it grows
 * and gives back what it frees. A refused request fails like an allocation without memory.
 *
 * A budget is used by one thread at a time, like the arenas and buffers that it counts. A source
 * may serve budgets of several threads. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must_check.h"

#define BUDGET_STEP ((size_t)16 * 1024)
#define BUDGET_KINDS 4

struct budget;

/* `size` is a positive multiple of BUDGET_STEP in both functions. */
struct budget_source {
	/* Returns false if the memory is unavailable; nothing was taken then. */
	bool (*take)(struct budget *budget, unsigned kind, size_t size);
	void (*give)(struct budget *budget, unsigned kind, size_t size);
};

struct budget {
	const struct budget_source *source; /* NULL: only the allowance is available */
	size_t allowance;                   /* bytes */
	size_t held;
	size_t reserved; /* `held` may grow to this value without a request to the source */
	size_t reserve;  /* bytes that `reserved` may exceed `held` by */
	size_t granted;  /* by the source: the sum of granted_for */
	size_t granted_for[BUDGET_KINDS]; /* granted, by kind of the requester */
	bool refused;                     /* a request was refused since this was last reset */
};

/* The slow path of budget_take. */
bool budget_take_slowly(struct budget *budget, unsigned kind, size_t size) MUST_CHECK;
/* Takes `size` bytes. Returns false if they are unavailable. A NULL budget is unlimited. */
static inline bool budget_take(struct budget *budget, unsigned kind, size_t size)
{
	if (!budget)
		return true;
	if (size > budget->allowance + budget->granted - budget->held)
		return budget_take_slowly(budget, kind, size);
	budget->held += size;
	return true;
}
/* Gives back `size` bytes that were taken before. budget_give_slowly is the slow path. */
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
/* Reserves `size` bytes beyond those held. Until budget_release they can be taken without refusal,
 * however often some are given back. No more than that is kept granted. Returns false, with no
 * change, if they are unavailable. */
bool budget_reserve(struct budget *budget, unsigned kind, size_t size) MUST_CHECK;
void budget_release(struct budget *budget);

#endif
