#include "tlog/frontier.h"

#include <assert.h>

#define LEVELS 54

int frontier_read(const struct merkle_source *source, uint64_t size, struct frontier *ret,
                  struct error *error)
{
	uint64_t first = 0;
	assert(size <= MERKLE_SIZE_MAX);
	*ret = (struct frontier){.size = size};
	for (unsigned level = LEVELS; level-- > 0;) {
		if (!(size >> level & 1))
			continue;
		int result =
			source->read(source->context, level, first >> level, &ret->hashes[ret->count], error);
		if (result)
			return result;
		ret->count++;
		first += UINT64_C(1) << level;
	}
	return OK;
}

void frontier_add(struct frontier *frontier, const struct sha256 *leaf)
{
	struct sha256 hash = *leaf;
	assert(frontier->size < MERKLE_SIZE_MAX);
	for (uint64_t size = frontier->size; size & 1; size >>= 1) {
		frontier->count--;
		hash = merkle_node(&frontier->hashes[frontier->count], &hash);
	}
	frontier->hashes[frontier->count++] = hash;
	frontier->size++;
}

struct sha256 frontier_root(const struct frontier *frontier)
{
	if (frontier->count == 0)
		return merkle_empty_root();
	struct sha256 hash = frontier->hashes[frontier->count - 1];
	for (size_t i = frontier->count - 1; i-- > 0;)
		hash = merkle_node(&frontier->hashes[i], &hash);
	return hash;
}
