#include "verify/verify_chain.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FINDINGS_MAX 100 /* findings of VERIFY_WRONG after which the check of a chain ends */

bool chain_is_abandoned(const struct chain *chain)
{
	assert(chain->run->result->wrong >= chain->wrong_before);
	return chain->run->result->wrong - chain->wrong_before >= FINDINGS_MAX;
}

const char *chain_where(struct chain *chain, enum archive_stream stream, const char *member,
                        char where[CHAIN_WHERE_MAX])
{
	const char *place = line_stream_where(chain->streams[stream]);
	snprintf(where, CHAIN_WHERE_MAX, member ? "%s member %s" : "%s", place, member);
	return where;
}

int chain_record_error(struct chain *chain, enum archive_stream stream, int status,
                       const struct error *error)
{
	static const enum finding lines[STREAM_COUNT] = {
		[STREAM_EVENTS] = FINDING_EVENT_MALFORMED,
		[STREAM_LEAVES] = FINDING_LEAF_MALFORMED,
		[STREAM_SEALS] = FINDING_SEGMENT_MALFORMED,
		[STREAM_ROUNDS] = FINDING_ROUND_MALFORMED,
		[STREAM_VALIDATION] = FINDING_VALIDATION_MALFORMED,
		[STREAM_RENEWALS] = FINDING_RENEWAL_MALFORMED,
		[STREAM_CHECKPOINTS] = FINDING_LOG_CHECKPOINT_MALFORMED,
		[STREAM_LOG] = FINDING_LOG_PLACE_MALFORMED,
		[STREAM_HISTORY] = FINDING_BRIDGE_MALFORMED,
	};
	assert((size_t)stream < STREAM_COUNT && lines[stream] != FINDING_NONE);
	return verify_add_error(chain->run, chain->facts->input->path,
	                        line_stream_where(chain->streams[stream]), lines[stream], status,
	                        error);
}

int chain_next_line(struct chain *chain, enum archive_stream stream, struct slice *ret_line)
{
	assert((size_t)stream < STREAM_COUNT && chain->streams[stream]);
	struct error error = {0};
	int result = line_stream_next(chain->streams[stream], ret_line, &error);
	return result < 0
	           ? chain_record_error(chain, stream,
	                                finding_set_step(&error, FINDING_LINES_DAMAGED, result), &error)
	           : result;
}

/* Checks that every stream is at its end. */
static int check_ends(struct chain *chain)
{
	struct slice line;
	bool damaged = chain->run->result->wrong > chain->wrong_before;
	for (int i = 0; i < STREAM_COUNT && !damaged; i++) {
		enum archive_stream stream = (enum archive_stream)i;
		int result = chain_next_line(chain, stream, &line);
		if (result < 0)
			return result;
		if (result == 1)
			chain_wrong_at(chain, stream, NULL, FINDING_LINES_SUPERFLUOUS);
	}
	return 0;
}

static void check_totals(struct chain *chain)
{
	const char *path = chain->facts->input->path;
	const struct archive_manifest *manifest = chain->manifest;
	if (chain->events != (uint64_t)manifest->event_count)
		verify_add(chain->run, VERIFY_WRONG, path, ARCHIVE_MANIFEST_NAME,
		           FINDING_MANIFEST_COUNT_OF_EVENTS, manifest->event_count, chain->events);
	else if (!sha256_equal(&chain->event_hash, &manifest->last_chain_hash))
		verify_add(chain->run, VERIFY_WRONG, path, ARCHIVE_MANIFEST_NAME, FINDING_CHAIN_LAST);
	for (size_t i = 0; i < manifest->config_count; i++)
		if (!chain->config_used[i])
			verify_add(chain->run, VERIFY_WRONG, path, ARCHIVE_MANIFEST_NAME,
			           FINDING_MANIFEST_CONFIG_UNUSED, manifest->configs[i].version);
	if (chain->range->first_sequence == 1 && chain->facts->has_genesis &&
	    !sha256_equal(&manifest->previous_chain_hash, &chain->facts->genesis_hash))
		verify_add(chain->run, VERIFY_WRONG, path, ARCHIVE_GENESIS_NAME,
		           FINDING_GENESIS_NOT_BEFORE_EVENT);
	if (chain->without_part > 0)
		verify_add(chain->run, VERIFY_WARNING, path, "", FINDING_PART_NONE_OF_EVENTS,
		           chain->without_part);
}

static void warn_long_delay(struct chain *chain)
{
	const struct verify_delay *delay = &chain->delay;
	int64_t delay_us = delay->gen_time_us - delay->received_at_us;
	char received[TIME_TEXT_SIZE], given[TIME_TEXT_SIZE], span[VERIFY_SPAN_SIZE];
	if (delay_us <= VERIFY_DELAY_MAX_US)
		return;
	time_format(delay->received_at_us, received);
	time_format(delay->gen_time_us, given);
	verify_format_span(delay_us, span);
	verify_add(chain->run, VERIFY_WARNING, delay->path, "", FINDING_SEGMENT_LONG_AFTER_RECEPTION,
	           delay->sequence, received, given, span);
}

/* Warns about events that a round after their reception did not cover. A round covers everything
 * received before it began, so these events may have been received later than stated. */
static void warn_uncovered_events(struct chain *chain)
{
	const struct verify_delay *passed = &chain->passed;
	char received[TIME_TEXT_SIZE], given[TIME_TEXT_SIZE], between[TIME_TEXT_SIZE];
	char span[VERIFY_SPAN_SIZE];
	if (chain->uncovered_segments == 0)
		return;
	time_format(passed->received_at_us, received);
	time_format(passed->between_us, between);
	time_format(passed->gen_time_us, given);
	verify_format_span(passed->between_us - passed->received_at_us, span);
	verify_add(chain->run, VERIFY_WARNING, passed->path, "", FINDING_SEGMENT_PASSED_OVER,
	           chain->uncovered_segments, passed->sequence, received, between, span, given);
}

/* Warns about the times in a valid archive. */
static void warn_times(struct chain *chain)
{
	const char *path = chain->facts->input->path;
	const struct verify_delay *delay = &chain->delay;
	struct verify_delay *longest = &chain->run->result->longest_delay;
	if (chain->unsynchronized_segments > 0)
		verify_add(chain->run, VERIFY_WARNING, path, "", FINDING_CLOCK_NOT_SYNCHRONIZED,
		           chain->unsynchronized_segments, chain->segments);
	if (chain->uncompared_segments > 0)
		verify_add(chain->run, VERIFY_WARNING, path, "", FINDING_CLOCK_NOT_COMPARED,
		           chain->uncompared_segments, chain->segments);
	chain_warn_pairs(chain);
	chain_warn_expired(chain);
	if (!delay->sequence)
		return;
	int64_t delay_us = delay->gen_time_us - delay->received_at_us;
	if (!longest->sequence || delay_us > longest->gen_time_us - longest->received_at_us)
		*longest = *delay;
	warn_long_delay(chain);
	warn_uncovered_events(chain);
}

static int walk(struct chain *chain)
{
	int result = 0;
	verify_point_event(chain->run, chain->facts->input, chain->range->first_sequence - 1,
	                   &chain->manifest->previous_chain_hash, TIME_NONE);
	verify_receipt_hash(chain->run, chain->facts->input, chain->range->first_sequence - 1,
	                    &chain->manifest->previous_chain_hash);
	if (chain->facts->has_genesis)
		verify_point_event(chain->run, chain->facts->input, 0, &chain->facts->genesis_hash,
		                   TIME_NONE);
	if (chain->range->mode == MODE_LIVE)
		result = chain_check_history(chain);
	if (result < 0)
		return result;
	do
		result = chain->range->mode == MODE_LIVE ? chain_check_segment(chain) : 0;
	while (result == 1);
	if (result < 0)
		return result;
	if (chain->segment_seen && chain->round.usable)
		verify_receipt_end(chain->run, chain->facts->input, chain->next_segment_sequence - 1,
		                   chain->round.gen_time_us);
	bool sealed = chain->range->mode == MODE_TEST ||
	              chain->next_segment_sequence > chain->range->last_sequence;
	if (!sealed)
		verify_add(chain->run, VERIFY_WRONG, chain->facts->input->path,
		           archive_stream_text(STREAM_SEALS), FINDING_SEGMENT_MISSING,
		           chain->segment_seen ? chain->next_segment_sequence
		                               : chain->range->first_sequence);
	do
		result = chain->next_sequence > chain->range->last_sequence || chain_is_abandoned(chain)
		             ? 0
		             : chain_check_event(chain);
	while (result == 1);
	if (!result)
		result = chain_finish_parts(chain);
	if (!result)
		result = chain_finish_log(chain);
	if (!result)
		result = check_ends(chain);
	if (!result && chain->run->result->wrong == chain->wrong_before) {
		chain_check_objects(chain);
		chain_check_renewals(chain);
	}
	if (!result) {
		check_totals(chain);
		warn_times(chain);
	}
	return result;
}

int verify_chain(const struct chain_input *facts)
{
	struct chain chain = {
		.facts = facts,
		.run = facts->run,
		.manifest = facts->manifest,
		.range = &facts->manifest->facts,
		.wrong_before = facts->run->result->wrong,
		.next_sequence = facts->manifest->facts.first_sequence,
		.received_at_us = TIME_NONE,
		.segment_received_at_us = TIME_NONE,
	};
	for (size_t i = 0; i < CHAIN_JUDGED_MAX; i++)
		chain.judged[i].good_until_us = TIME_NONE;
	arena_init(&chain.arena, (size_t)8 << 20);
	arena_init(&chain.seal_arena, (size_t)8 << 20);
	buf_init(&chain.scratch, ARCHIVE_LINE_MAX);
	chain.leaves = calloc(SEGMENT_EVENTS_MAX + 1, sizeof *chain.leaves);
	chain.config_used = calloc(facts->manifest->config_count + 1, sizeof *chain.config_used);
	int result = chain.leaves && chain.config_used ? 0 : ERR_NO_MEMORY;
	const bool ahead = facts->run->options && facts->run->options->use_threads;
	for (int i = 0; i < STREAM_COUNT && !result; i++)
		result =
			line_stream_open(facts->zip, (enum archive_stream)i, ahead, &chain.streams[i], NULL);
	if (!result)
		result = chain_read_objects(&chain);
	if (!result)
		result = chain_read_renewals(&chain);
	if (!result)
		result = chain_begin_log(&chain);
	if (!result)
		result = walk(&chain);
	for (int i = 0; i < STREAM_COUNT; i++)
		line_stream_free(chain.streams[i]);
	chain_close_part(&chain);
	chain_free_objects(&chain);
	chain_free_log(&chain);
	free(chain.stamps);
	free(chain.leaves);
	free(chain.config_used);
	buf_free(&chain.scratch);
	arena_free(&chain.arena);
	arena_free(&chain.seal_arena);
	return result;
}
