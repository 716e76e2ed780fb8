#include "testing.h"

#include "tlog/frontier.h"

#define LEAVES 70

static struct sha256 leaves[LEAVES];

/* By the recursion of RFC 6962 section 2.1. */
static struct sha256 root_of(uint64_t first, uint64_t end)
{
	if (first == end)
		return merkle_empty_root();
	if (end - first == 1)
		return leaves[first];
	uint64_t half = 1;
	while (half * 2 < end - first)
		half *= 2;
	const struct sha256 left = root_of(first, first + half), right = root_of(first + half, end);
	return merkle_node(&left, &right);
}

static int read_node(void *context, unsigned level, uint64_t index, struct sha256 *ret,
                     struct error *error)
{
	const uint64_t *size = context;
	(void)error;
	assert_true((index + 1) << level <= *size);
	*ret = root_of(index << level, (index + 1) << level);
	return OK;
}

static int setup(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < LEAVES; i++)
		leaves[i] = merkle_leaf(slice_make(&i, sizeof i));
	return 0;
}

TEST_CASE(test_every_size_grows_from_every_other)
{
	for (uint64_t begin = 0; begin <= LEAVES; begin++) {
		const struct merkle_source source = {read_node, &begin};
		struct frontier frontier;
		assert_int_equal(frontier_read(&source, begin, &frontier, NULL), OK);
		for (uint64_t size = begin;; size++) {
			const struct sha256 expected = root_of(0, size), root = frontier_root(&frontier);
			assert_int_equal(frontier.size, size);
			assert_int_equal(frontier.count, __builtin_popcountll(size));
			assert_true(sha256_equal(&root, &expected));
			if (size == LEAVES)
				break;
			frontier_add(&frontier, &leaves[size]);
		}
	}
}

static int read_some(void *context, unsigned level, uint64_t index, struct sha256 *ret,
                     struct error *error)
{
	int *left = context;
	(void)level;
	(void)index;
	(void)error;
	*ret = leaves[0];
	return (*left)-- > 0 ? OK : ERR_NETWORK;
}

TEST_CASE(test_errors_of_the_source_are_returned)
{
	struct frontier frontier;
	for (int calls = 0; calls <= 3; calls++) {
		int left = calls;
		const struct merkle_source source = {read_some, &left};
		assert_int_equal(frontier_read(&source, 7, &frontier, NULL), calls < 3 ? ERR_NETWORK : OK);
	}
}

TEST_MAIN(setup, NULL)
