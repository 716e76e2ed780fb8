#include "service/seal_round.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "proof/verify.h"
#include "seal/authority.h"
#include "seal/round_tree.h"
#include "seal/segment.h"
#include "service/timestamp_roots.h"
#include "service/token_path.h"

#define BLOCK_EVENTS_MAX (INT64_C(1) << 20)
/* A chain that grows faster than it is sealed must not keep the others waiting. */
#define BLOCK_CHAIN_SEGMENTS_MAX 64
#define BLOCK_MEMORY_MAX ((size_t)16 << 20)
#define CLOSE_MEMORY_MAX ((size_t)1 << 20)
#define AHEAD_TOLD_EVERY_US (60 * US_PER_SECOND)
/* How many chains a pass finds broken before it ends: so many at once are more likely all well, and
 * something else is not. */
#define NEWLY_APART_MAX 8

/* A block on its way. */
struct staging {
	struct sealing *sealing;
	struct arena arena;
	struct error *error;
	struct staged_round round; /* as it was before */
	struct clock_state clock;
	int64_t now_us;    /* nothing received later is sealed */
	int64_t latest_us; /* of what is: when it was received */
	struct segment_record *segments;
	size_t count;
	int64_t events;
};

/* What authorities gave for a round. */
struct stamps {
	struct authority_result first, second;
	size_t count;
};

/* A round that is written. */
struct closing {
	struct sealing *sealing;
	struct error *error;
	struct staged_round round;
	int64_t damaged;       /* number of a block that cannot be read, once one was met */
	struct sha256 *blocks; /* their roots */
	struct sha256 root;
	int64_t segments, events;
};

int sealing_init(struct sealing *sealing, struct service *service)
{
	*sealing = (struct sealing){.service = service,
	                            .block_segments = ROUND_BLOCK_SEGMENTS_MAX,
	                            .round_blocks = ROUND_BLOCKS_MAX};
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
	sealing->chain_failed = false;
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

static int write_document(struct staging *staging, const struct unsealed_chain *chain,
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
		.previous_token_hash =
			staging->round.has_previous ? &staging->round.previous_token_hash : NULL,
		.clock = staging->clock,
	};
	BUF_AUTO struct buf text;
	buf_init(&text, SEAL_DOCUMENT_MAX);
	seal_document_write(&document, &text);
	const char *copy = !buf_check(&text) ? arena_copy(&staging->arena, text.data, text.size) : NULL;
	if (!copy)
		return ERR_NO_MEMORY;
	segment->document = slice_make(copy, text.size);
	segment->seal_hash = sha256_of(copy, text.size);
	return OK;
}

/* The next segment of a chain, whose state moves on as if it were sealed. */
static int add_segment(struct staging *staging, struct unsealed_chain *chain)
{
	int64_t count = chain->last_sequence - chain->sealed_sequence;
	if (count > SEGMENT_EVENTS_MAX)
		count = SEGMENT_EVENTS_MAX;
	struct segment_record *segment = &staging->segments[staging->count];
	*segment = (struct segment_record){
		.account = chain->account,
		.chain = chain->chain,
		.number = chain->sealed_segment + 1,
		.first_sequence = chain->sealed_sequence + 1,
		.last_sequence = chain->sealed_sequence + count,
		.previous_seal_hash = chain->seal_hash,
	};
	make_segment_id(chain->channel_id, segment->number, segment->segment_id);
	/* The event before the first, the events, and room for the document's digest. */
	struct sha256 *leaves = staging->sealing->leaves;
	int result = store_read_chain_hashes(staging->sealing->service->store, chain->account,
	                                     chain->chain, segment->first_sequence - 1,
	                                     segment->last_sequence, leaves, staging->error);
	if (!result)
		result = write_document(staging, chain, segment, &leaves[0], &leaves[count]);
	if (result)
		return result;
	leaves[count + 1] = segment->seal_hash;
	struct sha256 nodes[SEGMENT_NODES_MAX];
	size_t node_count = 0;
	result = segment_build(leaves + 1, (size_t)count + 1, nodes, &node_count, &segment->root);
	if (result)
		return result;
	const char *kept = arena_copy(&staging->arena, nodes, node_count * sizeof *nodes);
	if (!kept)
		return ERR_NO_MEMORY;
	segment->nodes = slice_make(kept, node_count * sizeof *nodes);
	staging->count++;
	staging->events += count;
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
	sealing->chain_failed = true;
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
static bool is_chains_own(const struct staging *staging, int64_t account, int64_t chain, int result)
{
	const struct sealing *sealing = staging->sealing;
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
static int cut_to_clock(struct staging *staging, struct unsealed_chain *chain)
{
	struct sealing *sealing = staging->sealing;
	int64_t lag_us = ledger_clock_lag_us(chain->last_received_at_us, staging->now_us);
	if (lag_us == 0)
		return OK;
	if (lag_us > sealing->service->settings->seal_clock_bound)
		note_ahead(sealing, chain, lag_us);
	int64_t first, last;
	int result =
		store_resolve_times(sealing->service->store, chain->account, chain->chain, staging->now_us,
	                        staging->now_us + 1, &first, &last, staging->error);
	if (!result && last < chain->last_sequence)
		chain->last_sequence = last;
	chain->last_received_at_us = staging->now_us;
	return result;
}

/* ---- one block ---- */

static bool block_is_full(const struct staging *staging)
{
	return staging->count == staging->sealing->block_segments ||
	       staging->events >= BLOCK_EVENTS_MAX;
}

static int add_chain(struct staging *staging, struct unsealed_chain *chain)
{
	int result = cut_to_clock(staging, chain);
	for (int i = 0; i < BLOCK_CHAIN_SEGMENTS_MAX && !block_is_full(staging) && !result &&
	                chain->sealed_sequence < chain->last_sequence;
	     i++) {
		result = add_segment(staging, chain);
		if (!result && staging->latest_us < chain->last_received_at_us)
			staging->latest_us = chain->last_received_at_us;
	}
	return result;
}

/* Takes chains in order until the block is full. *ret_taken of them were begun; *ret_backlog: one
 * of these has more to seal. A chain that is broken is left out. */
static int gather(struct staging *staging, struct unsealed_chain *chains, size_t count,
                  size_t *ret_taken, bool *ret_backlog)
{
	struct sealing *sealing = staging->sealing;
	size_t taken = 0;
	int result = OK;
	for (; taken < count && !block_is_full(staging) && !result; taken++) {
		struct unsealed_chain *chain = &chains[taken];
		if (apart_waits(&sealing->apart, chain->account, chain->chain, clock_monotonic_us()))
			continue;
		result = add_chain(staging, chain);
		if (result && is_chains_own(staging, chain->account, chain->chain, result)) {
			set_apart(sealing, chain->account, chain->chain, chain->channel_id, result,
			          staging->error);
			result = OK;
		} else if (result && staging->count > 0) {
			break; /* first what is good; then it is met again */
		} else if (chain->sealed_sequence < chain->last_sequence) {
			*ret_backlog = true;
		}
	}
	*ret_taken = taken;
	return staging->count > 0 ? OK : result;
}

/* A segment that cannot be written keeps its chain out of the blocks to come. True when the others
 * can be tried again at once. */
static bool blame_segment(struct staging *staging, size_t failed, int result)
{
	if (failed >= staging->count)
		return false;
	const struct segment_record *segment = &staging->segments[failed];
	if (!is_chains_own(staging, segment->account, segment->chain, result))
		return false;
	set_apart(staging->sealing, segment->account, segment->chain, segment->segment_id, result,
	          staging->error);
	return result != ERR_REFUSED;
}

static void forget_apart(const struct staging *staging)
{
	struct apart *apart = &staging->sealing->apart;
	for (size_t i = 0; i < staging->count && apart->count > 0; i++)
		if (apart_remove(apart, staging->segments[i].account, staging->segments[i].chain))
			log_info("chain_sealed_again", "segment_id", staging->segments[i].segment_id);
}

static int stage(struct staging *staging, struct unsealed_chain *chains, size_t count,
                 size_t *ret_taken, bool *ret_backlog)
{
	struct sealing *sealing = staging->sealing;
	struct store *store = sealing->service->store;
	int result = store_get_staged_round(store, &staging->round, staging->error);
	staging->clock = clock_state_read();
	staging->now_us = clock_now_us();
	staging->segments =
		arena_alloc(&staging->arena, sealing->block_segments * sizeof *staging->segments);
	if (!staging->segments)
		return ERR_NO_MEMORY;
	*ret_taken = 0;
	if (!result && staging->round.blocks >= (int64_t)sealing->round_blocks)
		return OK; /* the proofs of more would be too long */
	if (!result)
		result = gather(staging, chains, count, ret_taken, ret_backlog);
	if (result || staging->count == 0)
		return result;
	struct round_block block = {.round = staging->round.round,
	                            .number = staging->round.blocks,
	                            .events = staging->events,
	                            .latest_received_at_us = staging->latest_us};
	size_t failed;
	result = store_stage_block(store, &block, staging->segments, staging->count, &failed,
	                           staging->error);
	if (!result) {
		forget_apart(staging);
	} else if (blame_segment(staging, failed, result)) {
		*ret_taken = 0;
		staging->count = 0;
		result = OK;
	}
	return result;
}

int seal_stage(struct sealing *sealing, struct unsealed_chain *chains, size_t count,
               size_t *ret_taken, size_t *ret_segments, bool *ret_backlog, struct error *error)
{
	struct staging staging = {.sealing = sealing, .error = error};
	arena_init(&staging.arena, BLOCK_MEMORY_MAX);
	*ret_segments = 0;
	int result = stage(&staging, chains, count, ret_taken, ret_backlog);
	arena_free(&staging.arena);
	if (!result)
		*ret_segments = staging.count;
	return result;
}

/* ---- the round ---- */

int sealing_room(struct sealing *sealing, bool *ret_staged, bool *ret_full, struct error *error)
{
	struct staged_round round;
	int result = store_get_staged_round(sealing->service->store, &round, error);
	if (result)
		return result;
	*ret_staged = round.blocks > 0;
	*ret_full = round.blocks >= (int64_t)sealing->round_blocks;
	return OK;
}

/* From what the store holds, and that is what is sealed, whoever staged it. */
static int read_blocks(struct closing *closing)
{
	struct store *store = closing->sealing->service->store;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CLOSE_MEMORY_MAX);
	int result = OK;
	for (int64_t i = 0; i < closing->round.blocks && !result; i++) {
		struct slice roots;
		int64_t events = 0;
		arena_reset(&arena);
		result = store_read_block(store, closing->round.round, i, &arena, &roots, &events,
		                          closing->error);
		if (!result)
			result = round_tree_root(roots, ROUND_BLOCK_LEAVES_MAX, &closing->blocks[i]);
		if (result == ERR_NOT_FOUND || result == ERR_INVALID_EVIDENCE) {
			closing->damaged = i;
			return error_cause(closing->error, ERR_CORRUPT, "round %lld: block %lld is damaged",
			                   (long long)closing->round.round, (long long)i);
		}
		closing->segments += (int64_t)(roots.size / SHA256_SIZE);
		closing->events += events;
	}
	return result;
}

static struct slice blocks_of(const struct closing *closing)
{
	return slice_make(closing->blocks, (size_t)closing->round.blocks * sizeof *closing->blocks);
}

/* An earlier time no verifier would take. */
static int64_t earliest_us(const struct staged_round *round)
{
	return round->latest_received_at_us - VERIFY_CLOCK_TOLERANCE_US;
}

static void tell_failures(const struct authority_failures *failures)
{
	for (size_t i = 0; i < failures->count; i++)
		if (!failures->items[i].left_alone)
			log_warning("authority_failed", "authority", failures->items[i].name, "reason",
			            failures->items[i].reason);
}

/* The times of one moment, had both been asked at once. */
static void compare_times(const struct closing *closing, const struct stamps *stamps,
                          int64_t between_us)
{
	const struct service *service = closing->sealing->service;
	int64_t apart_us =
		stamps->second.facts.gen_time_us - stamps->first.facts.gen_time_us - between_us;
	if (apart_us <= service->settings->tsa_divergence_bound &&
	    apart_us >= -service->settings->tsa_divergence_bound)
		return;
	char round[24], milliseconds[24];
	snprintf(round, sizeof round, "%" PRId64, closing->round.round);
	snprintf(milliseconds, sizeof milliseconds, "%" PRId64, apart_us / 1000);
	log_error("timestamps_diverge", "round", round, "authority", stamps->first.name, "other",
	          stamps->second.name, "milliseconds", milliseconds);
	atomic_fetch_add(&closing->sealing->service->counters.timestamps_diverging, 1);
}

static void swap_stamps(struct stamps *stamps)
{
	struct authority_result first = stamps->first;
	stamps->first = stamps->second;
	stamps->second = first;
}

/* The response ends with its token, and is kept without it. */
static int cut_response(const struct authority_result *stamped, struct slice *ret_head,
                        struct error *error)
{
	struct slice token = buf_slice(&stamped->token);
	struct slice response = buf_slice(&stamped->response);
	if (token.size > response.size ||
	    memcmp(response.data + response.size - token.size, token.data, token.size) != 0)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "%s: the response does not end with its token", stamped->name);
	*ret_head = slice_make(response.data, response.size - token.size);
	return OK;
}

/* A second time from another authority. Its absence stops no round. */
static void timestamp_again(struct closing *closing, struct stamps *stamps)
{
	struct service *service = closing->sealing->service;
	struct authority_failures failures = {0};
	struct error error = {0};
	int64_t first_us = clock_monotonic_us();
	int result = authorities_timestamp_apart(service->authorities, &closing->root,
	                                         earliest_us(&closing->round), &stamps->first,
	                                         &stamps->second, &failures, &error);
	int64_t between_us = clock_monotonic_us() - first_us;
	struct slice head;
	if (!result)
		result = cut_response(&stamps->second, &head, &error);
	tell_failures(&failures);
	if (result) {
		char round[24];
		snprintf(round, sizeof round, "%" PRId64, closing->round.round);
		log_warning("second_timestamp_missing", "round", round, "cause", error.cause);
		atomic_fetch_add(&service->counters.second_timestamps_missing, 1);
		return;
	}
	stamps->count = 2;
	compare_times(closing, stamps, between_us);
	/* One that is not qualified never stands in for one that is. */
	if (stamps->second.kind > stamps->first.kind)
		swap_stamps(stamps);
}

static int timestamp(struct closing *closing, struct stamps *stamps)
{
	struct service *service = closing->sealing->service;
	struct authority_failures failures = {0};
	int result =
		authorities_timestamp(service->authorities, &closing->root, earliest_us(&closing->round),
	                          &stamps->first, &failures, closing->error);
	tell_failures(&failures);
	if (result)
		return result;
	stamps->count = 1;
	if (service->settings->tsa_tokens > 1)
		timestamp_again(closing, stamps);
	return OK;
}

static int keep_paths(struct closing *closing, const struct stamps *stamps)
{
	struct service *service = closing->sealing->service;
	const struct authority_result *both[] = {&stamps->first, &stamps->second};
	int result = OK;
	for (size_t i = 0; !result && i < stamps->count; i++) {
		result = token_path_keep(service->store, both[i], closing->error);
		if (!result)
			result = timestamp_roots_keep(service, buf_slice(&both[i]->path), closing->error);
	}
	return result;
}

static int write_round(struct closing *closing, const struct stamps *stamps)
{
	const struct authority_result *first = &stamps->first, *second = &stamps->second;
	struct round_token other = {
		.authority = second->facts.authority.subject,
		.kind = authority_kind_text(second->kind),
		.sealed_at_us = second->facts.gen_time_us,
		.request = buf_slice(&second->request),
		.token = buf_slice(&second->token),
	};
	struct round_record record = {
		.round = closing->round.round,
		.root = closing->root,
		.authority = first->facts.authority.subject,
		.kind = authority_kind_text(first->kind),
		.sealed_at_us = first->facts.gen_time_us,
		.obtained_at_us = clock_now_us(),
		.request = buf_slice(&first->request),
		.token = buf_slice(&first->token),
		.token_hash = sha256_of(first->token.data, first->token.size),
		.blocks = blocks_of(closing),
		.staged_changes = closing->round.changes,
		.second = stamps->count > 1 ? &other : NULL,
	};
	int result = cut_response(first, &record.response_head, closing->error);
	if (!result && record.second)
		result = cut_response(second, &other.response_head, closing->error);
	return result ? result
	              : store_write_round(closing->sealing->service->store, &record, closing->error);
}

static void count_round(const struct closing *closing)
{
	struct counters *counters = &closing->sealing->service->counters;
	atomic_fetch_add(&counters->seal_rounds, 1);
	atomic_fetch_add(&counters->sealed_segments, closing->segments);
	atomic_store(&counters->last_seal_us, clock_now_us());
	char number[24], segments[24], events[24];
	snprintf(number, sizeof number, "%" PRId64, closing->round.round);
	snprintf(segments, sizeof segments, "%" PRId64, closing->segments);
	snprintf(events, sizeof events, "%" PRId64, closing->events);
	log_info("sealed", "round", number, "segments", segments, "events", events);
}

static int close_round(struct closing *closing)
{
	struct stamps stamps = {0};
	int result = read_blocks(closing);
	if (!result)
		result = round_tree_root(blocks_of(closing), ROUND_BLOCKS_MAX, &closing->root);
	if (!result)
		result = timestamp(closing, &stamps);
	if (!result)
		result = keep_paths(closing, &stamps);
	if (!result)
		result = write_round(closing, &stamps);
	if (!result)
		count_round(closing);
	authority_result_free(&stamps.first);
	authority_result_free(&stamps.second);
	return result;
}

/* Nothing is lost: its events are staged again, in another round or in this one. */
static int take_back_last(struct closing *closing)
{
	struct store *store = closing->sealing->service->store;
	char round[24], block[24];
	snprintf(round, sizeof round, "%" PRId64, closing->round.round);
	snprintf(block, sizeof block, "%" PRId64, closing->round.blocks - 1);
	log_warning("block_taken_back", "round", round, "block", block);
	int result =
		store_unstage_block(store, closing->round.round, closing->round.blocks - 1, closing->error);
	return result ? result : store_get_staged_round(store, &closing->round, closing->error);
}

/* What a clock that ran ahead let be staged, and no authority will ever give a time for, as it was
 * received in the future: once the clock is right it is staged again as far as its time has come.
 */
static int take_back_the_future(struct closing *closing)
{
	int result = OK;
	while (!result && closing->round.blocks > 0 && earliest_us(&closing->round) > clock_now_us())
		result = take_back_last(closing);
	return result;
}

/* A block that cannot be read would keep everything from being sealed for good. */
static void take_back_damage(struct closing *closing)
{
	struct error *met = closing->error, error = {0};
	int result = OK;
	closing->error = &error;
	while (!result && closing->round.blocks > closing->damaged)
		result = take_back_last(closing);
	closing->error = met;
	if (result)
		log_error("block_not_taken_back", "error", error_code_text(result), "cause", error.cause);
}

int seal_close(struct sealing *sealing, struct error *error)
{
	struct closing closing = {.sealing = sealing, .error = error, .damaged = INT64_MAX};
	int result = store_get_staged_round(sealing->service->store, &closing.round, error);
	if (!result)
		result = take_back_the_future(&closing);
	if (result || closing.round.blocks == 0)
		return result;
	if (closing.round.blocks > ROUND_BLOCKS_MAX)
		return error_cause(error, ERR_CORRUPT, "round %lld has %lld blocks staged",
		                   (long long)closing.round.round, (long long)closing.round.blocks);
	closing.blocks = calloc((size_t)closing.round.blocks, sizeof *closing.blocks);
	if (!closing.blocks)
		return ERR_NO_MEMORY;
	result = close_round(&closing);
	free(closing.blocks);
	if (result == ERR_CORRUPT)
		take_back_damage(&closing);
	return result;
}
