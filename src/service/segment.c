#include "service/segment.h"

#include <stdlib.h>

static int root_of(const struct sha256 *leaves, size_t count, struct sha256 *ret_root)
{
	TREE_AUTO struct hash_tree *tree = NULL;
	int result = tree_build(leaves, count, &tree);
	if (!result)
		*ret_root = tree_root(tree);
	return result;
}

int segment_build(const struct sha256 *leaves, size_t count,
                  struct sha256 ret_nodes[SEGMENT_NODES_MAX], size_t *ret_node_count,
                  struct sha256 *ret_root)
{
	size_t nodes = 0;
	int result = OK;
	for (size_t at = 0; at < count && !result; at += SEGMENT_NODE_LEAVES) {
		size_t left = count - at;
		result = root_of(leaves + at, left < SEGMENT_NODE_LEAVES ? left : SEGMENT_NODE_LEAVES,
		                 &ret_nodes[nodes++]);
	}
	if (!result)
		result = root_of(ret_nodes, nodes, ret_root);
	if (!result)
		*ret_node_count = nodes;
	return result;
}

int segment_path(const struct segment_record *segment, struct tree_proof *ret_path,
                 struct error *error)
{
	size_t count = segment->path.size / SHA256_SIZE;
	if (segment->path.size % SHA256_SIZE || count > TREE_PROOF_MAX)
		return error_cause(error, ERR_CORRUPT, "%s: the path has %zu bytes", segment->segment_id,
		                   segment->path.size);
	*ret_path = (struct tree_proof){.leaf = segment->root, .count = count};
	memcpy(ret_path->siblings, segment->path.data, segment->path.size);
	return OK;
}

/* The proof of leaf `index` within its 128, and that of these within the segment. */
static int prove_leaf(const struct segment_record *segment, const struct sha256 *leaves,
                      size_t count, size_t index, struct tree_proof *ret_proof)
{
	struct sha256 nodes[SEGMENT_NODES_MAX];
	size_t node_count = segment->nodes.size / SHA256_SIZE;
	if (node_count < 1 || node_count > SEGMENT_NODES_MAX ||
	    index / SEGMENT_NODE_LEAVES >= node_count)
		return ERR_CORRUPT;
	memcpy(nodes, segment->nodes.data, node_count * SHA256_SIZE);
	TREE_AUTO struct hash_tree *lower = NULL;
	TREE_AUTO struct hash_tree *upper = NULL;
	int result = tree_build(leaves, count, &lower);
	if (!result)
		result = tree_build(nodes, node_count, &upper);
	if (result)
		return result;
	struct tree_proof low, high;
	tree_prove(lower, index % SEGMENT_NODE_LEAVES, &low);
	tree_prove(upper, index / SEGMENT_NODE_LEAVES, &high);
	struct sha256 root = tree_root(upper);
	if (!sha256_equal(&root, &segment->root))
		return ERR_CORRUPT;
	return tree_proof_compose(&low, &high, ret_proof) ? ERR_CORRUPT : OK;
}

int segment_prove(struct service *service, const struct segment_record *segment, int64_t sequence,
                  struct tree_proof *ret_proof, struct error *error)
{
	size_t events = (size_t)(segment->last_sequence - segment->first_sequence + 1);
	size_t index = (size_t)(sequence - segment->first_sequence);
	size_t first = index - index % SEGMENT_NODE_LEAVES;
	size_t count = events - first < SEGMENT_NODE_LEAVES ? events - first : SEGMENT_NODE_LEAVES;
	struct sha256 leaves[SEGMENT_NODE_LEAVES];
	int64_t from = segment->first_sequence + (int64_t)first;
	int result = store_read_chain_hashes(service->store, segment->account, segment->chain, from,
	                                     from + (int64_t)count - 1, leaves, error);
	if (result)
		return result;
	if (count < SEGMENT_NODE_LEAVES)
		leaves[count++] = sha256_of(segment->document.data, segment->document.size);
	struct tree_proof within, path;
	result = prove_leaf(segment, leaves, count, index, &within);
	if (!result)
		result = segment_path(segment, &path, error);
	if (!result && tree_proof_compose(&within, &path, ret_proof))
		result = ERR_CORRUPT;
	return result == ERR_CORRUPT ? error_cause(error, ERR_CORRUPT,
	                                           "%s: event %lld does not lead to"
	                                           " its root",
	                                           segment->segment_id, (long long)sequence)
	                             : result;
}

/* ---- the seal document ---- */

/* Once memory was short, *short_of_memory. */
static bool read_text(const struct json *json, const char *name, struct arena *arena,
                      const char **ret_text, bool *short_of_memory)
{
	struct slice text;
	if (!json_get_text(json, name, &text))
		return false;
	*ret_text = arena_copy(arena, text.data, text.size);
	*short_of_memory |= !*ret_text;
	return *ret_text != NULL;
}

static bool read_hash(const struct json *json, const char *name, struct sha256 *ret_hash)
{
	struct slice text;
	return json_get_text(json, name, &text) &&
	       hex_decode(text, ret_hash->bytes, sizeof ret_hash->bytes);
}

static bool read_document(const struct json *json, struct arena *arena,
                          struct segment_document *document, bool *short_of_memory)
{
	struct seal_document *seal = &document->seal;
	*seal = (struct seal_document){0};
	const struct json *clock = json_member(json, "clock");
	const struct json *synchronized = json_member(clock, "synchronized");
	if (read_hash(json, "previous_seal_hash", &document->previous_seal_hash))
		seal->previous_seal_hash = &document->previous_seal_hash;
	if (read_hash(json, "previous_token_hash", &document->previous_token_hash))
		seal->previous_token_hash = &document->previous_token_hash;
	seal->clock.synchronized = synchronized && synchronized->type == JSON_TRUE;
	return read_text(json, "segment_id", arena, &seal->segment_id, short_of_memory) &&
	       read_text(json, "channel_id", arena, &seal->channel_id, short_of_memory) &&
	       read_text(json, "chain", arena, &seal->chain, short_of_memory) &&
	       read_text(clock, "source", arena, &seal->clock.source, short_of_memory) &&
	       json_get_integer(clock, "max_error_us", &seal->clock.max_error_us) &&
	       json_get_integer(json, "first_sequence", &seal->first_sequence) &&
	       json_get_integer(json, "last_sequence", &seal->last_sequence) &&
	       read_hash(json, "chain_hash_before", &seal->chain_hash_before) &&
	       read_hash(json, "chain_hash_last", &seal->chain_hash_last);
}

int segment_read_document(const struct segment_record *segment, struct arena *arena,
                          struct segment_document *ret_document, struct error *error)
{
	struct json *json;
	int result = json_parse(arena, segment->document, NULL, &json, NULL);
	bool short_of_memory = result == ERR_NO_MEMORY;
	bool same = !result && segment->document.size <= SEAL_DOCUMENT_MAX &&
	            read_document(json, arena, ret_document, &short_of_memory);
	if (same) {
		BUF_AUTO struct buf again;
		buf_init(&again, SEAL_DOCUMENT_MAX);
		seal_document_write(&ret_document->seal, &again);
		short_of_memory = buf_check(&again) != OK;
		same = slice_equal(buf_slice(&again), segment->document) &&
		       ret_document->seal.first_sequence == segment->first_sequence &&
		       ret_document->seal.last_sequence == segment->last_sequence;
	}
	if (short_of_memory)
		return error_cause(error, ERR_NO_MEMORY, "seal document of %s", segment->segment_id);
	if (!same)
		return error_cause(error, ERR_CORRUPT, "the seal document of %s is not as it was written",
		                   segment->segment_id);
	return OK;
}
