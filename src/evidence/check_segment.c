#include "evidence/check_segment.h"

#include <assert.h>

#include "evidence/stored_segment.h"
#include "seal/timestamp.h"
#include "store/tlog/log_records.h"
#include "tlog/entry.h"

#define SEGMENT_MEMORY_MAX ((size_t)16 << 20)

static int fault(const struct segment_record *segment, const char *words, struct error *error)
{
	return error_cause(error, ERR_CORRUPT, "segment %s: %s", segment->segment_id, words);
}

/* Checks the chain hashes in a seal document of the audit log, whose leaves are the records'
 * documents only. */
static int check_ends(struct store *store, const struct segment_record *segment,
                      struct sha256 *leaves, struct arena *arena, struct error *error)
{
	struct seal_document document;
	struct sha256 before, last;
	int result = stored_segment_document(segment, arena, &document, error);
	if (!result)
		result = store_read_audit_hashes(store, segment->account, segment->chain,
		                                 segment->first_sequence, segment->last_sequence, leaves,
		                                 &before, &last, error);
	if (result)
		return result;
	return sha256_equal(&before, &document.chain_hash_before) &&
	               sha256_equal(&last, &document.chain_hash_last)
	           ? OK
	           : fault(segment, "its chain hashes are not those of its audit records", error);
}

/* Checks the tree from the leaves (events and seal document) over the stored nodes to the root. */
static int check_tree(struct store *store, const struct segment_record *segment,
                      struct arena *arena, struct error *error)
{
	size_t events = (size_t)(segment->last_sequence - segment->first_sequence + 1);
	assert(events >= 1 && events <= SEGMENT_EVENTS_MAX); /* checked in the seal document */
	struct sha256 *leaves = arena_alloc(arena, (events + 1) * sizeof *leaves);
	struct sha256 *nodes = arena_alloc(arena, SEGMENT_NODES_MAX * sizeof *nodes);
	if (!leaves || !nodes)
		return ERR_NO_MEMORY;
	int result = is_audit_chain(segment->chain)
	                 ? check_ends(store, segment, leaves, arena, error)
	                 : store_read_chain_hashes(store, segment->account, segment->chain,
	                                           segment->first_sequence, segment->last_sequence,
	                                           leaves, error);
	if (result)
		return result;
	leaves[events] = sha256_of(segment->document.data, segment->document.size);
	size_t node_count;
	struct sha256 root;
	result = segment_build(leaves, events + 1, nodes, &node_count, &root);
	if (result)
		return result;
	if (!slice_equal(segment->nodes, slice_make(nodes, node_count * sizeof *nodes)) ||
	    !sha256_equal(&root, &segment->root))
		return fault(segment, "its tree does not follow from its events", error);
	return OK;
}

/* Checks the place in a block of a segment that is staged for the next round, which is not written
 * yet. */
static int check_staged(struct store *store, const struct segment_record *segment,
                        struct arena *arena, struct error *error)
{
	struct slice roots;
	int64_t events;
	size_t index = (size_t)(segment->place % ROUND_BLOCK_SEGMENTS_MAX);
	int result = store_read_block(store, segment->round, segment->place / ROUND_BLOCK_SEGMENTS_MAX,
	                              arena, &roots, &events, error);
	if (result && result != ERR_NOT_FOUND)
		return result;
	bool there = !result && index < roots.size / SHA256_SIZE &&
	             memcmp(roots.data + index * SHA256_SIZE, &segment->root, SHA256_SIZE) == 0;
	return there ? OK : fault(segment, "it is missing in the block in which it is staged", error);
}

/* Checks the second timestamp of a round, if it has one, over the same root. */
static int check_second(struct store *store, const struct segment_record *segment,
                        const struct round_record *round, struct arena *arena, struct error *error)
{
	struct round_token token;
	struct timestamp_facts facts;
	int result = store_get_second_token(store, round->round, arena, &token, error);
	if (result)
		return result == ERR_NOT_FOUND ? OK : result;
	result = timestamp_verify_token(token.token, &round->root, slice_make(NULL, 0), &facts, error);
	if (result && result != ERR_INVALID_EVIDENCE)
		return result;
	return result || facts.gen_time_us != token.sealed_at_us
	           ? fault(segment, "the second timestamp of its round is not valid", error)
	           : OK;
}

static int check_round(struct store *store, const struct segment_record *segment,
                       const struct staged_round *staged, int64_t *last_round, struct arena *arena,
                       struct error *error)
{
	struct tree_proof path;
	struct round_record round;
	int result = store_get_round(store, segment->round, arena, &round, error);
	if (result == ERR_NOT_FOUND)
		return segment->place != SEGMENT_HAS_PATH && segment->round == staged->round
		           ? check_staged(store, segment, arena, error)
		           : fault(segment, "its round is missing", error);
	if (!result)
		result = stored_segment_path(store, segment, &path, error);
	if (result)
		return result;
	struct sha256 root = tree_proof_root(&path);
	if (!sha256_equal(&root, &round.root))
		return fault(segment, "its path does not lead to its round's root", error);
	if (round.round == *last_round)
		return OK;
	struct timestamp_facts facts;
	struct sha256 token_hash = sha256_of(round.token.data, round.token.size);
	result = timestamp_verify_token(round.token, &round.root, slice_make(NULL, 0), &facts, error);
	if (result && result != ERR_INVALID_EVIDENCE)
		return result;
	if (!sha256_equal(&token_hash, &round.token_hash) || result ||
	    facts.gen_time_us != round.sealed_at_us)
		return fault(segment, "the timestamp of its round is not valid", error);
	result = check_second(store, segment, &round, arena, error);
	if (result)
		return result;
	*last_round = round.round;
	return OK;
}

/* ---- the entry in the log ---- */

/* Checks the entry of a segment whose round is written; those of older versions have none. */
static int check_entry(struct store *store, const struct segment_record *segment,
                       const struct checked_segment *before, struct arena *arena,
                       struct error *error)
{
	struct seal_document document;
	struct tlog_entry entry;
	uint64_t index;
	size_t count;
	int result = store_find_log_index(store, segment->round, segment->place, &index, error);
	if (!result)
		result = store_read_log_entries(store, index, 1, &entry, &count, error);
	if (result)
		return result == ERR_NOT_FOUND ? OK : result;
	result = stored_segment_document(segment, arena, &document, error);
	if (result)
		return result;
	struct sha256 tag;
	bool same = tlog_tag(document.channel_id, document.chain, &tag) &&
	            sha256_equal(&entry.tag, &tag) && entry.first_sequence == segment->first_sequence &&
	            entry.last_sequence == segment->last_sequence &&
	            sha256_equal(&entry.chain_hash_last, &document.chain_hash_last) &&
	            sha256_equal(&entry.seal_hash, &before->seal_hash);
	return same ? OK : fault(segment, "its entry in the log of segments is another one", error);
}

/* Checks that the seal document contains the digest of the previous one. */
static int check_document(const struct segment_record *segment,
                          const struct checked_segment *before, struct arena *arena,
                          struct error *error)
{
	struct seal_document document;
	int result = stored_segment_document(segment, arena, &document, error);
	if (result)
		return result;
	bool follows = before->account == segment->account && before->chain == segment->chain &&
	               before->number == segment->number - 1;
	const struct sha256 *named = document.previous_seal_hash;
	if ((segment->number == 1) != !named ||
	    (named && follows && !sha256_equal(named, &before->seal_hash)))
		return fault(segment, "it does not reference the previous seal", error);
	return OK;
}

static int check_as_staged(struct store *store, int64_t account, int64_t chain, int64_t number,
                           const struct staged_round *staged, struct checked_segment *before,
                           struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, SEGMENT_MEMORY_MAX);
	struct segment_record segment;
	int result = store_get_segment(store, account, chain, number, &arena, &segment, error);
	if (result)
		return result;
	result = check_document(&segment, before, &arena, error);
	before->account = account;
	before->chain = chain;
	before->number = number;
	before->seal_hash = sha256_of(segment.document.data, segment.document.size);
	if (!result)
		result = check_tree(store, &segment, &arena, error);
	if (!result)
		result = check_round(store, &segment, staged, &before->last_round, &arena, error);
	return result ? result : check_entry(store, &segment, before, &arena, error);
}

/* Reads the staged round. A lost round is reported once by the check of the store; it has no staged
 * segments. */
static int read_staged(struct store *store, struct staged_round *ret, struct error *error)
{
	*ret = (struct staged_round){0};
	int result = store_get_staged_round(store, ret, error);
	return result == ERR_CORRUPT ? OK : result;
}

/* A sealer may run concurrently. A segment whose staging changed during the check is checked
 * again. */
int check_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                  struct checked_segment *before, struct error *error)
{
	struct staged_round staged, now;
	struct checked_segment checked;
	int result = read_staged(store, &now, error);
	if (result)
		return result;
	do {
		staged = now;
		checked = *before;
		result = check_as_staged(store, account, chain, number, &staged, &checked, error);
	} while (result == ERR_CORRUPT && !read_staged(store, &now, NULL) &&
	         now.changes != staged.changes);
	*before = checked;
	return result;
}
