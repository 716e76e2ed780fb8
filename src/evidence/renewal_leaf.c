#include "evidence/renewal_leaf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/tuned.h"
#include "evidence/evidence_chain.h"
#include "store/certifications/certifications.h"
#include "store/events/segments.h"

#define STEP_MEMORY_MAX ((size_t)8 << 20)
#define DOCUMENTS_MEMORY_MAX ((size_t)32 << 20)
#define HASHES_MEMORY_MAX (RENEWAL_LEAVES_MEMORY_MAX / 2)
#define READ_AT_ONCE ((size_t)256 << 10)
#define READ_MAX (INT64_C(1) << 30)

struct making {
	const struct renewal *renewal;
	enum digest_algorithm algorithm;
	struct renewal_leaves *made;
	size_t most; /* leaves of a block */
	size_t hashes_bytes;
	int64_t read_bytes;
	bool more; /* not everything due was visited */
	struct error *error;
};

static bool enough(const struct making *making)
{
	return making->made->count == making->most || making->read_bytes > READ_MAX ||
	       making->hashes_bytes > HASHES_MEMORY_MAX;
}

static bool stops(const struct making *making)
{
	return renewal_stops(making->renewal);
}

/* ---- documents ---- */

/* Computes both digests and checks that the renewed document is the issued one. */
static int digest_object(struct making *making, struct content_reader *reader, char *piece,
                         const struct document *document, struct digest *ret_digest)
{
	struct digest_stream *issued = digest_begin();
	struct digest_stream *wanted = digest_begin_by(making->algorithm);
	int64_t count = issued && wanted ? 1 : ERR_NO_MEMORY;
	while (count > 0 && !stops(making)) {
		count = content_read(reader, piece, READ_AT_ONCE, making->error);
		if (count > 0) {
			digest_add(issued, piece, (size_t)count);
			digest_add(wanted, piece, (size_t)count);
			making->read_bytes += count;
		}
	}
	if (count) {
		digest_cancel(issued);
		digest_cancel(wanted);
		return count < 0 ? (int)count : ERR_REFUSED;
	}
	struct sha256 found = digest_end(issued);
	*ret_digest = digest_end_by(wanted);
	return sha256_equal(&found, &document->sha256)
	           ? OK
	           : error_cause(making->error, ERR_CORRUPT, "%s differs from the issued document",
	                         document->name);
}

static int digest_document(struct making *making, const struct document *document,
                           struct digest *ret_digest)
{
	*ret_digest = digest_of_sha256(&document->sha256);
	if (making->algorithm == DIGEST_SHA256)
		return OK;
	struct content_reader *reader;
	uint64_t size;
	char *piece = malloc(READ_AT_ONCE);
	if (!piece)
		return ERR_NO_MEMORY;
	struct content_parts parts = {document->object, document->shared, document->pieces};
	int result = content_parts_read(making->renewal->service->content, &parts, 0, &reader, &size,
	                                making->error);
	if (!result) {
		result = digest_object(making, reader, piece, document, ret_digest);
		content_read_end(reader);
	}
	free(piece);
	return result;
}

/* Computes the hash of each document for the chain: the document alone, or together with the
 * previous chains. */
static int hash_documents(struct making *making, const struct evidence_queue_entry *item,
                          const struct evidence_record *before, struct evidence_leaf *leaf)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, DOCUMENTS_MEMORY_MAX);
	struct document *documents;
	size_t count = 0;
	int result =
		store_list_documents(making->renewal->service->store, item->account, item->certification,
	                         &arena, &documents, &count, making->error);
	if (!result && (count < 2 || count > EVIDENCE_HASHES_MAX))
		return error_cause(making->error, ERR_CORRUPT, "%zu documents were issued", count);
	struct digest *hashes = !result ? arena_alloc(&arena, count * sizeof *hashes) : NULL;
	if (!result && !hashes)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < count && !result; i++) {
		struct digest data;
		result = digest_document(making, &documents[i], &data);
		if (!result && before)
			result = evidence_record_next_leaf(before, &data, &hashes[i]);
		else if (!result)
			hashes[i] = data;
	}
	if (!result)
		result = evidence_group_leaf(hashes, count, &leaf->digest);
	assert(result || leaf->digest.algorithm == making->algorithm);
	size_t size = count * digest_size(making->algorithm);
	char *bytes = !result ? arena_alloc(making->made->arena, size) : NULL;
	if (!result && !bytes)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < count && !result; i++)
		memcpy(bytes + i * digest_size(making->algorithm), hashes[i].bytes,
		       digest_size(making->algorithm));
	leaf->chain.hashes = slice_make(bytes, size);
	return result;
}

/* Determines whether the existing record is extended by one more chain; otherwise a new record is
 * started. */
static int find_last(struct making *making, const struct evidence_queue_entry *item,
                     const struct evidence_chain_row *chain, struct certification_record *ret_last,
                     bool *ret_continues)
{
	struct certification_record last;
	*ret_continues = false;
	if (item->starts_record || chain->record == 0)
		return OK;
	int result = certification_record_load(making->renewal->service->store, item->account,
	                                       item->certification, &last, making->error);
	if (result)
		return result == ERR_NOT_FOUND ? OK : result;
	*ret_last = last;
	*ret_continues = last.number == chain->record && last.chain == chain->chain &&
	                 evidence_record_has_room(last.record, true);
	return OK;
}

/* *ret_has: the record already has a chain with that digest or a stronger one, so the certification
 * no longer waits. */
static int fill_chain(struct making *making, const struct evidence_queue_entry *item,
                      struct certification_record *last, struct evidence_leaf *leaf, bool *ret_has)
{
	struct evidence_chain_row *chain = &leaf->chain;
	bool continues;
	int result = store_last_evidence_chain(making->renewal->service->store, item->account,
	                                       item->certification, &chain->record, &chain->chain,
	                                       making->error);
	if (!result)
		result = find_last(making, item, chain, last, &continues);
	*ret_has = !result && continues && evidence_record_digest(last->record) >= making->algorithm;
	if (result || *ret_has)
		return result;
	chain->record += continues ? 0 : 1;
	chain->chain = continues ? chain->chain + 1 : 1;
	chain->after_stamp = continues ? last->last_stamp : 0;
	return hash_documents(making, item, continues ? last->record : NULL, leaf);
}

static int make_chain(struct making *making, const struct evidence_queue_entry *item,
                      struct evidence_leaf *leaf, bool *ret_has)
{
	struct certification_record last = {0};
	*leaf = (struct evidence_leaf){
		.chain = {.account = item->account, .certification = item->certification}, .waited = item};
	int result = fill_chain(making, item, &last, leaf, ret_has);
	evidence_record_free(last.record);
	return result;
}

static int make_chains(struct making *making)
{
	struct store *store = making->renewal->service->store;
	struct evidence_queue_entry *items =
		arena_alloc(making->made->arena, EVIDENCE_LEAVES_MAX * sizeof *items);
	size_t count = 0;
	int result = items ? store_list_evidence_queue(store, store_now_us(store), making->most, items,
	                                               &count, making->error)
	                   : ERR_NO_MEMORY;
	making->more = count == making->most;
	for (size_t i = 0; i < count && !result && !enough(making) && !stops(making); i++) {
		struct evidence_leaf *leaf = &making->made->leaves[making->made->count];
		bool has = false;
		result = make_chain(making, &items[i], leaf, &has);
		if (!result && has) {
			result = store_remove_from_evidence_queue(store, &items[i], making->error);
		} else if (!result) {
			making->made->count++;
			making->hashes_bytes += leaf->chain.hashes.size;
		} else if (!stops(making) && result != ERR_NO_MEMORY) {
			result = renewal_delay_waiting(making->renewal, &items[i], result, making->error);
		}
	}
	return result;
}

/* ---- tokens ---- */

static int load_token(struct store *store, const struct renewable_token *token, struct arena *arena,
                      struct slice *ret_token, struct error *error)
{
	struct round_record round;
	struct round_token second;
	struct archive_timestamp stamp;
	int result = OK;
	switch (token->source) {
	case TOKEN_ROUND:
		result = store_get_round(store, token->number, arena, &round, error);
		*ret_token = round.token;
		break;
	case TOKEN_SECOND:
		result = store_get_second_token(store, token->number, arena, &second, error);
		*ret_token = second.token;
		break;
	case TOKEN_STAMP:
		result = store_get_archive_timestamp(store, token->number, arena, &stamp, error);
		*ret_token = stamp.token;
		break;
	}
	return result;
}

static int make_token(struct making *making, const struct renewable_token *token)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	assert(making->made->count < making->most);
	struct slice bytes = {0};
	int result = load_token(making->renewal->service->store, token, &arena, &bytes, making->error);
	if (!result)
		making->made->leaves[making->made->count++] = (struct evidence_leaf){
			.digest = digest_by(making->algorithm, bytes.data, bytes.size),
			.is_token = true,
			.token = *token,
		};
	else if (renewal_fails_alone(result))
		result = renewal_delay_token(making->renewal, token, result, making->error);
	return result;
}

static int make_tokens(struct making *making)
{
	struct service *service = making->renewal->service;
	size_t room = making->most - making->made->count, count = 0;
	struct renewable_token *tokens = calloc(room + 1, sizeof *tokens);
	int result = tokens
	                 ? store_list_tokens_to_renew(service->store, making->algorithm, clock_now_us(),
	                                              service->settings->evidence_renew_before, room,
	                                              tokens, &count, making->error)
	                 : ERR_NO_MEMORY;
	making->more = making->more || count == room;
	assert(count <= room);
	for (size_t i = 0; i < count && !result; i++)
		result = make_token(making, &tokens[i]);
	free(tokens);
	return result;
}

int renewal_make_leaves(const struct renewal *renewal, enum digest_algorithm algorithm,
                        struct renewal_leaves *made, struct error *error)
{
	struct making making = {.renewal = renewal,
	                        .algorithm = algorithm,
	                        .made = made,
	                        .most = (size_t)tuned_up_to("renewal_leaves", EVIDENCE_LEAVES_MAX),
	                        .error = error};
	int result = OK;
	if (made->of_chains)
		result = make_chains(&making);
	if (!result && !enough(&making))
		result = make_tokens(&making);
	made->full = !result && (making.more || enough(&making));
	return result;
}
