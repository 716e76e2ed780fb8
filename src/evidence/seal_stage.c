/* Stages the blocks of a round: segments of unsealed chains. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "evidence/seal_round.h"
#include "seal/segment.h"
#include "store/nodes/store_state.h"
#include "store/nodes/unverified_clock.h"
#include "tlog/entry.h"

#define BLOCK_MEMORY_MAX ((size_t)16 << 20)
#define AHEAD_LOG_INTERVAL_US (60 * US_PER_SECOND)
/* Number of newly failing chains after which a pass ends: with that many, a common cause is more
 * likely. */
#define NEW_QUARANTINED_MAX 8

/* State of a block that is being staged. */
struct staging {
	struct sealing *sealing;
	struct arena arena;
	struct error *error;
	struct staged_round round; /* before this block */
	struct clock_state clock;
	struct unverified_clock unverified_clock;
	int64_t now_us;    /* events received later are not sealed */
	int64_t latest_us; /* latest reception time in the block */
	struct segment_record *segments;
	size_t count, limit; /* number of segments */
	int64_t events;
	int64_t leaves; /* events and audit records */
};

bool sealing_is_suspect(const struct sealing *sealing)
{
	return sealing->new_quarantined >= NEW_QUARANTINED_MAX;
}

/* ---- one segment ---- */

static const char *chain_text(int64_t chain)
{
	if (!is_audit_chain(chain))
		return mode_text(MODE_LIVE);
	return chain == URGENT_AUDIT_CHAIN ? SEAL_CHAIN_URGENT_AUDIT : SEAL_CHAIN_AUDIT;
}

/* Builds the segment ID: "seg_", the unique part of the channel ID, "n" and the number. For the
 * audit log, the unique part of the account ID, and "a", or "u" for urgent records. The ID must be
 * known before the round, because the seal document contains it. */
static void make_segment_id(const struct unsealed_chain *chain, char id[ID_SIZE])
{
	const char *own = strchr(chain->channel_id, '_');
	char kind = !is_audit_chain(chain->chain)        ? 'n'
	            : chain->chain == URGENT_AUDIT_CHAIN ? 'u'
	                                                 : 'a';
	/* Each segment has at least one event or record, so its number is within the range of
	 * sequences. */
	const int64_t number = (chain->sealed_segment + 1) & EVENT_SEQUENCE_MAX;
	snprintf(id, ID_SIZE, "seg_%.20s%c%" PRId64, own ? own + 1 : chain->channel_id, kind, number);
}

/* Fills in the clock state for the seal document, including whether events may have been received
 * while the clock was not compared with a timestamp. */
static int describe_clock(struct staging *staging, const struct segment_record *segment,
                          struct clock_state *ret)
{
	const struct unverified_clock *unverified_clock = &staging->unverified_clock;
	bool concerned = unverified_clock->is && !is_audit_chain(segment->chain);
	struct store *store = staging->sealing->service->store;
	int64_t first, last;
	int result = OK;
	if (concerned && !unverified_clock->is_open) {
		result = store_resolve_times(store, segment->account, segment->chain, 0,
		                             unverified_clock->until_us + 1, &first, &last, staging->error);
		concerned = !result && segment->first_sequence <= last;
	}
	*ret = staging->clock;
	if (concerned)
		ret->source = SEAL_CLOCK_UNVERIFIED;
	return result;
}

static int write_document(struct staging *staging, const struct unsealed_chain *chain,
                          struct segment_record *segment, const struct sha256 *before,
                          const struct sha256 *last)
{
	struct clock_state clock;
	int result = describe_clock(staging, segment, &clock);
	if (result)
		return result;
	struct seal_document document = {
		.segment_id = segment->segment_id,
		.channel_id = chain->channel_id,
		.chain = chain_text(chain->chain),
		.first_sequence = segment->first_sequence,
		.last_sequence = segment->last_sequence,
		.chain_hash_before = *before,
		.chain_hash_last = *last,
		.previous_seal_hash = chain->sealed_segment ? &chain->seal_hash : NULL,
		.previous_token_hash =
			staging->round.has_previous ? &staging->round.previous_token_hash : NULL,
		.clock = clock,
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

/* Reads the leaves, and the chain hashes before the first and of the last one. */
static int read_leaves(struct staging *staging, const struct segment_record *segment,
                       struct sha256 *leaves, struct sha256 *ret_before, struct sha256 *ret_last)
{
	if (segment->first_sequence < 1 || segment->first_sequence > segment->last_sequence)
		return error_cause(staging->error, ERR_CORRUPT,
		                   "the last sealed event of chain %" PRId64 " is %" PRId64
		                   ", which it cannot have",
		                   segment->chain, segment->first_sequence - 1);
	assert(segment->last_sequence - segment->first_sequence < SEGMENT_EVENTS_MAX);
	struct store *store = staging->sealing->service->store;
	if (is_audit_chain(segment->chain))
		return store_read_audit_hashes(store, segment->account, segment->chain,
		                               segment->first_sequence, segment->last_sequence, leaves + 1,
		                               ret_before, ret_last, staging->error);
	int result = store_read_chain_hashes(store, segment->account, segment->chain,
	                                     segment->first_sequence - 1, segment->last_sequence,
	                                     leaves, staging->error);
	*ret_before = leaves[0];
	*ret_last = leaves[segment->last_sequence - segment->first_sequence + 1];
	return result;
}

/* Adds the next segment of a chain and advances the chain as if it were sealed. */
static int add_segment(struct staging *staging, struct unsealed_chain *chain)
{
	int64_t count = chain->last_sequence - chain->sealed_sequence;
	assert(count >= 1 && staging->count < staging->limit);
	if (count > staging->sealing->segment_events)
		count = staging->sealing->segment_events;
	struct segment_record *segment = &staging->segments[staging->count];
	*segment = (struct segment_record){
		.account = chain->account,
		.chain = chain->chain,
		.number = chain->sealed_segment + 1,
		.first_sequence = chain->sealed_sequence + 1,
		.last_sequence = chain->sealed_sequence + count,
		.previous_seal_hash = chain->seal_hash,
	};
	make_segment_id(chain, segment->segment_id);
	if (!tlog_tag(chain->channel_id, chain_text(chain->chain), &segment->tag))
		return error_cause(staging->error, ERR_CORRUPT, "the identifier of channel %s is too long",
		                   chain->channel_id);
	/* The previous event, the events, and room for the digest of the document. */
	struct sha256 *leaves = staging->sealing->leaves;
	struct sha256 before;
	int result = read_leaves(staging, segment, leaves, &before, &segment->chain_hash_last);
	if (!result)
		result = write_document(staging, chain, segment, &before, &segment->chain_hash_last);
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
	staging->leaves += count;
	staging->events += is_audit_chain(chain->chain) ? 0 : count;
	assert(segment->last_sequence <= chain->last_sequence);
	chain->sealed_sequence = segment->last_sequence;
	chain->sealed_segment = segment->number;
	chain->seal_hash = segment->seal_hash;
	return OK;
}

/* ---- chains that cannot be sealed ---- */

static void quarantine_chain(struct sealing *sealing, int64_t account, int64_t chain,
                             const char *name, int result, const struct error *error)
{
	sealing->new_quarantined += !quarantine_has(&sealing->quarantine, account, chain);
	sealing->chain_failed = true;
	unsigned failures = quarantine_add(&sealing->quarantine, account, chain, clock_monotonic_us());
	/* A single refusal may mean that another sealer was faster. */
	if (!quarantine_is_logged(failures) || (result == ERR_REFUSED && failures == 1))
		return;
	char times[16];
	snprintf(times, sizeof times, "%u", failures);
	log_error("chain_not_sealed", "chain", name, "failures", times, "error",
	          error_code_text(result), "cause", error->cause);
}

/* Returns whether an error is specific to its chain: it is not of a kind that affects all chains,
 * not many chains failed, and the store responds otherwise. */
static bool is_chains_own(const struct staging *staging, int64_t account, int64_t chain, int result)
{
	const struct sealing *sealing = staging->sealing;
	int64_t number;
	struct sha256 token_hash;
	if (sealing_is_suspect(sealing) && !quarantine_has(&sealing->quarantine, account, chain))
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
	if (sealing->logged_ahead_us && now_us - sealing->logged_ahead_us < AHEAD_LOG_INTERVAL_US)
		return;
	sealing->logged_ahead_us = now_us;
	char seconds[24];
	snprintf(seconds, sizeof seconds, "%" PRId64, lag_us / US_PER_SECOND);
	log_error("chain_ahead_of_clock", "channel_id", chain->channel_id, "seconds", seconds);
}

/* Excludes events received at a time that has not come yet, because a timestamp obtained now would
 * be earlier. If the clocks of nodes differ slightly, only the newest events of a chain wait. */
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
	return staging->count == staging->limit || staging->leaves >= staging->sealing->block_events;
}

static int add_chain(struct staging *staging, struct unsealed_chain *chain)
{
	/* The time of an audit record is always after that of the previous one, even after the clock
	 * was set back. Records must not wait for the clock. */
	int result = is_audit_chain(chain->chain) ? OK : cut_to_clock(staging, chain);
	const int64_t most = staging->sealing->chain_segments;
	for (int64_t i = 0; i < most && !block_is_full(staging) && !result &&
	                    chain->sealed_sequence < chain->last_sequence;
	     i++) {
		result = add_segment(staging, chain);
		if (!result && staging->latest_us < chain->last_received_at_us)
			staging->latest_us = chain->last_received_at_us;
	}
	return result;
}

/* Takes chains in order until the block is full. *ret_taken: number of chains visited;
 * *ret_backlog: one of them has more to seal. A broken chain is quarantined. */
static int gather(struct staging *staging, struct unsealed_chain *chains, size_t count,
                  size_t *ret_taken, bool *ret_backlog)
{
	struct sealing *sealing = staging->sealing;
	size_t taken = 0;
	int result = OK;
	for (; taken < count && !block_is_full(staging) && !result; taken++) {
		struct unsealed_chain *chain = &chains[taken];
		if (quarantine_is_waiting(&sealing->quarantine, chain->account, chain->chain,
		                          clock_monotonic_us()))
			continue;
		result = add_chain(staging, chain);
		if (result && is_chains_own(staging, chain->account, chain->chain, result)) {
			quarantine_chain(sealing, chain->account, chain->chain, chain->channel_id, result,
			                 staging->error);
			result = OK;
		} else if (result && staging->count > 0) {
			break; /* the good segments first; the error recurs later */
		} else if (chain->sealed_sequence < chain->last_sequence) {
			*ret_backlog = true;
		}
	}
	*ret_taken = taken;
	return staging->count > 0 ? OK : result;
}

/* Quarantines the chain of a segment that cannot be written. Returns true if the other segments can
 * be retried immediately. */
static bool blame_segment(struct staging *staging, size_t failed, int result)
{
	if (failed >= staging->count)
		return false;
	const struct segment_record *segment = &staging->segments[failed];
	if (!is_chains_own(staging, segment->account, segment->chain, result))
		return false;
	quarantine_chain(staging->sealing, segment->account, segment->chain, segment->segment_id,
	                 result, staging->error);
	return result != ERR_REFUSED;
}

static void release_chains(const struct staging *staging)
{
	struct quarantine *quarantine = &staging->sealing->quarantine;
	for (size_t i = 0; i < staging->count && quarantine->count > 0; i++)
		if (quarantine_remove(quarantine, staging->segments[i].account, staging->segments[i].chain))
			log_info("chain_sealing_resumed", "segment_id", staging->segments[i].segment_id);
}

/* Returns the block size. While events are registered, blocks are small, because registrations wait
 * for the writer. Rounds of small blocks cover fewer chains, and each round costs a timestamp, so
 * half of a round's blocks are reserved for large ones. */
static size_t segments_limit(struct sealing *sealing, const struct staged_round *round)
{
	int_fast64_t registered = atomic_load(&sealing->service->counters.registered);
	bool small = registered != sealing->registered &&
	             round->blocks < (int64_t)(sealing->round_blocks / 2) &&
	             sealing->small_block_segments < sealing->block_segments;
	sealing->registered = registered;
	return small ? sealing->small_block_segments : sealing->block_segments;
}

/* Checked once per round: the record of the unverified_clock clock is deleted when no affected
 * event is pending. */
static int read_uncompared(struct staging *staging)
{
	struct store *store = staging->sealing->service->store;
	struct unverified_clock *unverified_clock = &staging->unverified_clock;
	int64_t oldest_us;
	int result = store_get_unverified_clock(store, unverified_clock, staging->error);
	if (result || !unverified_clock->is || unverified_clock->is_open || staging->round.blocks > 0)
		return result;
	result = store_oldest_pending(store, &oldest_us, staging->error);
	if (result || (oldest_us != TIME_NONE && oldest_us <= unverified_clock->until_us))
		return result;
	unverified_clock->is = false;
	return store_forget_unverified_clock(store, unverified_clock->until_us, staging->error);
}

static int stage(struct staging *staging, struct unsealed_chain *chains, size_t count,
                 size_t *ret_taken, bool *ret_backlog)
{
	struct sealing *sealing = staging->sealing;
	struct store *store = sealing->service->store;
	int result = store_get_staged_round(store, &staging->round, staging->error);
	staging->limit = segments_limit(sealing, &staging->round);
	staging->clock = clock_state_read();
	staging->now_us = clock_now_us();
	staging->segments =
		arena_alloc(&staging->arena, sealing->block_segments * sizeof *staging->segments);
	if (!staging->segments)
		return ERR_NO_MEMORY;
	*ret_taken = 0;
	if (!result && staging->round.blocks >= (int64_t)sealing->round_blocks)
		return OK; /* more blocks would make the proofs too long */
	if (!result)
		result = read_uncompared(staging);
	if (!result)
		result = gather(staging, chains, count, ret_taken, ret_backlog);
	if (result || staging->count == 0)
		return result;
	assert(staging->count <= staging->limit && staging->limit <= sealing->block_segments);
	assert(staging->events <= staging->leaves);
	struct round_block block = {.round = staging->round.round,
	                            .number = staging->round.blocks,
	                            .events = staging->events,
	                            .latest_received_at_us = staging->latest_us};
	size_t failed;
	result = store_stage_block(store, &block, staging->segments, staging->count, &failed,
	                           staging->error);
	if (!result) {
		release_chains(staging);
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
