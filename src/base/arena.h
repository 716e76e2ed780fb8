/* Arena allocator for memory with the lifetime of a request, a batch or a job.
 *
 * Allocations are 16-byte aligned and zeroed, and cannot be freed individually. A hard limit bounds
 * their sum. Not thread safe. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/budget.h"
#include "base/buf.h"
#include "base/must_check.h"

struct arena_block;

struct arena {
	struct arena_block *newest;
	struct arena_block *spare; /* kept for the next allocations */
	size_t kept_max;           /* bytes that arena_reset keeps; at least one block is kept */
	size_t used;               /* bytes handed out */
	size_t limit;
	size_t held;           /* bytes of all blocks, as counted in the budget */
	struct budget *budget; /* NULL: none */
	unsigned kind;
};

void arena_init(struct arena *arena, size_t limit);
/* As arena_init, but counts the blocks in `budget`, which must outlive the arena. */
void arena_init_counted(struct arena *arena, size_t limit, struct budget *budget, unsigned kind);
/* Frees all memory. The arena can be used again with the same limit and budget. NULL-safe. */
void arena_free(struct arena *arena);
/* Discards all allocations and keeps one block for reuse, or as many as arena_keep allows. */
void arena_reset(struct arena *arena);
/* Keeps up to `size` bytes of blocks at each arena_reset, for an arena that is often filled. */
void arena_keep(struct arena *arena, size_t size);
/* Returns whether `data` points into the arena. */
bool arena_has(const struct arena *arena, const void *data) MUST_CHECK;
/* Returns zeroed memory, or NULL when the limit or the budget is exceeded or memory is
 * exhausted. */
void *arena_alloc(struct arena *arena, size_t size) MUST_CHECK;
/* These three return a NUL-terminated copy, or NULL as arena_alloc. */
char *arena_copy(struct arena *arena, const void *data, size_t size) MUST_CHECK;
char *arena_text(struct arena *arena, const char *text) MUST_CHECK;
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3))) MUST_CHECK;

#define ARENA_AUTO __attribute__((cleanup(arena_free)))

#endif
