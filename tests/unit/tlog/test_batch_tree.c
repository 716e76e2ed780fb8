#include "testing.h"

#include "tlog/batch_tree.h"

/* Paths of trees of many sizes lead from each leaf to the root, by the rule of RFC 9162. */
TEST_CASE(test_every_path)
{
	static struct batch_tree tree;
	for (size_t count = 1; count <= BATCH_TREE_LEAVES_MAX; count += count < 70 ? 1 : 159) {
		tree.count = count;
		for (uint32_t i = 0; i < count; i++)
			tree.nodes[i] = merkle_leaf(slice_make(&i, sizeof i));
		const struct sha256 root = batch_tree_build(&tree);
		for (uint32_t i = 0; i < count; i++) {
			const struct sha256 leaf = merkle_leaf(slice_make(&i, sizeof i));
			struct merkle_path path;
			path.count = batch_tree_path(&tree, i, path.hashes);
			assert_true(path.count <= BATCH_TREE_PATH_MAX);
			assert_true(merkle_is_included(&leaf, i, count, &path, &root));
		}
	}
}

TEST_MAIN(NULL, NULL)
