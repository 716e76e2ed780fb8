#include "evidence/renewal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/tuned.h"
#include "evidence/renewal_leaf.h"
#include "seal/authority.h"
#include "store/events/segments.h"

/* ---- expired tokens ---- */

/* Determines the latest time confirmed by an authority. Tokens are not given up on the basis of our
 * clock alone. If the stored tokens do not confirm the time, a timestamp over a random value is
 * requested; it is accepted only if our clock agrees with it. */
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
	if (renewal_stops(renewal))
		return ERR_REFUSED;
	struct digest anything = {.algorithm = DIGEST_SHA256};
	AUTHORITY_RESULT_AUTO struct authority_result stamped = {0};
	random_bytes(anything.bytes, SHA256_SIZE);
	result = authorities_timestamp_over(service->authorities, &anything, &stamped, NULL, error);
	if (!result)
		*ret_us = stamped.facts.gen_time_us < now_us ? stamped.facts.gen_time_us : now_us;
	return result;
}

static void log_lost(const struct lost_tokens *lost)
{
	char rounds[24], stamps[24], certifications[24];
	renewal_text((int64_t)lost->rounds, rounds);
	renewal_text((int64_t)lost->stamps, stamps);
	renewal_text(lost->certifications, certifications);
	log_error("evidence_lost", "round_tokens", rounds, "archive_timestamps", stamps,
	          "certifications", certifications, "cause",
	          "their certificates expired before they were renewed");
}

static int give_up(const struct renewal *renewal, struct error *error)
{
	struct store *store = renewal->service->store;
	struct evidence_state state;
	struct lost_tokens lost;
	int64_t ended_us = TIME_NONE;
	int result = store_read_evidence_state(store, &state, error);
	if (result || state.first_end_us == TIME_NONE || state.first_end_us >= clock_now_us())
		return result;
	result = latest_known_us(renewal, &state, &ended_us, error);
	while (!result && !renewal_stops(renewal)) {
		lost = (struct lost_tokens){0};
		result = store_give_up_tokens(store, ended_us, store_now_us(store), EVIDENCE_LEAVES_MAX,
		                              &lost, error);
		if (result || lost.rounds + lost.stamps == 0)
			break;
		log_lost(&lost);
	}
	return result;
}

/* ---- staging ---- */

/* Stages the leaves; a leaf that fails individually is omitted. */
static int stage_leaves(const struct renewal *renewal, const struct staged_stamp *staged,
                        struct renewal_leaves *made, struct error *error)
{
	struct store *store = renewal->service->store;
	while (made->count > 0) {
		assert(made->count <= EVIDENCE_LEAVES_MAX);
		struct evidence_leaf *leaves = made->leaves;
		size_t failed;
		int result = store_stage_leaves(store, staged, leaves, made->count, store_now_us(store),
		                                &failed, error);
		if (!result || failed == made->count || !renewal_fails_alone(result))
			return result;
		if (renewal_stops(renewal)) /* another node was faster */
			return ERR_REFUSED;
		result = leaves[failed].is_token
		             ? renewal_delay_token(renewal, &leaves[failed].token, result, error)
		             : renewal_delay_waiting(renewal, leaves[failed].waited, result, error);
		if (result)
			return result;
		assert(failed < made->count);
		memmove(&leaves[failed], &leaves[failed + 1], (--made->count - failed) * sizeof *leaves);
	}
	return OK;
}

/* A group of due leaves that share tokens. */
struct due {
	enum digest_algorithm algorithm;
	bool of_chains; /* including the waiting documents */
};

/* Stages one block. *ret_more: the block was full, so more leaves may be due. */
static int stage_block(const struct renewal *renewal, const struct due *due,
                       struct evidence_leaf *leaves, bool *ret_more, struct error *error)
{
	struct service *service = renewal->service;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, RENEWAL_LEAVES_MEMORY_MAX);
	struct staged_stamp staged;
	struct renewal_leaves made = {.leaves = leaves, .of_chains = due->of_chains, .arena = &arena};
	int result = store_get_staged_stamp(service->store, &staged, error);
	if (result)
		return result;
	*ret_more = false;
	/* The staged blocks have another algorithm: another node staged them in the meantime, and they
	 * must be closed first. */
	if (staged.blocks >= tuned_up_to("renewal_blocks", RENEWAL_BLOCKS_MAX) ||
	    (staged.blocks > 0 && staged.algorithm != due->algorithm))
		return OK;
	staged.algorithm = due->algorithm;
	result = renewal_make_leaves(renewal, due->algorithm, &made, error);
	if (!result && renewal_stops(renewal))
		result = ERR_REFUSED;
	if (!result)
		result = stage_leaves(renewal, &staged, &made, error);
	*ret_more = !result && made.full;
	return result;
}

static int renew_due(const struct renewal *renewal, const struct due *due, struct error *error)
{
	struct evidence_leaf *leaves = calloc(EVIDENCE_LEAVES_MAX, sizeof *leaves);
	bool more = leaves != NULL;
	int result = leaves ? OK : ERR_NO_MEMORY;
	while (!result && more)
		result = stage_block(renewal, due, leaves, &more, error);
	free(leaves);
	return result ? result : renewal_close(renewal, error);
}

/* Returns evidence.digest, or a stronger one that is already in use. With different settings on
 * several nodes, a node must not renew evidence back to a weaker digest. */
static int find_digest(const struct renewal *renewal, enum digest_algorithm *ret_digest,
                       struct error *error)
{
	struct service *service = renewal->service;
	bool set = strcmp(service->settings->evidence_digest, "sha-512") == 0;
	enum digest_algorithm taken, wanted = set ? DIGEST_SHA512 : DIGEST_SHA256;
	int result = store_strongest_stamp(service->store, &taken, error);
	if (!result)
		*ret_digest = taken > wanted ? taken : wanted;
	return result;
}

static int queue_rehash(const struct renewal *renewal, enum digest_algorithm algorithm,
                        struct error *error)
{
	struct store *store = renewal->service->store;
	struct evidence_cursor cursor = {0};
	size_t count;
	int result;
	/* No weaker digest exists, or not all evidence can be read. */
	if (algorithm == DIGEST_SHA256 || !store_is_whole(store))
		return OK;
	do {
		count = 0;
		result =
			store_rehash_evidence(store, algorithm, store_now_us(store), &cursor, &count, error);
	} while (!result && count > 0 && !renewal_stops(renewal));
	return result;
}

/* Closes what is staged. If no authority accepts the stronger digest (yet), the staged blocks must
 * not delay the renewal of tokens whose digest is accepted. */
static int close_staged(const struct renewal *renewal, struct error *error)
{
	struct service *service = renewal->service;
	struct staged_stamp staged;
	struct renewable_token token;
	enum digest_algorithm digest;
	size_t count = 0;
	int refused = renewal_close(renewal, error);
	if (refused != ERR_AUTHORITY)
		return refused;
	struct error met = {0};
	int result = store_get_staged_stamp(service->store, &staged, &met);
	if (!result && staged.algorithm == DIGEST_SHA256)
		return refused;
	if (!result)
		result = find_digest(renewal, &digest, &met);
	if (!result)
		result = store_list_tokens_to_renew(service->store, DIGEST_SHA256, clock_now_us(),
		                                    service->settings->evidence_renew_before, 1, &token,
		                                    &count, &met);
	if (!result && count == 0 && digest >= staged.algorithm)
		return refused;
	if (!result)
		result = renewal_unstage(renewal, &staged, 0, &met);
	*error = met;
	return result;
}

static int renew_all(const struct renewal *renewal, struct error *error)
{
	static const enum digest_algorithm algorithms[] = {DIGEST_SHA256, DIGEST_SHA512};
	enum digest_algorithm digest;
	int result = find_digest(renewal, &digest, error);
	if (!result)
		result = queue_rehash(renewal, digest, error);
	for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms && !result; i++) {
		const struct due due = {algorithms[i], algorithms[i] == digest};
		result = renewal_stops(renewal) ? ERR_REFUSED : renew_due(renewal, &due, error);
	}
	return result;
}

int renewal_pass(const struct renewal *renewal, struct error *error)
{
	int result = renewal_record_rounds(renewal, error);
	if (!result)
		result = give_up(renewal, error);
	if (!result)
		result = close_staged(renewal, error);
	/* Staged tokens that expired before the archive timestamp was obtained. */
	if (!result)
		result = give_up(renewal, error);
	return result ? result : renew_all(renewal, error);
}

int renewal_queue_missing(const struct renewal *renewal, struct error *error)
{
	struct evidence_cursor cursor = {0};
	size_t count, queued = 0;
	int result;
	do {
		count = 0;
		result = store_queue_missing_evidence(renewal->service->store, &cursor, &count, error);
		queued += count;
	} while (!result && count > 0 && !renewal_stops(renewal));
	if (queued > 0) {
		char text[24];
		renewal_text((int64_t)queued, text);
		log_info("evidence_queued", "certifications", text, "cause",
		         "an older node completed them");
	}
	return result;
}
