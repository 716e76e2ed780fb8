#include "service/seal_round.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "proof/verify.h"
#include "seal/authority.h"
#include "seal/segment.h"

#define ROUND_EVENTS_MAX (INT64_C(1) << 20)
/* A chain that grows faster than it is sealed must not keep the others waiting. */
#define ROUND_CHAIN_SEGMENTS_MAX 64
#define ROUND_MEMORY_MAX ((size_t)16 << 20)
#define AHEAD_TOLD_EVERY_US (60 * US_PER_SECOND)
/* How many chains a pass finds broken before it ends: so many at once are more likely all well, and
 * something else is not. */
#define NEWLY_APART_MAX 8

struct round {
	struct sealing *sealing;
	struct arena arena;
	struct error *error;
	int64_t number;
	bool has_previous;
	struct sha256 previous_token_hash;
	struct clock_state clock;
	int64_t now_us;    /* nothing received later is sealed */
	int64_t latest_us; /* of what is: when it was received */
	struct segment_record *segments;
	struct sha256 *roots;
	size_t count;
	int64_t events;
};

int sealing_init(struct sealing *sealing, struct service *service)
{
	*sealing = (struct sealing){.service = service};
	sealing->leaves = malloc((SEGMENT_LEAVES_MAX + 1) * sizeof *sealing->leaves);
	return sealing->leaves ? OK : ERR_NO_MEMORY;
}

void sealing_free(struct sealing *sealing)
{
	free(sealing->leaves);
}

void sealing_begin_pass(struct sealing *sealing)
{
	sealing->ahead_count = sealing->newly_apart = 0;
}

bool sealing_doubts(const struct sealing *sealing)
{
	return sealing->newly_apart >= NEWLY_APART_MAX;
}

void sealing_end_pass(struct sealing *sealing)
{
	struct counters *counters = &sealing->service->counters;
	atomic_store(&counters->chains_apart, apart_count(&sealing->apart, clock_monotonic_us()));
	atomic_store(&counters->chains_ahead, sealing->ahead_count);
}

/* ---- one segment ---- */

/* "seg_", the channel's own part, "n" and the number: known before the round is, for the seal
 * document names it. */
static void make_segment_id(const char *channel_id, int64_t number, char id[ID_SIZE])
{
	const char *own = strchr(channel_id, '_');
	snprintf(id, ID_SIZE, "seg_%.20sn%" PRIu32, own ? own + 1 : channel_id, (uint32_t)number);
}

static int write_document(struct round *round, const struct unsealed_chain *chain,
                          struct segment_record *segment, const struct sha256 *before,
                          const struct sha256 *last)
{
	struct seal_document document = {
		.segment_id = segment->segment_id,
		.channel_id = chain->channel_id,
		.chain = mode_text(MODE_LIVE),
		.first_sequence = segment->first_sequence,
		.last_sequence = segment->last_sequence,
		.chain_hash_before = *before,
		.chain_hash_last = *last,
		.previous_seal_hash = chain->sealed_segment ? &chain->seal_hash : NULL,
		.previous_token_hash = round->has_previous ? &round->previous_token_hash : NULL,
		.clock = round->clock,
	};
	BUF_AUTO struct buf text;
	buf_init(&text, SEAL_DOCUMENT_MAX);
	seal_document_write(&document, &text);
	const char *copy = !buf_check(&text) ? arena_copy(&round->arena, text.data, text.size) : NULL;
	if (!copy)
		return ERR_NO_MEMORY;
	segment->document = slice_make(copy, text.size);
	segment->seal_hash = sha256_of(copy, text.size);
	return OK;
}

/* The next segment of a chain, whose state moves on as if it were sealed. */
static int add_segment(struct round *round, struct unsealed_chain *chain)
{
	int64_t count = chain->last_sequence - chain->sealed_sequence;
	if (count > SEGMENT_EVENTS_MAX)
		count = SEGMENT_EVENTS_MAX;
	struct segment_record *segment = &round->segments[round->count];
	*segment = (struct segment_record){
		.account = chain->account,
		.chain = chain->chain,
		.number = chain->sealed_segment + 1,
		.first_sequence = chain->sealed_sequence + 1,
		.last_sequence = chain->sealed_sequence + count,
		.round = round->number,
	};
	make_segment_id(chain->channel_id, segment->number, segment->segment_id);
	/* The event before the first, the events, and room for the document's digest. */
	struct sha256 *leaves = round->sealing->leaves;
	int result = store_read_chain_hashes(round->sealing->service->store, chain->account,
	                                     chain->chain, segment->first_sequence - 1,
	                                     segment->last_sequence, leaves, round->error);
	if (!result)
		result = write_document(round, chain, segment, &leaves[0], &leaves[count]);
	if (result)
		return result;
	leaves[count + 1] = segment->seal_hash;
	struct sha256 nodes[SEGMENT_NODES_MAX];
	size_t node_count = 0;
	result = segment_build(leaves + 1, (size_t)count + 1, nodes, &node_count, &segment->root);
	if (result)
		return result;
	const char *kept = arena_copy(&round->arena, nodes, node_count * sizeof *nodes);
	if (!kept)
		return ERR_NO_MEMORY;
	segment->nodes = slice_make(kept, node_count * sizeof *nodes);
	round->roots[round->count++] = segment->root;
	round->events += count;
	chain->sealed_sequence = segment->last_sequence;
	chain->sealed_segment = segment->number;
	chain->seal_hash = segment->seal_hash;
	return OK;
}

/* ---- chains that cannot be sealed ---- */

static void set_apart(struct sealing *sealing, int64_t account, int64_t chain, const char *name,
                      int result, const struct error *error)
{
	sealing->newly_apart += !apart_has(&sealing->apart, account, chain);
	unsigned failures = apart_add(&sealing->apart, account, chain, clock_monotonic_us());
	/* Refused once: another sealer may have been faster. */
	if (!apart_tells(failures) || (result == ERR_REFUSED && failures == 1))
		return;
	char times[16];
	snprintf(times, sizeof times, "%u", failures);
	log_error("chain_not_sealed", "chain", name, "failures", times, "error",
	          error_code_text(result), "cause", error->cause);
}

/* Whether an error met on a chain may be the chain's own: it is none of those that meet every
 * chain, nor met by many, and the store answers otherwise. */
static bool is_chains_own(const struct round *round, int64_t account, int64_t chain, int result)
{
	const struct sealing *sealing = round->sealing;
	int64_t number;
	struct sha256 token_hash;
	if (sealing_doubts(sealing) && !apart_has(&sealing->apart, account, chain))
		return false;
	switch (result) {
	case ERR_NO_MEMORY:
	case ERR_NO_SPACE:
	case ERR_UNAVAILABLE:
	case ERR_UNKNOWN_OUTCOME:
	case ERR_NETWORK:
	case ERR_AUTHORITY: return false;
	default: return !store_last_round(sealing->service->store, &number, &token_hash, NULL);
	}
}

static void note_ahead(struct sealing *sealing, const struct unsealed_chain *chain, int64_t lag_us)
{
	int64_t now_us = clock_monotonic_us();
	sealing->ahead_count++;
	if (sealing->told_ahead_us && now_us - sealing->told_ahead_us < AHEAD_TOLD_EVERY_US)
		return;
	sealing->told_ahead_us = now_us;
	char seconds[24];
	snprintf(seconds, sizeof seconds, "%" PRId64, lag_us / US_PER_SECOND);
	log_error("chain_ahead_of_clock", "channel_id", chain->channel_id, "seconds", seconds);
}

/* Leaves out what was received at a time that has not come yet: a timestamp given now would be
 * earlier. Where nodes' clocks differ a little, only the newest events of a chain wait. */
static int cut_to_clock(struct round *round, struct unsealed_chain *chain)
{
	struct sealing *sealing = round->sealing;
	int64_t lag_us = ledger_clock_lag_us(chain->last_received_at_us, round->now_us);
	if (lag_us == 0)
		return OK;
	if (lag_us > sealing->service->settings->seal_clock_bound)
		note_ahead(sealing, chain, lag_us);
	int64_t first, last;
	int result = store_resolve_times(sealing->service->store, chain->account, chain->chain,
	                                 round->now_us, round->now_us + 1, &first, &last, round->error);
	if (!result && last < chain->last_sequence)
		chain->last_sequence = last;
	chain->last_received_at_us = round->now_us;
	return result;
}

/* ---- one round ---- */

static bool round_is_full(const struct round *round)
{
	return round->count == ROUND_SEGMENTS_MAX || round->events >= ROUND_EVENTS_MAX;
}

static int add_chain(struct round *round, struct unsealed_chain *chain)
{
	int result = cut_to_clock(round, chain);
	for (int i = 0; i < ROUND_CHAIN_SEGMENTS_MAX && !round_is_full(round) && !result &&
	                chain->sealed_sequence < chain->last_sequence;
	     i++) {
		result = add_segment(round, chain);
		if (!result && round->latest_us < chain->last_received_at_us)
			round->latest_us = chain->last_received_at_us;
	}
	return result;
}

/* Takes chains in order until the round is full. *ret_taken of them were begun; *ret_backlog: one
 * of these has more to seal. A chain that is broken is left out. */
static int gather(struct round *round, struct unsealed_chain *chains, size_t count,
                  size_t *ret_taken, bool *ret_backlog)
{
	struct sealing *sealing = round->sealing;
	size_t taken = 0;
	int result = OK;
	for (; taken < count && !round_is_full(round) && !result; taken++) {
		struct unsealed_chain *chain = &chains[taken];
		if (apart_waits(&sealing->apart, chain->account, chain->chain, clock_monotonic_us()))
			continue;
		result = add_chain(round, chain);
		if (result && is_chains_own(round, chain->account, chain->chain, result)) {
			set_apart(sealing, chain->account, chain->chain, chain->channel_id, result,
			          round->error);
			result = OK;
		} else if (result && round->count > 0) {
			break; /* first what is good; then it is met again */
		} else if (chain->sealed_sequence < chain->last_sequence) {
			*ret_backlog = true;
		}
	}
	*ret_taken = taken;
	return round->count > 0 ? OK : result;
}

static int add_paths(struct round *round, struct sha256 *ret_root)
{
	TREE_AUTO struct hash_tree *tree = NULL;
	int result = tree_build(round->roots, round->count, &tree);
	for (size_t i = 0; i < round->count && !result; i++) {
		struct tree_proof proof;
		tree_prove(tree, i, &proof);
		size_t size = proof.count * sizeof *proof.siblings;
		const char *path = arena_copy(&round->arena, proof.siblings, size);
		if (!path)
			result = ERR_NO_MEMORY;
		round->segments[i].path = slice_make(path, size);
	}
	if (!result)
		*ret_root = tree_root(tree);
	return result;
}

static int timestamp(struct round *round, const struct sha256 *root,
                     struct authority_result *ret_stamped)
{
	struct authority_failures failures = {0};
	/* An earlier time no verifier would take. */
	int64_t earliest_us = round->latest_us - VERIFY_CLOCK_TOLERANCE_US;
	int result = authorities_timestamp(round->sealing->service->authorities, root, earliest_us,
	                                   ret_stamped, &failures, round->error);
	for (size_t i = 0; i < failures.count; i++)
		if (!failures.items[i].left_alone)
			log_warning("authority_failed", "authority", failures.items[i].name, "reason",
			            failures.items[i].reason);
	return result;
}

static int write_round(struct round *round, const struct sha256 *root,
                       const struct authority_result *stamped, size_t *ret_failed)
{
	struct slice token = buf_slice(&stamped->token);
	struct slice response = buf_slice(&stamped->response);
	if (token.size > response.size ||
	    memcmp(response.data + response.size - token.size, token.data, token.size) != 0)
		return error_cause(round->error, ERR_INVALID_EVIDENCE,
		                   "the response does not end with its token");
	struct round_record record = {
		.round = round->number,
		.root = *root,
		.authority = stamped->facts.authority.subject,
		.kind = authority_kind_text(stamped->kind),
		.sealed_at_us = stamped->facts.gen_time_us,
		.obtained_at_us = clock_now_us(),
		.request = buf_slice(&stamped->request),
		.response_head = slice_make(response.data, response.size - token.size),
		.token = token,
		.token_hash = sha256_of(token.data, token.size),
	};
	return store_write_round(round->sealing->service->store, &record, round->segments, round->count,
	                         ret_failed, round->error);
}

/* A segment that cannot be written keeps its chain out of the rounds to come. True when the others
 * can be tried again at once. */
static bool blame_segment(struct round *round, size_t failed, int result)
{
	if (failed >= round->count)
		return false;
	const struct segment_record *segment = &round->segments[failed];
	if (!is_chains_own(round, segment->account, segment->chain, result))
		return false;
	set_apart(round->sealing, segment->account, segment->chain, segment->segment_id, result,
	          round->error);
	return result != ERR_REFUSED;
}

static void forget_apart(const struct round *round)
{
	struct apart *apart = &round->sealing->apart;
	for (size_t i = 0; i < round->count && apart->count > 0; i++)
		if (apart_remove(apart, round->segments[i].account, round->segments[i].chain))
			log_info("chain_sealed_again", "segment_id", round->segments[i].segment_id);
}

static void count_round(const struct round *round)
{
	struct counters *counters = &round->sealing->service->counters;
	atomic_fetch_add(&counters->seal_rounds, 1);
	atomic_fetch_add(&counters->sealed_segments, round->count);
	atomic_store(&counters->last_seal_us, clock_now_us());
	char number[24], segments[24], events[24];
	snprintf(number, sizeof number, "%" PRId64, round->number);
	snprintf(segments, sizeof segments, "%zu", round->count);
	snprintf(events, sizeof events, "%" PRId64, round->events);
	log_info("sealed", "round", number, "segments", segments, "events", events);
}

static int seal(struct round *round, struct unsealed_chain *chains, size_t count, size_t *ret_taken,
                bool *ret_backlog)
{
	int64_t last_round = 0;
	int result = store_last_round(round->sealing->service->store, &last_round,
	                              &round->previous_token_hash, round->error);
	round->number = last_round + 1;
	round->has_previous = last_round > 0;
	round->clock = clock_state_read();
	round->now_us = clock_now_us();
	round->segments = arena_alloc(&round->arena, ROUND_SEGMENTS_MAX * sizeof *round->segments);
	round->roots = arena_alloc(&round->arena, ROUND_SEGMENTS_MAX * sizeof *round->roots);
	if (!round->segments || !round->roots)
		return ERR_NO_MEMORY;
	if (!result)
		result = gather(round, chains, count, ret_taken, ret_backlog);
	if (result || round->count == 0)
		return result;
	struct sha256 root;
	size_t failed = round->count;
	AUTHORITY_RESULT_AUTO struct authority_result stamped = {0};
	result = add_paths(round, &root);
	if (!result)
		result = timestamp(round, &root, &stamped);
	if (!result)
		result = write_round(round, &root, &stamped, &failed);
	if (!result) {
		forget_apart(round);
		count_round(round);
	} else if (blame_segment(round, failed, result)) {
		*ret_taken = 0;
		result = OK;
	}
	return result;
}

int seal_round(struct sealing *sealing, struct unsealed_chain *chains, size_t count,
               size_t *ret_taken, bool *ret_backlog, struct error *error)
{
	struct round round = {.sealing = sealing, .error = error};
	arena_init(&round.arena, ROUND_MEMORY_MAX);
	int result = seal(&round, chains, count, ret_taken, ret_backlog);
	arena_free(&round.arena);
	return result;
}
