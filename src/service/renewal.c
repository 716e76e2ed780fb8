#include "service/renewal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "seal/authority.h"
#include "seal/evidence_tree.h"
#include "service/renewal_leaf.h"
#include "store/events/segments.h"
#include "store/events/validation.h"

#define STEP_MEMORY_MAX ((size_t)8 << 20)
#define ROUNDS_AT_ONCE 64
#define STAMP_BLOCKS_MAX 1024

static bool stops(const struct renewal *renewal)
{
	return atomic_load(renewal->stopping) || atomic_load(renewal->lost);
}

static void text_of(int64_t value, char text[24])
{
	snprintf(text, 24, "%" PRId64, value);
}

/* ---- rounds come to rest ---- */

/* One that cannot be read is over at once: it is given up, and told of. */
static int describe(struct store *store, enum token_source source, int64_t round,
                    struct slice token, int64_t sealed_at_us, struct arena *arena,
                    struct token_at_rest *ret, struct error *error)
{
	struct sha256 token_hash = sha256_of(token.data, token.size);
	const struct validation_object *objects;
	size_t count;
	BUF_AUTO struct buf beside;
	buf_init(&beside, TIMESTAMP_PATH_MAX);
	int result = store_list_validation(store, &token_hash, arena, &objects, &count, error);
	for (size_t i = 0; i < count && !result; i++)
		if (objects[i].kind == VALIDATION_CERTIFICATE)
			buf_add_slice(&beside, objects[i].der);
	if (!result)
		result = buf_check(&beside);
	*ret = (struct token_at_rest){source, round, sealed_at_us, sealed_at_us};
	if (!result)
		result = timestamp_valid_until(token, buf_slice(&beside), &ret->stamped_at_us,
		                               &ret->valid_until_us, error);
	return result == ERR_INVALID_EVIDENCE ? OK : result;
}

static int describe_round(struct store *store, int64_t number, struct token_at_rest *ret_tokens,
                          size_t *count, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct round_record round;
	struct round_token second;
	int result = store_get_round(store, number, &arena, &round, error);
	if (!result)
		result = describe(store, TOKEN_ROUND, number, round.token, round.sealed_at_us, &arena,
		                  &ret_tokens[*count], error);
	if (result)
		return result;
	++*count;
	result = store_get_second_token(store, number, &arena, &second, error);
	if (result)
		return result == ERR_NOT_FOUND ? OK : result;
	result = describe(store, TOKEN_SECOND, number, second.token, second.sealed_at_us, &arena,
	                  &ret_tokens[*count], error);
	*count += !result;
	return result;
}

static int set_rounds_to_rest(const struct renewal *renewal, struct error *error)
{
	struct store *store = renewal->service->store;
	struct sha256 unused;
	int64_t at_rest = 0, last = 0;
	int result = store_last_round_at_rest(store, &at_rest, error);
	if (!result)
		result = store_last_round(store, &last, &unused, error);
	while (!result && at_rest < last && !stops(renewal)) {
		struct token_at_rest tokens[2 * ROUNDS_AT_ONCE];
		size_t count = 0;
		for (int i = 0; i < ROUNDS_AT_ONCE && at_rest < last && !result; i++)
			result = describe_round(store, ++at_rest, tokens, &count, error);
		if (!result)
			result = store_set_to_rest(store, tokens, count, error);
	}
	return result;
}

/* ---- what came to its end ---- */

/* Our clock alone gives up nothing: an authority's time has to have come that far, if not by what
 * is at rest then by a timestamp of nothing, which is good only where our clock agrees with it. */
static int latest_known_us(const struct renewal *renewal, const struct evidence_state *state,
                           int64_t *ret_us, struct error *error)
{
	struct service *service = renewal->service;
	int64_t now_us = clock_now_us(), sealed_us = TIME_NONE;
	int result = store_last_seal_time(service->store, &sealed_us, error);
	int64_t known_us = sealed_us > state->last_stamp_us ? sealed_us : state->last_stamp_us;
	if (result)
		return result;
	*ret_us = known_us < now_us ? known_us : now_us;
	if (*ret_us > state->first_end_us)
		return OK;
	struct digest anything = {.algorithm = DIGEST_SHA256};
	AUTHORITY_RESULT_AUTO struct authority_result stamped = {0};
	random_bytes(anything.bytes, SHA256_SIZE);
	result = authorities_timestamp_over(service->authorities, &anything, &stamped, NULL, error);
	if (!result)
		*ret_us = stamped.facts.gen_time_us < now_us ? stamped.facts.gen_time_us : now_us;
	return result;
}

static void tell_lost(const struct lost_tokens *lost)
{
	char rounds[24], stamps[24], certifications[24];
	text_of((int64_t)lost->rounds, rounds);
	text_of((int64_t)lost->stamps, stamps);
	text_of(lost->certifications, certifications);
	log_error("evidence_lost", "round_tokens", rounds, "archive_timestamps", stamps,
	          "certifications", certifications, "cause",
	          "their certificates ended before they were renewed");
}

static int give_up(const struct renewal *renewal, struct error *error)
{
	struct store *store = renewal->service->store;
	struct evidence_state state;
	struct lost_tokens lost;
	int64_t ended_us = TIME_NONE;
	int result = store_look_at_evidence(store, &state, error);
	if (result || state.first_end_us == TIME_NONE || state.first_end_us >= clock_now_us())
		return result;
	result = latest_known_us(renewal, &state, &ended_us, error);
	while (!result && !stops(renewal)) {
		lost = (struct lost_tokens){0};
		result = store_give_up_tokens(store, ended_us, store_now_us(store), EVIDENCE_LEAVES_MAX,
		                              &lost, error);
		if (result || lost.rounds + lost.stamps == 0)
			break;
		tell_lost(&lost);
	}
	return result;
}

/* ---- one token over what is staged ---- */

static int read_root(struct store *store, const struct staged_stamp *staged, int64_t block,
                     struct digest *ret_root, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct slice bytes;
	size_t count = 0;
	int result = store_read_leaves(store, staged->stamp, block, &arena, &bytes, error);
	struct digest *leaves =
		!result ? evidence_hashes_read(bytes, staged->algorithm, &arena, &count) : NULL;
	if (result == ERR_NOT_FOUND || (!result && !leaves))
		return error_cause(error, ERR_CORRUPT, "archive timestamp %lld: block %lld is damaged",
		                   (long long)staged->stamp, (long long)block);
	return result ? result : evidence_tree_root(leaves, count, ret_root);
}

static int write_stamp(const struct renewal *renewal, const struct staged_stamp *staged,
                       const struct authority_result *stamped, struct slice blocks,
                       struct error *error)
{
	BUF_AUTO struct buf token;
	buf_init(&token, TIMESTAMP_RESPONSE_MAX + TIMESTAMP_PATH_MAX);
	struct archive_timestamp row = {
		.stamp = staged->stamp,
		.algorithm = staged->algorithm,
		.authority = stamped->facts.authority.subject,
		.kind = authority_kind_text(stamped->kind),
		.stamped_at_us = stamped->facts.gen_time_us,
		.obtained_at_us = clock_now_us(),
		.request = buf_slice(&stamped->request),
		.blocks = blocks,
	};
	/* Whatever validates it goes inside before a later one covers it. */
	int result = timestamp_token_complete(buf_slice(&stamped->token), buf_slice(&stamped->path),
	                                      &token, error);
	row.token = buf_slice(&token);
	if (!result)
		result = timestamp_valid_until(row.token, slice_make(NULL, 0), &row.stamped_at_us,
		                               &row.valid_until_us, error);
	return result ? result
	              : store_write_archive_timestamp(renewal->service->store, &row, staged->blocks,
	                                              error);
}

static void tell_stamp(const struct renewal *renewal, const struct staged_stamp *staged,
                       const struct authority_result *stamped)
{
	char number[24], blocks[24];
	text_of(staged->stamp, number);
	text_of(staged->blocks, blocks);
	atomic_fetch_add(&renewal->service->counters.archive_timestamps, 1);
	log_info("archive_timestamp", "number", number, "blocks", blocks, "digest",
	         digest_algorithm_text(staged->algorithm), "authority", stamped->name);
}

static int stamp_blocks(const struct renewal *renewal, const struct staged_stamp *staged,
                        struct digest *roots, struct error *error)
{
	struct service *service = renewal->service;
	AUTHORITY_RESULT_AUTO struct authority_result stamped = {0};
	BUF_AUTO struct buf blocks;
	struct digest root;
	buf_init(&blocks, (size_t)STAMP_BLOCKS_MAX * DIGEST_SIZE_MAX);
	evidence_hashes_write(roots, (size_t)staged->blocks, &blocks);
	int result = buf_check(&blocks);
	if (!result)
		result = evidence_tree_root(roots, (size_t)staged->blocks, &root);
	if (!result && stops(renewal))
		result = ERR_REFUSED;
	if (!result)
		result = authorities_timestamp_over(service->authorities, &root, &stamped, NULL, error);
	if (!result)
		result = write_stamp(renewal, staged, &stamped, buf_slice(&blocks), error);
	if (!result)
		tell_stamp(renewal, staged, &stamped);
	return result;
}

/* Whoever staged it; nothing when nothing is. */
static int close_staged(const struct renewal *renewal, struct error *error)
{
	struct staged_stamp staged;
	struct store *store = renewal->service->store;
	int result = store_get_staged_stamp(store, &staged, error);
	if (result || staged.blocks == 0)
		return result;
	if (staged.blocks > STAMP_BLOCKS_MAX)
		return error_cause(error, ERR_CORRUPT, "archive timestamp %lld has %lld blocks staged",
		                   (long long)staged.stamp, (long long)staged.blocks);
	struct digest *roots = calloc((size_t)staged.blocks, sizeof *roots);
	if (!roots)
		return ERR_NO_MEMORY;
	for (int64_t i = 0; i < staged.blocks && !result; i++)
		result = read_root(store, &staged, i, &roots[i], error);
	if (!result)
		result = stamp_blocks(renewal, &staged, roots, error);
	free(roots);
	return result;
}

/* ---- staging ---- */

/* *ret_more: the block held as much as one does, so that there may be more. */
static int stage_block(const struct renewal *renewal, enum digest_algorithm algorithm,
                       struct evidence_leaf *leaves, bool *ret_more, struct error *error)
{
	struct service *service = renewal->service;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, RENEWAL_LEAVES_MEMORY_MAX);
	struct staged_stamp staged;
	struct renewal_leaves made = {.leaves = leaves, .arena = &arena};
	int result = store_get_staged_stamp(service->store, &staged, error);
	if (result)
		return result;
	staged.algorithm = algorithm;
	*ret_more = false;
	if (staged.blocks == STAMP_BLOCKS_MAX)
		return OK;
	result = renewal_make_leaves(renewal, algorithm, &made, error);
	if (!result && stops(renewal))
		result = ERR_REFUSED;
	if (!result && made.count > 0)
		result = store_stage_leaves(service->store, &staged, leaves, made.count,
		                            store_now_us(service->store), error);
	*ret_more = !result && made.full;
	return result;
}

static int renew_by(const struct renewal *renewal, enum digest_algorithm algorithm,
                    struct error *error)
{
	struct evidence_leaf *leaves = calloc(EVIDENCE_LEAVES_MAX, sizeof *leaves);
	bool more = leaves != NULL;
	int result = leaves ? OK : ERR_NO_MEMORY;
	while (!result && more)
		result = stage_block(renewal, algorithm, leaves, &more, error);
	free(leaves);
	return result ? result : close_staged(renewal, error);
}

/* By evidence.digest, whatever the digest before was. */
static int queue_rehash(const struct renewal *renewal, enum digest_algorithm algorithm,
                        struct error *error)
{
	struct store *store = renewal->service->store;
	size_t count;
	int result;
	do {
		count = 0;
		result = store_rehash_evidence(store, algorithm, store_now_us(store), &count, error);
	} while (!result && count > 0 && !stops(renewal));
	return result;
}

int renewal_pass(const struct renewal *renewal, struct error *error)
{
	static const enum digest_algorithm algorithms[] = {DIGEST_SHA256, DIGEST_SHA512};
	int result = set_rounds_to_rest(renewal, error);
	if (!result)
		result = give_up(renewal, error);
	if (!result)
		result = close_staged(renewal, error);
	/* What had been staged, and ended before its token came. */
	if (!result)
		result = give_up(renewal, error);
	if (!result)
		result = queue_rehash(renewal, renewal_digest(renewal->service->settings), error);
	for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms && !result; i++)
		result = stops(renewal) ? ERR_REFUSED : renew_by(renewal, algorithms[i], error);
	return result;
}
