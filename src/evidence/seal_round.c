#include "evidence/seal_round.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/tuned.h"
#include "evidence/timestamp_roots.h"
#include "evidence/token_path.h"
#include "seal/round_tree.h"
#include "seal/segment.h"
#include "service/authority_failures.h"
#include "verify/verify.h"

#define SMALL_BLOCK_SEGMENTS 256
#define BLOCK_EVENTS_MAX (INT64_C(1) << 20)
/* Limits the segments per chain: a chain that grows faster than it is sealed must not delay the
 * others. */
#define CHAIN_SEGMENTS_MAX 64

#define CLOSE_MEMORY_MAX ((size_t)1 << 20)

/* The timestamps of a round. */
struct stamps {
	struct authority_result first, second;
	size_t count;
};

/* State of a round that is being closed. */
struct closing {
	struct sealing *sealing;
	struct error *error;
	struct staged_round round;
	int64_t damaged;       /* number of a damaged block, if one was found */
	struct sha256 *blocks; /* roots of the blocks */
	struct sha256 root;
	int64_t segments, events;
};

int sealing_init(struct sealing *sealing, struct service *service)
{
	*sealing = (struct sealing){
		.service = service,
		.segment_events = tuned_up_to("segment_events", SEGMENT_EVENTS_MAX),
		.chain_segments = tuned_up_to("chain_segments", CHAIN_SEGMENTS_MAX),
		.block_events = tuned_up_to("block_events", BLOCK_EVENTS_MAX),
		.block_segments = (size_t)tuned_up_to("block_segments", ROUND_BLOCK_SEGMENTS_MAX),
		.small_block_segments = (size_t)tuned_up_to("small_block_segments", SMALL_BLOCK_SEGMENTS),
		.round_blocks = (size_t)tuned_up_to("round_blocks", ROUND_BLOCKS_MAX)};
	assert(sealing->round_blocks >= 2); /* half of them may be small */
	sealing->leaves = malloc((SEGMENT_LEAVES_MAX + 1) * sizeof *sealing->leaves);
	return sealing->leaves ? OK : ERR_NO_MEMORY;
}

void sealing_free(struct sealing *sealing)
{
	free(sealing->leaves);
}

void sealing_begin_pass(struct sealing *sealing)
{
	sealing->ahead_count = sealing->new_quarantined = 0;
	sealing->chain_failed = false;
}

void sealing_end_pass(struct sealing *sealing)
{
	struct counters *counters = &sealing->service->counters;
	atomic_store(&counters->chains_quarantined,
	             quarantine_count_recent(&sealing->quarantine, clock_monotonic_us()));
	atomic_store(&counters->chains_ahead, sealing->ahead_count);
}

/* ---- the round ---- */

int sealing_get_capacity(struct sealing *sealing, bool *ret_staged, bool *ret_full,
                         struct error *error)
{
	struct staged_round round;
	int result = store_get_staged_round(sealing->service->store, &round, error);
	if (result)
		return result;
	*ret_staged = round.blocks > 0;
	*ret_full = round.blocks >= (int64_t)sealing->round_blocks;
	return OK;
}

/* Reads the blocks from the store, which determines what is sealed, regardless of the node that
 * staged it. */
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

/* Returns the earliest time of a timestamp that verifiers accept. */
static int64_t earliest_us(const struct staged_round *round)
{
	return round->latest_received_at_us - VERIFY_CLOCK_TOLERANCE_US;
}

/* Compares the two times after correction for the time between the requests. */
static void compare_times(const struct closing *closing, const struct stamps *stamps,
                          int64_t between_us)
{
	const struct service *service = closing->sealing->service;
	int64_t difference_us =
		stamps->second.facts.gen_time_us - stamps->first.facts.gen_time_us - between_us;
	if (difference_us <= service->settings->tsa_divergence_bound &&
	    difference_us >= -service->settings->tsa_divergence_bound)
		return;
	char round[24], milliseconds[24];
	snprintf(round, sizeof round, "%" PRId64, closing->round.round);
	snprintf(milliseconds, sizeof milliseconds, "%" PRId64, difference_us / 1000);
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

/* Cuts the token off the response: the two are stored separately. */
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

/* Obtains a second timestamp from another authority. A failure does not stop the round. */
static void timestamp_again(struct closing *closing, struct stamps *stamps)
{
	struct service *service = closing->sealing->service;
	struct authority_failures failures = {0};
	struct error error = {0};
	int64_t first_us = clock_monotonic_us();
	int result = authorities_timestamp_independent(service->authorities, &closing->root,
	                                               earliest_us(&closing->round), &stamps->first,
	                                               &stamps->second, &failures, &error);
	int64_t between_us = clock_monotonic_us() - first_us;
	struct slice head;
	if (!result)
		result = cut_response(&stamps->second, &head, &error);
	authority_failures_log(&failures);
	if (result) {
		char round[24];
		snprintf(round, sizeof round, "%" PRId64, closing->round.round);
		log_warning("second_timestamp_missing", "round", round, "cause", error.cause);
		atomic_fetch_add(&service->counters.second_timestamps_missing, 1);
		return;
	}
	stamps->count = 2;
	compare_times(closing, stamps, between_us);
	/* A non-qualified timestamp never takes precedence over a qualified one. */
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
	authority_failures_log(&failures);
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
		result = token_path_store(service->store, both[i], closing->error);
		if (!result)
			result = timestamp_roots_record(service, buf_slice(&both[i]->path), closing->error);
	}
	return result;
}

static int write_round(struct closing *closing, const struct stamps *stamps)
{
	const struct authority_result *first = &stamps->first, *second = &stamps->second;
	assert(stamps->count == 1 || stamps->count == 2);
	assert(stamps->count == 1 || first->kind >= second->kind);
	assert(first->facts.gen_time_us >= earliest_us(&closing->round));
	assert(closing->segments >= closing->round.blocks); /* each block has one */
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

/* Unstages the last block. Nothing is lost: its events are staged again, in this round or another
 * one. */
static int unstage_last(struct closing *closing)
{
	struct store *store = closing->sealing->service->store;
	char round[24], block[24];
	snprintf(round, sizeof round, "%" PRId64, closing->round.round);
	snprintf(block, sizeof block, "%" PRId64, closing->round.blocks - 1);
	log_warning("round_block_unstaged", "round", round, "block", block);
	int result =
		store_unstage_block(store, closing->round.round, closing->round.blocks - 1, closing->error);
	return result ? result : store_get_staged_round(store, &closing->round, closing->error);
}

/* Unstages blocks with events that were received in the future, staged while the clock was ahead.
 * No authority will issue an acceptable timestamp for them. They are staged again when their time
 * has come. */
static int unstage_future(struct closing *closing)
{
	int result = OK;
	while (!result && closing->round.blocks > 0 && earliest_us(&closing->round) > clock_now_us())
		result = unstage_last(closing);
	return result;
}

/* Unstages blocks that a version without the log staged. Their events are staged again, with
 * entries: otherwise no entry would ever have them, although their receipts promise one. */
static int unstage_unlogged(struct closing *closing)
{
	int result = OK;
	while (!result && closing->round.blocks > 0 && closing->round.unlogged > 0)
		result = unstage_last(closing);
	return result;
}

/* Unstages damaged blocks, which would block all sealing permanently. */
static void unstage_damaged(struct closing *closing)
{
	struct error *met = closing->error, error = {0};
	int result = OK;
	closing->error = &error;
	while (!result && closing->round.blocks > closing->damaged)
		result = unstage_last(closing);
	closing->error = met;
	if (result)
		log_error("round_block_not_unstaged", "error", error_code_text(result), "cause",
		          error.cause);
}

int seal_close(struct sealing *sealing, struct error *error)
{
	struct closing closing = {.sealing = sealing, .error = error, .damaged = INT64_MAX};
	int result = store_get_staged_round(sealing->service->store, &closing.round, error);
	if (!result)
		result = unstage_future(&closing);
	if (!result)
		result = unstage_unlogged(&closing);
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
		unstage_damaged(&closing);
	return result;
}
