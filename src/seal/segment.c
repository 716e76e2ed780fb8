#include "seal/segment.h"

#include <assert.h>

/* ---- the tree ---- */

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
	assert(count >= 1 && count <= SEGMENT_LEAVES_MAX);
	size_t nodes = 0;
	int result = OK;
	for (size_t at = 0; at < count && !result; at += SEGMENT_NODE_LEAVES) {
		size_t left = count - at;
		result = root_of(leaves + at, left < SEGMENT_NODE_LEAVES ? left : SEGMENT_NODE_LEAVES,
		                 &ret_nodes[nodes++]);
	}
	assert(nodes <= SEGMENT_NODES_MAX);
	if (!result)
		result = root_of(ret_nodes, nodes, ret_root);
	if (!result)
		*ret_node_count = nodes;
	return result;
}

int segment_prove(const struct sha256 *leaves, size_t count, size_t index, struct slice nodes,
                  const struct sha256 *root, struct tree_proof *ret_proof)
{
	struct sha256 hashes[SEGMENT_NODES_MAX];
	size_t node_count = nodes.size / SHA256_SIZE;
	if (node_count < 1 || node_count > SEGMENT_NODES_MAX ||
	    index / SEGMENT_NODE_LEAVES >= node_count)
		return ERR_INVALID_EVIDENCE;
	memcpy(hashes, nodes.data, node_count * SHA256_SIZE);
	TREE_AUTO struct hash_tree *lower = NULL;
	TREE_AUTO struct hash_tree *upper = NULL;
	int result = tree_build(leaves, count, &lower);
	if (!result)
		result = tree_build(hashes, node_count, &upper);
	if (result)
		return result;
	struct tree_proof low, high;
	tree_prove(lower, index % SEGMENT_NODE_LEAVES, &low);
	tree_prove(upper, index / SEGMENT_NODE_LEAVES, &high);
	struct sha256 found = tree_root(upper);
	if (!sha256_equal(&found, root))
		return ERR_INVALID_EVIDENCE;
	return tree_proof_compose(&low, &high, ret_proof);
}

int segment_path(const struct sha256 *root, struct slice path, struct tree_proof *ret_proof)
{
	size_t count = path.size / SHA256_SIZE;
	if (path.size % SHA256_SIZE || count > TREE_PROOF_MAX)
		return ERR_INVALID_EVIDENCE;
	*ret_proof = (struct tree_proof){.leaf = *root, .count = count};
	memcpy(ret_proof->siblings, path.data, path.size);
	return OK;
}

/* ---- the seal document ---- */

static void write_hash(struct json_writer *writer, const char *name, const struct sha256 *hash)
{
	if (hash)
		json_hex(writer, name, hash->bytes, SHA256_SIZE);
	else
		json_null(writer, name);
}

/* The members are written in canonical order. */
void seal_document_write(const struct seal_document *document, struct buf *out)
{
	struct json_writer writer = {.out = out};
	int64_t count = document->last_sequence - document->first_sequence + 1;

	assert(document->first_sequence >= 1 && count >= 1 && count <= SEGMENT_EVENTS_MAX);
	json_begin_object(&writer, NULL);
	json_text(&writer, "chain", document->chain);
	write_hash(&writer, "chain_hash_before", &document->chain_hash_before);
	write_hash(&writer, "chain_hash_last", &document->chain_hash_last);
	json_text(&writer, "channel_id", document->channel_id);
	json_begin_object(&writer, "clock");
	json_integer(&writer, "max_error_us", document->clock.max_error_us);
	json_text(&writer, "source", document->clock.source);
	json_boolean(&writer, "synchronized", document->clock.synchronized);
	json_end_object(&writer);
	json_integer(&writer, "count", count);
	json_integer(&writer, "first_sequence", document->first_sequence);
	json_integer(&writer, "last_sequence", document->last_sequence);
	write_hash(&writer, "previous_seal_hash", document->previous_seal_hash);
	write_hash(&writer, "previous_token_hash", document->previous_token_hash);
	json_text(&writer, "segment_id", document->segment_id);
	json_integer(&writer, "v", 1);
	json_end_object(&writer);
}

struct sha256 seal_document_digest(const struct seal_document *document, struct buf *scratch)
{
	buf_clear(scratch);
	seal_document_write(document, scratch);
	int result = buf_check(scratch);
	assert(!result); /* a digest of an incomplete document must never be sealed */
	return sha256_of(scratch->data, scratch->size);
}

static const char *take_chain(struct json_reader *reader)
{
	const char *chain = json_take_text(reader, "chain");
	static const char *const known[] = {"live", "test", SEAL_CHAIN_AUDIT, SEAL_CHAIN_URGENT_AUDIT};
	bool found = false;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		found |= strcmp(chain, known[i]) == 0;
	if (!found)
		json_refuse(reader, "chain");
	return chain;
}

static struct clock_state take_clock(struct json_reader *reader)
{
	struct json_reader clock = json_take_object(reader, "clock");
	struct clock_state state = {.max_error_us = json_take_integer(&clock, "max_error_us", 0)};
	state.source = json_take_text(&clock, "source");
	state.synchronized = json_take_boolean(&clock, "synchronized");
	reader->result = clock.result;
	return state;
}

struct seal_document seal_document_take(struct json_reader *reader)
{
	struct seal_document document = {.chain = take_chain(reader)};
	document.chain_hash_before = json_take_hash(reader, "chain_hash_before");
	document.chain_hash_last = json_take_hash(reader, "chain_hash_last");
	document.channel_id = json_take_text(reader, "channel_id");
	document.clock = take_clock(reader);
	document.first_sequence = json_take_integer(reader, "first_sequence", 1);
	document.last_sequence = json_take_integer(reader, "last_sequence", 1);
	int64_t count = json_take_integer(reader, "count", 1);
	if (count > SEGMENT_EVENTS_MAX || document.last_sequence - document.first_sequence + 1 != count)
		json_refuse(reader, "count");
	document.previous_seal_hash = json_take_hash_or_null(reader, "previous_seal_hash");
	document.previous_token_hash = json_take_hash_or_null(reader, "previous_token_hash");
	document.segment_id = json_take_text(reader, "segment_id");
	json_require_integer(reader, "v", 1);
	return document;
}

int seal_document_read(struct arena *arena, struct slice text, struct seal_document *ret_document,
                       struct error *error)
{
	if (text.size > SEAL_DOCUMENT_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE, "it is longer than any seal document");
	struct json_reader reader = json_reader_parse(arena, text, NULL, error);
	struct seal_document document = seal_document_take(&reader);
	if (reader.result)
		return reader.result;
	BUF_AUTO struct buf again;
	buf_init(&again, SEAL_DOCUMENT_MAX);
	seal_document_write(&document, &again);
	if (buf_check(&again) && !again.full)
		return error_cause(error, ERR_NO_MEMORY, "seal document");
	if (!slice_equal(buf_slice(&again), text))
		return error_cause(error, ERR_INVALID_EVIDENCE, "it is not in canonical form");
	*ret_document = document;
	return OK;
}
