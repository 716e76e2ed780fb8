#include "tlog/batch_tree.h"

#include <assert.h>

struct sha256 batch_tree_build(struct batch_tree *tree)
{
	assert(tree->count >= 1 && tree->count <= BATCH_TREE_LEAVES_MAX);
	struct sha256 *level = tree->nodes;
	for (size_t count = tree->count; count > 1; count = (count + 1) / 2) {
		struct sha256 *above = level + count;
		for (size_t i = 0; i + 1 < count; i += 2)
			above[i / 2] = merkle_node(&level[i], &level[i + 1]);
		if (count % 2 == 1)
			above[count / 2] = level[count - 1];
		level = above;
	}
	return *level;
}

size_t batch_tree_path(const struct batch_tree *tree, size_t index,
                       struct sha256 path[BATCH_TREE_PATH_MAX])
{
	assert(index < tree->count);
	const struct sha256 *level = tree->nodes;
	size_t used = 0;
	for (size_t count = tree->count; count > 1; count = (count + 1) / 2, index /= 2) {
		size_t sibling = index ^ 1;
		if (sibling < count) {
			assert(used < BATCH_TREE_PATH_MAX);
			path[used++] = level[sibling];
		}
		level += count;
	}
	return used;
}
