/* Checks the events of a chain, and the leaves of the events outside the range. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "verify/verify_chain.h"

#define EVENTS_PER_PROGRESS 4096

static const char *event_where(struct chain *chain, int64_t sequence, const char *member,
                               char where[CHAIN_WHERE_MAX])
{
	snprintf(where, CHAIN_WHERE_MAX, "%s sequence %" PRId64 " member %s",
	         line_stream_where(chain->streams[STREAM_EVENTS]), sequence, member);
	return where;
}

#define wrong_event(chain, sequence, member, finding)                                              \
	verify_add_filled((chain)->run, VERIFY_WRONG, (chain)->facts->input->path,                     \
	                  event_where(chain, sequence, member, (char[CHAIN_WHERE_MAX]){0}), finding,   \
	                  finding##_EN, finding##_ES)

static int compare_versions(const void *a, const void *b)
{
	const struct archive_config *x = a, *y = b;
	return (x->version > y->version) - (x->version < y->version);
}

static void check_config(struct chain *chain, const struct event_facts *event)
{
	const struct archive_manifest *manifest = chain->manifest;
	struct archive_config wanted = {.version = event->config_version};
	const struct archive_config *found = bsearch(&wanted, manifest->configs, manifest->config_count,
	                                             sizeof wanted, compare_versions);
	if (!found) {
		wrong_event(chain, event->sequence, "config_version", FINDING_EVENT_CONFIG_MISSING);
		return;
	}
	chain->config_used[found - manifest->configs] = true;
	if (!sha256_equal(&found->hash, &event->config_hash))
		wrong_event(chain, event->sequence, "config_hash", FINDING_EVENT_CONFIG_DIGEST);
	else if (chain->facts->modalities[found - manifest->configs] != event->declaration.modality)
		wrong_event(chain, event->sequence, "modality", FINDING_EVENT_MODALITY);
}

static void check_received(struct chain *chain, const struct event_facts *event)
{
	const struct archive_facts *range = chain->range;
	if (event->received_at_us < chain->received_at_us)
		wrong_event(chain, event->sequence, "received_at", FINDING_EVENT_RECEIVED_BEFORE_PREVIOUS);
	if (range->requested_from_us != TIME_NONE && range->requested_to_us != TIME_NONE &&
	    (event->received_at_us < range->requested_from_us ||
	     event->received_at_us >= range->requested_to_us))
		wrong_event(chain, event->sequence, "received_at", FINDING_EVENT_RECEIVED_OUTSIDE_RANGE);
	if (event->received_at_us > range->issued_at_us + VERIFY_CLOCK_TOLERANCE_US)
		wrong_event(chain, event->sequence, "received_at", FINDING_EVENT_RECEIVED_AFTER_ISSUE);
	chain->received_at_us = event->received_at_us;
	if (chain->segment_received_at_us == TIME_NONE) {
		chain->segment_received_at_us = event->received_at_us;
		chain->segment_sequence = event->sequence;
	}
}

static void check_event(struct chain *chain, const struct event_facts *event)
{
	if (event->sequence != chain->next_sequence)
		wrong_event(chain, chain->next_sequence, "sequence", FINDING_EVENT_SEQUENCE);
	if (event->chain != chain->range->mode)
		wrong_event(chain, event->sequence, "chain", FINDING_EVENT_MODE);
	if (strcmp(event->channel_id, chain->range->channel_id) != 0)
		wrong_event(chain, event->sequence, "channel_id", FINDING_EVENT_CHANNEL);
	if (chain->events > 0 && !sha256_equal(&event->previous_chain_hash, &chain->event_hash))
		wrong_event(chain, event->sequence, "previous_chain_hash", FINDING_CHAIN_BROKEN);
	if (chain->events == 0 &&
	    !sha256_equal(&event->previous_chain_hash, &chain->manifest->previous_chain_hash))
		wrong_event(chain, event->sequence, "previous_chain_hash", FINDING_CHAIN_START);
	if (event->declaration.modality == MODALITY_CONTENT &&
	    event->declaration.hash_algorithm != HASH_SHA256)
		wrong_event(chain, event->sequence, "hash_alg", FINDING_EVENT_ALGORITHM);
	check_received(chain, event);
	check_config(chain, event);
}

static int read_event(struct chain *chain, struct slice line, const struct sha256 *hash,
                      struct error *error)
{
	struct event_facts event;
	arena_reset(&chain->arena);
	int result = archive_read_event(&chain->arena, line, &event, error);
	if (result < 0)
		return result;
	buf_clear(&chain->scratch);
	event_record(&event, &chain->scratch);
	result = verify_canonical(line, &chain->scratch, error);
	if (result < 0)
		return result;
	check_event(chain, &event);
	verify_receipt_event(chain->run, chain->facts->input, &event, hash);
	return event.declaration.modality == MODALITY_CONTENT ? chain_compare_part(chain, &event) : 0;
}

int chain_check_event(struct chain *chain)
{
	struct slice line;
	int result = chain->events_ended ? 0 : chain_next_line(chain, STREAM_EVENTS, &line);
	if (result <= 0) {
		chain->events_ended = true;
		return result;
	}
	assert((uint64_t)(chain->next_sequence - chain->range->first_sequence) == chain->events);
	struct sha256 hash = sha256_of(line.data, line.size);
	struct error error = {0};
	result = read_event(chain, line, &hash, &error);
	if (result < 0)
		result = chain_record_error(chain, STREAM_EVENTS, result, &error);
	verify_existence_event(chain->run, &hash);
	verify_point_event(chain->run, chain->facts->input, chain->next_sequence, &hash,
	                   !result ? chain->received_at_us : TIME_NONE);
	if (chain->events == 0 && !sha256_equal(&hash, &chain->manifest->first_chain_hash))
		wrong_event(chain, chain->next_sequence, "(the whole line)", FINDING_CHAIN_FIRST);
	chain->chain_hash = chain->event_hash = hash;
	chain->events++;
	chain->next_sequence++;
	chain->run->result->checked.events++;
	if (!result && chain->events % EVENTS_PER_PROGRESS == 0)
		result = verify_progress(chain->run, chain->facts->input->path, chain->events,
		                         (uint64_t)chain->manifest->event_count);
	return result < 0 ? result : 1;
}

int chain_check_leaf(struct chain *chain, int64_t sequence)
{
	assert(sequence < chain->range->first_sequence || sequence > chain->range->last_sequence);
	struct slice line;
	int result = chain_next_line(chain, STREAM_LEAVES, &line);
	if (result <= 0)
		return result;
	struct error error = {0};
	int64_t found;
	struct sha256 hash;
	arena_reset(&chain->arena);
	result = archive_read_leaf(&chain->arena, line, &found, &hash, &error);
	if (!result) {
		buf_clear(&chain->scratch);
		archive_leaf_line(found, &hash, &chain->scratch);
		result = verify_canonical(line, &chain->scratch, &error);
	}
	if (!result && found != sequence)
		result = finding_fail(&error, FINDING_LEAF_SEQUENCE, found, sequence);
	if (result < 0) {
		result = chain_record_error(chain, STREAM_LEAVES, result, &error);
		return result < 0 ? result : 0;
	}
	if (sequence == chain->range->first_sequence - 1 &&
	    !sha256_equal(&hash, &chain->manifest->previous_chain_hash))
		chain_wrong_at(chain, STREAM_LEAVES, "chain_hash", FINDING_LEAF_START);
	verify_point_event(chain->run, chain->facts->input, sequence, &hash, TIME_NONE);
	verify_receipt_hash(chain->run, chain->facts->input, sequence, &hash);
	chain->chain_hash = hash;
	return 1;
}
