#include "tlog/merkle.h"

#include <assert.h>

#define LEAF_PREFIX '\0'
#define NODE_PREFIX '\1'

struct sha256 merkle_leaf(struct slice entry)
{
	char block[1024];
	block[0] = LEAF_PREFIX;
	if (entry.size < sizeof block) {
		memcpy(block + 1, entry.data, entry.size);
		return sha256_of(block, entry.size + 1);
	}
	struct digest_stream *stream = digest_begin();
	assert(stream);
	digest_add(stream, block, 1);
	digest_add(stream, entry.data, entry.size);
	return digest_end(stream);
}

struct sha256 merkle_node(const struct sha256 *left, const struct sha256 *right)
{
	uint8_t block[1 + 2 * SHA256_SIZE];
	block[0] = NODE_PREFIX;
	memcpy(block + 1, left->bytes, SHA256_SIZE);
	memcpy(block + 1 + SHA256_SIZE, right->bytes, SHA256_SIZE);
	return sha256_of(block, sizeof block);
}

struct sha256 merkle_empty_root(void)
{
	return sha256_of("", 0);
}

/* ---- verification ---- */

static bool is_odd(uint64_t number)
{
	return number & 1;
}

bool merkle_root_of_path(const struct sha256 *leaf, uint64_t index, uint64_t size,
                         const struct merkle_path *path, struct sha256 *ret_root)
{
	if (index >= size || size > MERKLE_SIZE_MAX)
		return false;
	uint64_t node = index, last = size - 1;
	struct sha256 hash = *leaf;
	for (size_t i = 0; i < path->count; i++) {
		if (last == 0)
			return false;
		if (is_odd(node) || node == last) {
			hash = merkle_node(&path->hashes[i], &hash);
			for (; !is_odd(node) && node != 0; node >>= 1)
				last >>= 1;
		} else {
			hash = merkle_node(&hash, &path->hashes[i]);
		}
		node >>= 1;
		last >>= 1;
	}
	*ret_root = hash;
	return last == 0;
}

bool merkle_is_included(const struct sha256 *leaf, uint64_t index, uint64_t size,
                        const struct merkle_path *path, const struct sha256 *root)
{
	struct sha256 found;
	return merkle_root_of_path(leaf, index, size, path, &found) && sha256_equal(&found, root);
}

bool merkle_consistency_roots(uint64_t old_size, uint64_t size, const struct sha256 *hashes,
                              size_t count, struct sha256 *ret_old_root, struct sha256 *ret_root)
{
	assert(old_size > 0 && old_size < size && size <= MERKLE_SIZE_MAX);
	uint64_t node = old_size - 1, last = size - 1;
	if (count == 0)
		return false;
	for (; is_odd(node); node >>= 1)
		last >>= 1;
	struct sha256 old_hash = hashes[0], hash = hashes[0];
	for (size_t i = 1; i < count; i++) {
		if (last == 0)
			return false;
		if (is_odd(node) || node == last) {
			old_hash = merkle_node(&hashes[i], &old_hash);
			hash = merkle_node(&hashes[i], &hash);
			for (; !is_odd(node) && node != 0; node >>= 1)
				last >>= 1;
		} else {
			hash = merkle_node(&hash, &hashes[i]);
		}
		node >>= 1;
		last >>= 1;
	}
	*ret_old_root = old_hash;
	*ret_root = hash;
	return last == 0;
}

bool merkle_is_consistent(uint64_t old_size, const struct sha256 *old_root, uint64_t size,
                          const struct sha256 *root, const struct merkle_path *path)
{
	if (old_size > size || size > MERKLE_SIZE_MAX)
		return false;
	if (old_size == size)
		return path->count == 0 && sha256_equal(old_root, root);
	if (old_size == 0) {
		const struct sha256 empty = merkle_empty_root();
		return path->count == 0 && sha256_equal(old_root, &empty);
	}
	if (path->count == 0)
		return false;
	/* The old tree is a node of the new one; the proof does not repeat it. */
	bool is_node = (old_size & (old_size - 1)) == 0;
	struct sha256 hashes[MERKLE_PATH_MAX + 1];
	hashes[0] = *old_root;
	memcpy(hashes + is_node, path->hashes, path->count * sizeof *hashes);
	struct sha256 old_found, found;
	return merkle_consistency_roots(old_size, size, hashes, path->count + is_node, &old_found,
	                                &found) &&
	       sha256_equal(&old_found, old_root) && sha256_equal(&found, root);
}

/* ---- proofs ---- */

/* The largest power of two below `size`, which is 2 or more. */
static unsigned split_level(uint64_t size)
{
	assert(size >= 2);
	return 63 - (unsigned)__builtin_clzll(size - 1);
}

/* Computes the root of the leaves from `first` to `end`, a range that the split of a tree makes:
 * its first complete subtree starts at a multiple of its size. */
static int range_root(const struct merkle_source *source, uint64_t first, uint64_t end,
                      struct sha256 *ret, struct error *error)
{
	struct sha256 hashes[64];
	size_t count = 0;
	assert(first < end);
	while (first < end) {
		unsigned level = 63 - (unsigned)__builtin_clzll(end - first);
		assert(count < sizeof hashes / sizeof *hashes && first % (UINT64_C(1) << level) == 0);
		int result = source->read(source->context, level, first >> level, &hashes[count], error);
		if (result)
			return result;
		count++;
		first += UINT64_C(1) << level;
	}
	for (; count > 1; count--)
		hashes[count - 2] = merkle_node(&hashes[count - 2], &hashes[count - 1]);
	*ret = hashes[0];
	return OK;
}

int merkle_root(const struct merkle_source *source, uint64_t size, struct sha256 *ret,
                struct error *error)
{
	assert(size <= MERKLE_SIZE_MAX);
	if (size == 0) {
		*ret = merkle_empty_root();
		return OK;
	}
	return range_root(source, 0, size, ret, error);
}

/* The proof is found from the root downwards and written from the leaf upwards. */
static void reverse(struct merkle_path *path)
{
	for (size_t i = 0; i < path->count / 2; i++) {
		struct sha256 hash = path->hashes[i];
		path->hashes[i] = path->hashes[path->count - 1 - i];
		path->hashes[path->count - 1 - i] = hash;
	}
}

static int add_range(const struct merkle_source *source, uint64_t first, uint64_t end,
                     struct merkle_path *path, struct error *error)
{
	assert(path->count < MERKLE_PATH_MAX);
	int result = range_root(source, first, end, &path->hashes[path->count], error);
	path->count += !result;
	return result;
}

int merkle_prove_inclusion(const struct merkle_source *source, uint64_t index, uint64_t size,
                           struct merkle_path *ret, struct error *error)
{
	assert(index < size && size <= MERKLE_SIZE_MAX);
	uint64_t first = 0, end = size;
	ret->count = 0;
	while (end - first > 1) {
		uint64_t middle = first + (UINT64_C(1) << split_level(end - first));
		bool left = index < middle;
		int result = left ? add_range(source, middle, end, ret, error)
		                  : add_range(source, first, middle, ret, error);
		if (result)
			return result;
		*(left ? &end : &first) = middle;
	}
	reverse(ret);
	return OK;
}

int merkle_prove_consistency(const struct merkle_source *source, uint64_t old_size, uint64_t size,
                             struct merkle_path *ret, struct error *error)
{
	assert(old_size <= size && size <= MERKLE_SIZE_MAX);
	uint64_t first = 0, end = size;
	ret->count = 0;
	if (old_size == 0 || old_size == size)
		return OK;
	while (end != old_size) {
		uint64_t middle = first + (UINT64_C(1) << split_level(end - first));
		bool left = old_size <= middle;
		int result = left ? add_range(source, middle, end, ret, error)
		                  : add_range(source, first, middle, ret, error);
		if (result)
			return result;
		*(left ? &end : &first) = middle;
	}
	/* What is left is the old tree itself, which the verifier knows, or its last subtree. */
	int result = first == 0 ? OK : add_range(source, first, end, ret, error);
	reverse(ret);
	return result;
}
