#include "evidence/stored_segment.h"

#include "seal/round_tree.h"

/* Memory for a round's tokens, the roots of its blocks, and one block. */
#define PATH_MEMORY_MAX ((size_t)4 << 20)

_Static_assert(ROUND_BLOCK_SEGMENTS_MAX == ROUND_BLOCK_LEAVES_MAX, "a block is one tree");
_Static_assert(SEGMENT_DOCUMENT_MAX == SEAL_DOCUMENT_MAX, "both are of one document");

static int fault(const struct segment_record *segment, const char *words, struct error *error)
{
	return error_cause(error, ERR_CORRUPT, "segment %s: %s", segment->segment_id, words);
}

/* In rounds of the earlier format, each segment stores its own path. */
static int own_path(const struct segment_record *segment, struct tree_proof *ret_path,
                    struct error *error)
{
	return segment_path(&segment->root, segment->path, ret_path)
	           ? fault(segment, "its path has an impossible size", error)
	           : OK;
}

int stored_segment_path(struct store *store, const struct segment_record *segment,
                        struct tree_proof *ret_path, struct error *error)
{
	if (segment->place == SEGMENT_HAS_PATH)
		return own_path(segment, ret_path, error);
	ARENA_AUTO struct arena arena;
	arena_init(&arena, PATH_MEMORY_MAX);
	struct round_record round;
	struct slice roots;
	int64_t events, block = segment->place / ROUND_BLOCK_SEGMENTS_MAX;
	int result = store_get_round(store, segment->round, &arena, &round, error);
	if (result == ERR_NOT_FOUND)
		return fault(segment, "its round is missing", error);
	if (!result)
		result = store_read_block(store, segment->round, block, &arena, &roots, &events, error);
	if (result == ERR_NOT_FOUND)
		return fault(segment, "its block is missing", error);
	if (!result)
		result = round_tree_prove(&segment->root, roots,
		                          (size_t)(segment->place % ROUND_BLOCK_SEGMENTS_MAX), round.blocks,
		                          (size_t)block, &round.root, ret_path);
	return result == ERR_INVALID_EVIDENCE
	           ? fault(segment, "its path does not lead to its round's root", error)
	           : result;
}

int stored_segment_prove(struct store *store, const struct segment_record *segment,
                         int64_t sequence, struct tree_proof *ret_proof, struct error *error)
{
	size_t events = (size_t)(segment->last_sequence - segment->first_sequence + 1);
	size_t index = (size_t)(sequence - segment->first_sequence);
	size_t first = index - index % SEGMENT_NODE_LEAVES;
	size_t count = events - first < SEGMENT_NODE_LEAVES ? events - first : SEGMENT_NODE_LEAVES;
	struct sha256 leaves[SEGMENT_NODE_LEAVES];
	int64_t from = segment->first_sequence + (int64_t)first;
	int result = store_read_chain_hashes(store, segment->account, segment->chain, from,
	                                     from + (int64_t)count - 1, leaves, error);
	if (result)
		return result;
	if (count < SEGMENT_NODE_LEAVES)
		leaves[count++] = sha256_of(segment->document.data, segment->document.size);
	struct tree_proof within, path;
	result = segment_prove(leaves, count, index, segment->nodes, &segment->root, &within);
	if (!result)
		result = stored_segment_path(store, segment, &path, error);
	if (!result)
		result = tree_proof_compose(&within, &path, ret_proof);
	return result == ERR_INVALID_EVIDENCE
	           ? error_cause(error, ERR_CORRUPT, "segment %s: event %lld does not lead to its root",
	                         segment->segment_id, (long long)sequence)
	           : result;
}

int stored_segment_document(const struct segment_record *segment, struct arena *arena,
                            struct seal_document *ret_document, struct error *error)
{
	struct seal_document document;
	int result = seal_document_read(arena, segment->document, &document, NULL);
	if (result && result != ERR_INVALID_EVIDENCE)
		return error_cause(error, result, "seal document of segment %s", segment->segment_id);
	if (result || strcmp(document.segment_id, segment->segment_id) != 0 ||
	    document.first_sequence != segment->first_sequence ||
	    document.last_sequence != segment->last_sequence)
		return fault(segment, "its seal document was changed", error);
	*ret_document = document;
	return OK;
}
