#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIGNMENT 16
#define BLOCK_FIRST ((size_t)4096)
#define BLOCK_LARGEST ((size_t)256 * 1024)

struct arena_block {
	struct arena_block *older;
	size_t size; /* of data */
	size_t used;
	_Alignas(ALIGNMENT) char data[];
};

void arena_init(struct arena *arena, size_t limit)
{
	*arena = (struct arena){.limit = limit};
}

void arena_init_counted(struct arena *arena, size_t limit, struct budget *budget, unsigned kind)
{
	*arena = (struct arena){.limit = limit, .budget = budget, .kind = kind};
}

static void free_blocks(struct arena *arena, struct arena_block *block)
{
	size_t freed = 0;
	while (block) {
		struct arena_block *older = block->older;
		freed += sizeof *block + block->size;
		free(block);
		block = older;
	}
	assert(freed <= arena->held);
	arena->held -= freed;
	budget_give(arena->budget, arena->kind, freed);
}

void arena_free(struct arena *arena)
{
	if (!arena)
		return;
	free_blocks(arena, arena->newest);
	free_blocks(arena, arena->spare);
	arena->newest = arena->spare = NULL;
	arena->used = 0;
}

void arena_keep(struct arena *arena, size_t size)
{
	arena->kept_max = size;
}

/* Keeps the blocks as spare ones while all are within the limit, and frees the others. */
static void keep_blocks(struct arena *arena, struct arena_block *block)
{
	while (block) {
		struct arena_block *older = block->older;
		block->older = NULL;
		if (arena->held > arena->kept_max) {
			free_blocks(arena, block);
		} else {
			block->older = arena->spare;
			arena->spare = block;
		}
		block = older;
	}
}

void arena_reset(struct arena *arena)
{
	if (arena->newest) {
		keep_blocks(arena, arena->newest->older);
		arena->newest->older = NULL;
		arena->newest->used = 0;
	}
	arena->used = 0;
}

/* Returns whether a spare block had the size. */
static bool use_spare(struct arena *arena, size_t need)
{
	struct arena_block *block = arena->spare;
	if (!block || block->size < need)
		return false;
	arena->spare = block->older;
	block->older = arena->newest;
	block->used = 0;
	arena->newest = block;
	return true;
}

static bool add_block(struct arena *arena, size_t need)
{
	if (use_spare(arena, need))
		return true;
	size_t size = arena->newest ? arena->newest->size * 2 : BLOCK_FIRST;
	if (size > BLOCK_LARGEST)
		size = BLOCK_LARGEST;
	if (size < need)
		size = need;
	struct arena_block *block = NULL;
	if (budget_take(arena->budget, arena->kind, sizeof *block + size)) {
		block = malloc(sizeof *block + size);
		if (!block)
			budget_give(arena->budget, arena->kind, sizeof *block + size);
	}
	if (!block)
		return false;
	arena->held += sizeof *block + size;
	block->older = arena->newest;
	block->size = size;
	block->used = 0;
	arena->newest = block;
	return true;
}

bool arena_has(const struct arena *arena, const void *data)
{
	for (const struct arena_block *block = arena->newest; block; block = block->older)
		if ((uintptr_t)data >= (uintptr_t)block->data &&
		    (uintptr_t)data - (uintptr_t)block->data < block->size)
			return true;
	return false;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	if (size > SIZE_MAX / 2)
		return NULL;
	size_t rounded = size ? (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1) : ALIGNMENT;
	if (arena->used > arena->limit || rounded > arena->limit - arena->used)
		return NULL;
	struct arena_block *block = arena->newest;
	if (!block || rounded > block->size - block->used) {
		if (!add_block(arena, rounded))
			return NULL;
		block = arena->newest;
	}
	char *data = block->data + block->used;
	block->used += rounded;
	arena->used += rounded;
	return memset(data, 0, rounded);
}

char *arena_copy(struct arena *arena, const void *data, size_t size)
{
	if (size == SIZE_MAX)
		return NULL;
	char *copy = arena_alloc(arena, size + 1);
	if (copy && size)
		memcpy(copy, data, size);
	return copy;
}

char *arena_text(struct arena *arena, const char *text)
{
	return arena_copy(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int size = vsnprintf(NULL, 0, format, list);
	va_end(list);
	if (size < 0)
		return NULL;
	char *text = arena_alloc(arena, (size_t)size + 1);
	if (!text)
		return NULL;
	va_start(list, format);
	vsnprintf(text, (size_t)size + 1, format, list);
	va_end(list);
	return text;
}
