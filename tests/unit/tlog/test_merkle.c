#include "testing.h"

#include "tlog/tiles.h"

#define LEAVES 300

/* A tree in memory, by the recursion of RFC 6962 section 2.1. */
static struct sha256 leaves[LEAVES];

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

static void assert_hex(struct sha256 hash, const char *expected)
{
	char text[2 * SHA256_SIZE + 1];
	hex_encode(hash.bytes, SHA256_SIZE, text);
	assert_string_equal(text, expected);
}

/* Computed with Python's hashlib, by the definition of the RFC. */
TEST_CASE(test_known_roots)
{
	const struct {
		struct slice entry;
		const char *root; /* of this entry and those before */
	} steps[] = {
		{slice_make("", 0), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
		{slice_make("\x00", 1), "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"},
		{slice_make("\x10", 1), "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"},
		{slice_make("\x20\x21", 2),
	     "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"},
		{slice_make("\x30\x31", 2),
	     "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"},
	};
	struct sha256 kept = leaves[0];
	assert_hex(merkle_empty_root(),
	           "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		leaves[i] = merkle_leaf(steps[i].entry);
		assert_hex(root_of(0, i + 1), steps[i].root);
	}
	leaves[0] = kept;
	assert_int_equal(setup(NULL), 0);
}

static void flip(struct sha256 *hash)
{
	hash->bytes[7] ^= 0x10;
}

TEST_CASE(test_every_inclusion)
{
	for (uint64_t size = 1; size <= LEAVES; size += size < 40 ? 1 : 13) {
		const struct merkle_source source = {read_node, &size};
		struct sha256 root;
		assert_int_equal(merkle_root(&source, size, &root, NULL), OK);
		const struct sha256 expected = root_of(0, size);
		assert_true(sha256_equal(&root, &expected));
		for (uint64_t index = 0; index < size; index++) {
			struct merkle_path path;
			assert_int_equal(merkle_prove_inclusion(&source, index, size, &path, NULL), OK);
			assert_true(merkle_is_included(&leaves[index], index, size, &path, &root));
			assert_false(merkle_is_included(&leaves[index], size, size, &path, &root));
			if (size > 1)
				assert_false(
					merkle_is_included(&leaves[(index + 1) % size], index, size, &path, &root));
			for (size_t i = 0; i < path.count; i++) {
				flip(&path.hashes[i]);
				assert_false(merkle_is_included(&leaves[index], index, size, &path, &root));
				flip(&path.hashes[i]);
			}
			if (path.count > 0) {
				path.count--;
				assert_false(merkle_is_included(&leaves[index], index, size, &path, &root));
				path.count++;
			}
			path.hashes[path.count++] = root;
			assert_false(merkle_is_included(&leaves[index], index, size, &path, &root));
		}
	}
}

static void assert_consistent(uint64_t old_size, uint64_t size)
{
	const struct merkle_source source = {read_node, &size};
	const struct sha256 old_root = root_of(0, old_size), root = root_of(0, size);
	struct merkle_path path;
	assert_int_equal(merkle_prove_consistency(&source, old_size, size, &path, NULL), OK);
	assert_true(merkle_is_consistent(old_size, &old_root, size, &root, &path));
	struct sha256 other = old_root;
	flip(&other);
	assert_false(merkle_is_consistent(old_size, &other, size, &root, &path));
	other = root;
	flip(&other);
	/* Every tree begins with the empty one. */
	assert_int_equal(merkle_is_consistent(old_size, &old_root, size, &other, &path), old_size == 0);
	for (size_t i = 0; i < path.count; i++) {
		flip(&path.hashes[i]);
		assert_false(merkle_is_consistent(old_size, &old_root, size, &root, &path));
		flip(&path.hashes[i]);
	}
	if (path.count > 0) {
		path.count--;
		assert_false(merkle_is_consistent(old_size, &old_root, size, &root, &path));
		path.count++;
	}
	path.hashes[path.count++] = root;
	assert_false(merkle_is_consistent(old_size, &old_root, size, &root, &path));
}

TEST_CASE(test_every_consistency)
{
	for (uint64_t size = 1; size <= LEAVES; size += size < 40 ? 1 : 29)
		for (uint64_t old_size = 0; old_size <= size; old_size++)
			assert_consistent(old_size, size);
}

/* A tree whose old leaves were rewritten, or that is shorter, has no proof. */
TEST_CASE(test_forks_are_refused)
{
	uint64_t size = 21;
	const struct merkle_source source = {read_node, &size};
	for (uint64_t old_size = 1; old_size < size; old_size++) {
		const struct sha256 old_root = root_of(0, old_size);
		struct merkle_path path;
		leaves[old_size - 1].bytes[0] ^= 1;
		const struct sha256 root = root_of(0, size);
		assert_int_equal(merkle_prove_consistency(&source, old_size, size, &path, NULL), OK);
		assert_false(merkle_is_consistent(old_size, &old_root, size, &root, &path));
		assert_false(merkle_is_consistent(size, &root, old_size, &old_root, &path));
		leaves[old_size - 1].bytes[0] ^= 1;
	}
}

/* The hashes of a proof show what both trees are, whatever the old root was said to be. */
TEST_CASE(test_roots_of_a_consistency_proof)
{
	uint64_t size = 67;
	const struct merkle_source source = {read_node, &size};
	const struct sha256 root = root_of(0, size);
	for (uint64_t old_size = 1; old_size < size; old_size++) {
		struct sha256 hashes[MERKLE_PATH_MAX + 1], old_found, found;
		struct merkle_path path;
		const struct sha256 old_root = root_of(0, old_size);
		bool is_node = (old_size & (old_size - 1)) == 0;
		assert_int_equal(merkle_prove_consistency(&source, old_size, size, &path, NULL), OK);
		hashes[0] = old_root;
		memcpy(hashes + is_node, path.hashes, path.count * sizeof *hashes);
		size_t count = path.count + is_node;
		assert_true(merkle_consistency_roots(old_size, size, hashes, count, &old_found, &found));
		assert_true(sha256_equal(&old_found, &old_root) && sha256_equal(&found, &root));
		assert_false(merkle_consistency_roots(old_size, size, hashes, 0, &old_found, &found));
		hashes[count] = old_root;
		assert_false(
			merkle_consistency_roots(old_size, size, hashes, count + 1, &old_found, &found));
	}
}

TEST_MAIN(setup, NULL)
