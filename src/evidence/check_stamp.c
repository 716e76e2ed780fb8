#include "evidence/check_stamp.h"

#include "seal/evidence_tree.h"
#include "seal/timestamp.h"
#include "store/evidence/evidence.h"

#define STAMP_MEMORY_MAX ((size_t)16 << 20)
#define BLOCK_MEMORY_MAX ((size_t)1 << 20)

static int fault(int64_t stamp, const char *words, struct error *error)
{
	return error_cause(error, ERR_CORRUPT, "archive timestamp %lld: %s", (long long)stamp, words);
}

static int check_block(struct store *store, const struct archive_timestamp *stamp, int64_t block,
                       const struct digest *expected, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, BLOCK_MEMORY_MAX);
	struct slice bytes;
	struct digest root;
	size_t count;
	int result = store_read_leaves(store, stamp->stamp, block, &arena, &bytes, error);
	if (result)
		return result == ERR_NOT_FOUND ? fault(stamp->stamp, "one of its blocks is missing", error)
		                               : result;
	struct digest *leaves = evidence_hashes_read(bytes, stamp->algorithm, &arena, &count);
	if (leaves)
		result = evidence_tree_root(leaves, count, &root);
	if (result)
		return result;
	return leaves && digest_equal(&root, expected)
	           ? OK
	           : fault(stamp->stamp, "one of its blocks is damaged", error);
}

static int check_token(const struct archive_timestamp *stamp, const struct digest *root,
                       struct error *error)
{
	struct timestamp_facts facts;
	int result = timestamp_verify_token_at(stamp->token, root, slice_make(NULL, 0), NULL, TIME_NONE,
	                                       &facts, error);
	if (result && result != ERR_INVALID_EVIDENCE)
		return result;
	return result || facts.gen_time_us != stamp->stamped_at_us
	           ? fault(stamp->stamp, "its token is not valid", error)
	           : OK;
}

int check_stamp(struct store *store, int64_t number, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STAMP_MEMORY_MAX);
	struct archive_timestamp stamp;
	struct digest root;
	size_t count;
	int result = store_get_archive_timestamp(store, number, &arena, &stamp, error);
	if (result)
		return result;
	struct digest *blocks = evidence_hashes_read(stamp.blocks, stamp.algorithm, &arena, &count);
	if (!blocks)
		return fault(number, "its block hashes cannot be read", error);
	for (size_t i = 0; i < count && !result; i++)
		result = check_block(store, &stamp, (int64_t)i, &blocks[i], error);
	if (!result)
		result = evidence_tree_root(blocks, count, &root);
	return result ? result : check_token(&stamp, &root, error);
}
