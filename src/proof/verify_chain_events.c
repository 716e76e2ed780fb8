/* The events of a chain, and the leaves that stand for those outside the range. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "proof/verify_chain.h"

#define EVENTS_PER_PROGRESS 4096

static void wrong_event(struct chain *chain, int64_t sequence, const char *member, const char *what)
{
	char where[CHAIN_WHERE_MAX];
	snprintf(where, sizeof where, "%s sequence %" PRId64 " member %s",
	         line_stream_where(chain->streams[STREAM_EVENTS]), sequence, member);
	verify_add(chain->run, VERIFY_WRONG, chain->facts->input->path, where, "%s", what);
}

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
		wrong_event(chain, event->sequence, "config_version",
		            "the archive holds no configuration document of this version");
		return;
	}
	chain->config_used[found - manifest->configs] = true;
	if (!sha256_equal(&found->hash, &event->config_hash))
		wrong_event(chain, event->sequence, "config_hash",
		            "it is not the SHA-256 of the configuration document of this version");
	else if (chain->facts->modalities[found - manifest->configs] != event->declaration.modality)
		wrong_event(chain, event->sequence, "modality",
		            "it is not that of the configuration document of this version");
}

static void check_received(struct chain *chain, const struct event_facts *event)
{
	const struct archive_facts *range = chain->range;
	if (event->received_at_us < chain->received_at_us)
		wrong_event(chain, event->sequence, "received_at",
		            "it is earlier than that of the event before");
	if (range->requested_from_us != TIME_NONE && range->requested_to_us != TIME_NONE &&
	    (event->received_at_us < range->requested_from_us ||
	     event->received_at_us >= range->requested_to_us))
		wrong_event(chain, event->sequence, "received_at",
		            "it is outside of the manifest's requested_range");
	if (event->received_at_us > range->issued_at_us + VERIFY_CLOCK_TOLERANCE_US)
		wrong_event(chain, event->sequence, "received_at",
		            "it is later than the manifest's issued_at");
	chain->received_at_us = event->received_at_us;
	if (chain->segment_received_at_us == TIME_NONE) {
		chain->segment_received_at_us = event->received_at_us;
		chain->segment_sequence = event->sequence;
	}
}

static void check_event(struct chain *chain, const struct event_facts *event)
{
	if (event->sequence != chain->next_sequence)
		wrong_event(chain, chain->next_sequence, "sequence",
		            "the line has another sequence number than its place demands");
	if (event->chain != chain->range->mode)
		wrong_event(chain, event->sequence, "chain", "it is not the manifest's mode");
	if (strcmp(event->channel_id, chain->range->channel_id) != 0)
		wrong_event(chain, event->sequence, "channel_id", "it is not the manifest's channel");
	if (chain->events > 0 && !sha256_equal(&event->previous_chain_hash, &chain->event_hash))
		wrong_event(chain, event->sequence, "previous_chain_hash",
		            "it is not the SHA-256 of the event before");
	if (chain->events == 0 &&
	    !sha256_equal(&event->previous_chain_hash, &chain->manifest->previous_chain_hash))
		wrong_event(chain, event->sequence, "previous_chain_hash",
		            "it is not the manifest's previous_chain_hash");
	if (event->declaration.modality == MODALITY_CONTENT &&
	    event->declaration.hash_algorithm != HASH_SHA256)
		wrong_event(chain, event->sequence, "hash_alg", "of content it is always sha-256");
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
	return event.declaration.modality == MODALITY_CONTENT ? chain_follow_part(chain, &event) : 0;
}

int chain_take_event(struct chain *chain)
{
	struct slice line;
	int result = chain->events_ended ? 0 : chain_next_line(chain, STREAM_EVENTS, &line);
	if (result <= 0) {
		chain->events_ended = true;
		return result;
	}
	struct sha256 hash = sha256_of(line.data, line.size);
	struct error error = {0};
	result = read_event(chain, line, &hash, &error);
	if (result < 0)
		result = chain_note(chain, STREAM_EVENTS, result, &error);
	verify_existence_event(chain->run, &hash);
	verify_point_event(chain->run, chain->facts->input, chain->next_sequence, &hash,
	                   !result ? chain->received_at_us : TIME_NONE);
	if (chain->events == 0 && !sha256_equal(&hash, &chain->manifest->first_chain_hash))
		wrong_event(chain, chain->next_sequence, "(the whole line)",
		            "its SHA-256 is not the manifest's first_chain_hash");
	chain->chain_hash = chain->event_hash = hash;
	chain->events++;
	chain->next_sequence++;
	chain->run->result->checked.events++;
	if (!result && chain->events % EVENTS_PER_PROGRESS == 0)
		result = verify_progress(chain->run, chain->facts->input->path, chain->events,
		                         (uint64_t)chain->manifest->event_count);
	return result < 0 ? result : 1;
}

int chain_take_leaf(struct chain *chain, int64_t sequence)
{
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
		result = error_cause(&error, ERR_INVALID_EVIDENCE,
		                     "it is for sequence %" PRId64 ", must be %" PRId64, found, sequence);
	if (result < 0) {
		result = chain_note(chain, STREAM_LEAVES, result, &error);
		return result < 0 ? result : 0;
	}
	if (sequence == chain->range->first_sequence - 1 &&
	    !sha256_equal(&hash, &chain->manifest->previous_chain_hash))
		chain_wrong_at(chain, STREAM_LEAVES, "chain_hash",
		               "it is not the previous_chain_hash of the range's first event");
	verify_point_event(chain->run, chain->facts->input, sequence, &hash, TIME_NONE);
	verify_receipt_hash(chain->run, chain->facts->input, sequence, &hash);
	chain->chain_hash = hash;
	return 1;
}
