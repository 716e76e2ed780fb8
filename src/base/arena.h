/* Memory that dies together: an arena for a request, a batch or a job.
 *
 * Allocations are 16-byte aligned, zeroed, and cannot be freed singly. A hard limit bounds the sum.
 * Not thread safe. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/budget.h"
#include "base/buf.h"
#include "base/must_check.h"

struct arena_block;

struct arena {
	struct arena_block *newest;
	size_t used; /* bytes handed out */
	size_t limit;
	size_t held;           /* bytes of its blocks, which the budget counts */
	struct budget *budget; /* NULL: none */
	unsigned kind;
};

void arena_init(struct arena *arena, size_t limit);
/* The same, with its blocks counted in a budget that outlives it. */
void arena_init_counted(struct arena *arena, size_t limit, struct budget *budget, unsigned kind);
/* Frees everything; NULL-safe; the arena can be used again under the same limit and budget. */
void arena_free(struct arena *arena);
/* Forgets all allocations but keeps one block for the next use. */
void arena_reset(struct arena *arena);
/* Whether the bytes at `data` lie in it. */
bool arena_has(const struct arena *arena, const void *data) MUST_CHECK;
/* NULL when the limit would be passed, the budget refuses, or memory is gone. */
void *arena_alloc(struct arena *arena, size_t size) MUST_CHECK;
/* Copies with a NUL behind. */
char *arena_copy(struct arena *arena, const void *data, size_t size) MUST_CHECK;
char *arena_text(struct arena *arena, const char *text) MUST_CHECK;
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3))) MUST_CHECK;

#define ARENA_AUTO __attribute__((cleanup(arena_free)))

#endif
