#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "proof/verify_check.h"

#define FINDINGS_MAX 100 /* wrong ones in one chain; then it is given up */
#define WHERE_MAX 256
#define ROUND_ID_MAX 128
#define EVENTS_PER_PROGRESS 4096

struct round_state {
	bool present;
	bool usable; /* it could be read, so that it can be compared with */
	char round_id[ROUND_ID_MAX];
	struct sha256 root;
	struct sha256 token_hash;
	int64_t gen_time_us;
};

struct chain {
	const struct chain_input *facts;
	struct run *run;
	const struct archive_manifest *manifest;
	const struct archive_facts *range;
	struct line_stream *streams[STREAM_COUNT];
	struct arena arena;      /* one event, leaf or round */
	struct arena seal_arena; /* one segment */
	struct buf scratch;
	uint64_t wrong_before; /* findings when the chain began */

	int64_t next_sequence; /* of the next event */
	bool events_ended;
	uint64_t events;
	struct sha256 chain_hash; /* of the event or leaf before */
	struct sha256 event_hash; /* of the event before */
	int64_t received_at_us;
	int64_t segment_received_at_us; /* of the segment's first event in the range; TIME_NONE: none */
	int64_t segment_sequence;       /* and its sequence */
	struct verify_delay delay;      /* the longest */
	int64_t delay_before_us;        /* the timestamp before that one; TIME_NONE: unknown */
	uint64_t segments, unsynchronized_segments;
	bool *config_used;
	uint64_t without_part; /* events of content that no part holds */

	struct sha256 *leaves; /* of the segment */
	int64_t next_segment_sequence;
	bool segment_seen;
	struct sha256 seal_hash; /* of the segment before */
	struct round_state round, previous_round;

	size_t part; /* the content part that holds the next content event */
	struct zip_reader *part_zip;
	struct line_stream *part_index;
	const struct input *part_input;
	bool part_open;
};

static bool given_up(const struct chain *chain)
{
	return chain->run->result->wrong - chain->wrong_before >= FINDINGS_MAX;
}

static void wrong_at(struct chain *chain, enum archive_stream stream, const char *member,
                     const char *what)
{
	char where[WHERE_MAX];
	const char *place = line_stream_where(chain->streams[stream]);
	snprintf(where, sizeof where, member ? "%s member %s" : "%s", place, member);
	verify_add(chain->run, VERIFY_WRONG, chain->facts->input->path, where, "%s", what);
}

static void wrong_event(struct chain *chain, int64_t sequence, const char *member, const char *what)
{
	char where[WHERE_MAX];
	snprintf(where, sizeof where, "%s sequence %" PRId64 " member %s",
	         line_stream_where(chain->streams[STREAM_EVENTS]), sequence, member);
	verify_add(chain->run, VERIFY_WRONG, chain->facts->input->path, where, "%s", what);
}

/* Records what reading a line answered. */
static int note(struct chain *chain, enum archive_stream stream, int status,
                const struct error *error)
{
	return verify_add_error(chain->run, chain->facts->input->path,
	                        line_stream_where(chain->streams[stream]), status, error);
}

/* 1 with a line, 0 at the end or when the stream is damaged, which is recorded. */
static int next_line(struct chain *chain, enum archive_stream stream, struct slice *ret_line)
{
	struct error error = {0};
	int status = line_stream_next(chain->streams[stream], ret_line, &error);
	return status < 0 ? note(chain, stream, status, &error) : status;
}

static void close_part(struct chain *chain)
{
	line_stream_free(chain->part_index);
	zip_reader_free(chain->part_zip);
	chain->part_index = NULL;
	chain->part_zip = NULL;
	chain->part_input = NULL;
	chain->part_open = false;
}

/* What reading a part answered. What is wrong with it was found when it was checked for itself. */
static int note_part(struct chain *chain, const char *where, int status, const struct error *error)
{
	if (status == ERR_INVALID_EVIDENCE)
		return 0;
	return verify_add_error(chain->run, chain->part_input->path, where, status, error);
}

/* The end of a part's range: its index must be at its end too. */
static int finish_part(struct chain *chain)
{
	struct slice line;
	struct error error = {0};
	int status = 0;
	if (chain->part_index) {
		status = line_stream_next(chain->part_index, &line, &error);
		if (status == 1)
			verify_add(chain->run, VERIFY_WRONG, chain->part_input->path,
			           line_stream_where(chain->part_index),
			           "the archive has no event of content for this line");
		if (status < 0)
			status = note_part(chain, line_stream_where(chain->part_index), status, &error);
	}
	close_part(chain);
	chain->part++;
	return status < 0 ? status : 0;
}

static int open_part(struct chain *chain)
{
	const struct part_facts *part = &chain->range->parts[chain->part];
	chain->part_open = true;
	for (size_t i = 0; i < chain->run->input_count && !chain->part_input; i++) {
		struct input *input = &chain->run->inputs[i];
		if (input->kind == INPUT_PART && sha256_equal(&input->sum.sha256, &part->sha256)) {
			input->bound = true;
			chain->part_input = input;
		}
	}
	if (!chain->part_input) {
		verify_add(chain->run, VERIFY_WARNING, chain->facts->input->path, part->name,
		           "this content part was not given, so its content was not checked");
		return 0;
	}
	const struct input *input = chain->part_input;
	if (input->sum.size_bytes != part->size_bytes ||
	    (input->described &&
	     (input->head.number != chain->part + 1 ||
	      strcmp(input->head.certification_id, chain->range->certification_id) != 0 ||
	      strcmp(input->head.channel_id, chain->range->channel_id) != 0)))
		verify_add(chain->run, VERIFY_WRONG, input->path, PART_HEAD_NAME,
		           "its size, number, certification or channel is not what %s says",
		           chain->facts->input->path);
	struct error error = {0};
	int status = verify_open_zip(input, &chain->part_zip, &error);
	const struct zip_entry *index = status == 0 ? zip_find(chain->part_zip, PART_INDEX_NAME) : NULL;
	if (status == 0 && index)
		status = line_stream_open_plain(chain->part_zip, index, &chain->part_index, &error);
	return status < 0 ? note_part(chain, "", status, &error) : 0;
}

/* The event of content against the next line of its part's index. */
static int follow_part(struct chain *chain, const struct event_facts *event)
{
	int status = 0;
	while (status == 0 && chain->part < chain->range->part_count &&
	       chain->range->parts[chain->part].last_sequence < event->sequence) {
		if (!chain->part_open)
			status = open_part(chain);
		if (status == 0)
			status = finish_part(chain);
	}
	if (status < 0)
		return status;
	if (chain->part >= chain->range->part_count ||
	    chain->range->parts[chain->part].first_sequence > event->sequence) {
		chain->without_part++;
		return 0;
	}
	if (!chain->part_open)
		status = open_part(chain);
	if (status < 0 || !chain->part_index)
		return status;
	struct error error = {0};
	struct slice line;
	struct part_entry entry;
	status = line_stream_next(chain->part_index, &line, &error);
	if (status == 1)
		status = archive_read_part_line(&chain->arena, line, &entry, &error);
	else if (status == 0)
		status = error_cause(&error, ERR_INVALID_EVIDENCE, "it ends too early");
	if (status == 0 &&
	    (entry.sequence != event->sequence || !slice_equal(entry.event_id, event->event_id) ||
	     event->hash_algorithm != HASH_SHA256 ||
	     memcmp(entry.hash.bytes, event->hash, SHA256_SIZE) != 0))
		status = error_cause(&error, ERR_INVALID_EVIDENCE,
		                     "sequence, event_id or hash is not that of event %" PRId64
		                     " in the archive",
		                     event->sequence);
	if (status == 0)
		return 0;
	status = verify_add_error(chain->run, chain->part_input->path,
	                          line_stream_where(chain->part_index), status, &error);
	line_stream_free(chain->part_index); /* the rest of the lines could only mislead */
	chain->part_index = NULL;
	return status;
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
	else if (chain->facts->modalities[found - manifest->configs] != event->modality)
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
	check_received(chain, event);
	check_config(chain, event);
}

static int read_event(struct chain *chain, struct slice line, const struct sha256 *hash,
                      struct error *error)
{
	struct event_facts event;
	arena_reset(&chain->arena);
	int status = archive_read_event(&chain->arena, line, &event, error);
	if (status < 0)
		return status;
	buf_clear(&chain->scratch);
	event_record(&event, &chain->scratch);
	status = verify_canonical(line, &chain->scratch, error);
	if (status < 0)
		return status;
	check_event(chain, &event);
	verify_receipt_event(chain->run, chain->facts->input, &event, hash);
	return event.modality == MODALITY_CONTENT ? follow_part(chain, &event) : 0;
}

/* 1 when there was an event, whose chain hash is chain->chain_hash then; 0 when they are over. */
static int take_event(struct chain *chain)
{
	struct slice line;
	int status = chain->events_ended ? 0 : next_line(chain, STREAM_EVENTS, &line);
	if (status <= 0) {
		chain->events_ended = true;
		return status;
	}
	struct sha256 hash = sha256_of(line.data, line.size);
	struct error error = {0};
	status = read_event(chain, line, &hash, &error);
	if (status < 0)
		status = note(chain, STREAM_EVENTS, status, &error);
	verify_point_event(chain->run, chain->facts->input, chain->next_sequence, &hash,
	                   status == 0 ? chain->received_at_us : TIME_NONE);
	if (chain->events == 0 && !sha256_equal(&hash, &chain->manifest->first_chain_hash))
		wrong_event(chain, chain->next_sequence, "(the whole line)",
		            "its SHA-256 is not the manifest's first_chain_hash");
	chain->chain_hash = chain->event_hash = hash;
	chain->events++;
	chain->next_sequence++;
	chain->run->result->checked.events++;
	if (status == 0 && chain->events % EVENTS_PER_PROGRESS == 0)
		status = verify_progress(chain->run, chain->facts->input->path, chain->events,
		                         (uint64_t)chain->manifest->event_count);
	return status < 0 ? status : 1;
}

/* The same for an event outside the range, of which only the chain hash is there. */
static int take_leaf(struct chain *chain, int64_t sequence)
{
	struct slice line;
	int status = next_line(chain, STREAM_LEAVES, &line);
	if (status <= 0)
		return status;
	struct error error = {0};
	int64_t found;
	struct sha256 hash;
	arena_reset(&chain->arena);
	status = archive_read_leaf(&chain->arena, line, &found, &hash, &error);
	if (status == 0) {
		buf_clear(&chain->scratch);
		archive_leaf_line(found, &hash, &chain->scratch);
		status = verify_canonical(line, &chain->scratch, &error);
	}
	if (status == 0 && found != sequence)
		status = error_cause(&error, ERR_INVALID_EVIDENCE,
		                     "it is for sequence %" PRId64 ", must be %" PRId64, found, sequence);
	if (status < 0) {
		status = note(chain, STREAM_LEAVES, status, &error);
		return status < 0 ? status : 0;
	}
	if (sequence == chain->range->first_sequence - 1 &&
	    !sha256_equal(&hash, &chain->manifest->previous_chain_hash))
		wrong_at(chain, STREAM_LEAVES, "chain_hash",
		         "it is not the previous_chain_hash of the range's first event");
	verify_point_event(chain->run, chain->facts->input, sequence, &hash, TIME_NONE);
	verify_receipt_hash(chain->run, chain->facts->input, sequence, &hash);
	chain->chain_hash = hash;
	return 1;
}

static int read_round(struct chain *chain, struct slice line, struct error *error)
{
	struct archive_round round;
	arena_reset(&chain->arena);
	int status = archive_read_round(&chain->arena, line, &round, error);
	if (status < 0)
		return status;
	buf_clear(&chain->scratch);
	archive_round_line(&round, &chain->scratch);
	status = verify_canonical(line, &chain->scratch, error);
	if (status < 0)
		return status;
	struct round_state *state = &chain->round;
	if (strlen(round.round_id) >= sizeof state->round_id)
		return error_cause(error, ERR_INVALID_EVIDENCE, "member 'round_id' is too long");
	snprintf(state->round_id, sizeof state->round_id, "%s", round.round_id);
	state->root = round.root;
	state->token_hash = sha256_of(round.token.data, round.token.size);
	state->gen_time_us = round.gen_time_us;
	state->usable = true;
	struct timestamp_facts facts;
	status = timestamp_verify_token(round.token, &round.root, chain->run->roots->timestamps, &facts,
	                                error);
	if (status == 0)
		status = verify_note_timestamp(chain->run, &facts);
	if (status < 0)
		return status;
	chain->run->development |= round.kind == AUTHORITY_DEVELOPMENT;
	chain->run->non_qualified |= round.kind == AUTHORITY_NON_QUALIFIED;
	if (facts.gen_time_us != round.gen_time_us)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "member 'gen_time' is not the time in the token");
	if (chain->previous_round.usable &&
	    chain->previous_round.gen_time_us > round.gen_time_us + VERIFY_CLOCK_TOLERANCE_US)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "its time is before that of the round in the line before");
	if (chain->facts->input->signed_at_us != TIME_NONE &&
	    round.gen_time_us > chain->facts->input->signed_at_us + VERIFY_CLOCK_TOLERANCE_US)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "its time is after that of the archive's signature, which covers it");
	if (round.gen_time_us > chain->range->issued_at_us + VERIFY_CLOCK_TOLERANCE_US)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "its time is after the manifest's issued_at");
	return 0;
}

/* Reads one more round; 1, or 0 when there is none. */
static int take_round(struct chain *chain)
{
	struct slice line;
	int status = next_line(chain, STREAM_ROUNDS, &line);
	if (status <= 0)
		return status;
	chain->previous_round = chain->round;
	chain->round = (struct round_state){.present = true};
	struct error error = {0};
	status = read_round(chain, line, &error);
	if (status < 0)
		status = note(chain, STREAM_ROUNDS, status, &error);
	return status < 0 ? status : 1;
}

/* Goes on to the round of a segment. Before it may stand its predecessor alone. */
static int find_round(struct chain *chain, const char *round_id)
{
	for (int skipped = 0;; skipped++) {
		if (chain->round.usable && strcmp(chain->round.round_id, round_id) == 0)
			return 1;
		int status = take_round(chain);
		if (status < 0)
			return status;
		if (status == 0) {
			wrong_at(chain, STREAM_SEALS, "round_id",
			         "the archive holds no such round behind "
			         "that of the segment before");
			return 0;
		}
		if (skipped == 2)
			wrong_at(chain, STREAM_ROUNDS, NULL,
			         "more than one round stands before that of a segment");
	}
}

static void note_delay(struct chain *chain)
{
	const struct round_state *round = &chain->round;
	if (chain->segment_received_at_us == TIME_NONE || !round->usable)
		return;
	int64_t longest_us = chain->delay.gen_time_us - chain->delay.received_at_us;
	if (chain->delay.sequence && round->gen_time_us - chain->segment_received_at_us <= longest_us)
		return;
	chain->delay = (struct verify_delay){chain->segment_sequence, chain->segment_received_at_us,
	                                     round->gen_time_us, chain->facts->input->path};
	chain->delay_before_us =
		chain->previous_round.usable ? chain->previous_round.gen_time_us : TIME_NONE;
}

static void check_round(struct chain *chain, const struct archive_segment *segment)
{
	const struct seal_document *seal = segment->seal;
	const struct round_state *before = &chain->previous_round;
	struct sha256 root = tree_proof_root(segment->path);
	if (!sha256_equal(&root, &chain->round.root))
		wrong_at(chain, STREAM_SEALS, "path",
		         "the segment's events and seal do not lead to the round's root");
	if (!before->present) {
		if (seal->previous_token_hash && !chain->segment_seen)
			verify_add(chain->run, VERIFY_WARNING, chain->facts->input->path,
			           line_stream_where(chain->streams[STREAM_SEALS]),
			           "the timestamp before the first round is not in the archive, so nothing "
			           "shows that this segment was made after it");
	} else if (!seal->previous_token_hash ||
	           (before->usable && !sha256_equal(seal->previous_token_hash, &before->token_hash))) {
		wrong_at(chain, STREAM_SEALS, "seal.previous_token_hash",
		         "it is not the SHA-256 of the token of the round before");
	}
	if (chain->received_at_us != TIME_NONE &&
	    chain->received_at_us > chain->round.gen_time_us + VERIFY_CLOCK_TOLERANCE_US)
		wrong_at(chain, STREAM_SEALS, NULL,
		         "an event of this segment was received after its timestamp was given");
	note_delay(chain);
}

/* What a seal document says, before its events are read. */
static void check_seal(struct chain *chain, const struct seal_document *seal)
{
	const enum archive_stream seals = STREAM_SEALS;
	if (strcmp(seal->channel_id, chain->range->channel_id) != 0)
		wrong_at(chain, seals, "seal.channel_id", "it is not the manifest's channel");
	if (strcmp(seal->chain, mode_text(chain->range->mode)) != 0)
		wrong_at(chain, seals, "seal.chain", "it is not the manifest's mode");
	verify_point_event(chain->run, chain->facts->input, seal->first_sequence - 1,
	                   &seal->chain_hash_before, TIME_NONE);
	if (seal->previous_seal_hash)
		verify_point_seal(chain->run, chain->facts->input, seal->first_sequence - 1,
		                  seal->first_sequence - 1, seal->previous_seal_hash, NULL);
	if (chain->segment_seen) {
		if (!seal->previous_seal_hash || !sha256_equal(seal->previous_seal_hash, &chain->seal_hash))
			wrong_at(chain, seals, "seal.previous_seal_hash",
			         "it is not the SHA-256 of the seal document before");
		if (!sha256_equal(&seal->chain_hash_before, &chain->chain_hash))
			wrong_at(chain, seals, "seal.chain_hash_before",
			         "it is not the chain hash of the event before the segment");
		return;
	}
	if ((seal->first_sequence == 1) != (seal->previous_seal_hash == NULL))
		wrong_at(chain, seals, "seal.previous_seal_hash",
		         "only the first segment of a chain has none");
	bool at_range = seal->first_sequence == chain->range->first_sequence;
	if ((at_range &&
	     !sha256_equal(&seal->chain_hash_before, &chain->manifest->previous_chain_hash)) ||
	    (seal->first_sequence == 1 && chain->facts->has_genesis &&
	     !sha256_equal(&seal->chain_hash_before, &chain->facts->genesis_hash)))
		wrong_at(chain, seals, "seal.chain_hash_before",
		         "it is not the chain hash before the segment");
}

/* Collects the leaves of a segment. 1, or 0 when events or leaves are missing. */
static int collect(struct chain *chain, const struct seal_document *seal)
{
	size_t count = 0;
	for (int64_t sequence = seal->first_sequence; sequence <= seal->last_sequence; sequence++) {
		bool inside =
			sequence >= chain->range->first_sequence && sequence <= chain->range->last_sequence;
		int status = inside ? take_event(chain) : take_leaf(chain, sequence);
		if (status < 0)
			return status;
		if (status == 0 || given_up(chain)) {
			wrong_at(chain, STREAM_SEALS, NULL,
			         inside ? "not all events of this segment could be read"
			                : "not all leaves of this segment outside the range could be read");
			return 0;
		}
		chain->leaves[count++] = chain->chain_hash;
	}
	return 1;
}

/* The segment's root from its leaves, written into the proof that leads on to the round. */
static int compute_root(struct chain *chain, const struct seal_document *seal,
                        struct tree_proof *proof)
{
	size_t count = (size_t)(seal->last_sequence - seal->first_sequence + 1);
	buf_clear(&chain->scratch);
	chain->seal_hash = seal_document_digest(seal, &chain->scratch);
	chain->leaves[count] = chain->seal_hash;
	struct hash_tree *tree;
	int status = tree_build(chain->leaves, count + 1, &tree);
	if (status < 0)
		return status;
	proof->leaf = tree_root(tree);
	tree_free(tree);
	return 0;
}

/* 1 to go on with the next segment, 0 to stop. */
static int check_segment(struct chain *chain, struct archive_segment *segment,
                         struct tree_proof *proof)
{
	const struct seal_document *seal = segment->seal;
	bool fits = chain->segment_seen ? seal->first_sequence == chain->next_segment_sequence
	                                : seal->first_sequence <= chain->range->first_sequence &&
	                                      seal->last_sequence >= chain->range->first_sequence;
	if (!fits || seal->first_sequence > chain->range->last_sequence) {
		wrong_at(chain, STREAM_SEALS, "seal.first_sequence",
		         "the segment does not continue the one before, or is outside the range");
		return 0;
	}
	check_seal(chain, seal);
	chain->segments++;
	chain->unsynchronized_segments += !seal->clock.synchronized;
	chain->segment_received_at_us = TIME_NONE;
	int status = collect(chain, seal);
	if (status <= 0)
		return status;
	if (!sha256_equal(&seal->chain_hash_last, &chain->chain_hash))
		wrong_at(chain, STREAM_SEALS, "seal.chain_hash_last",
		         "it is not the chain hash of the segment's last event");
	status = compute_root(chain, seal, proof);
	if (status == 0)
		status = find_round(chain, segment->round_id);
	if (status < 0)
		return status;
	if (status == 1)
		check_round(chain, segment);
	verify_point_seal(chain->run, chain->facts->input, seal->first_sequence, seal->last_sequence,
	                  &chain->seal_hash, status == 1 ? &chain->round.token_hash : NULL);
	chain->segment_seen = true;
	chain->next_segment_sequence = seal->last_sequence + 1;
	chain->run->result->checked.segments++;
	return 1;
}

/* 1, or 0 when there are no more segments. */
static int take_segment(struct chain *chain)
{
	struct slice line;
	int status = given_up(chain) ? 0 : next_line(chain, STREAM_SEALS, &line);
	if (status <= 0)
		return status;
	struct error error = {0};
	struct archive_segment_text *text;
	struct archive_segment segment;
	arena_reset(&chain->seal_arena);
	text = arena_alloc(&chain->seal_arena, sizeof *text);
	if (!text)
		return ERR_NO_MEMORY;
	status = archive_read_segment(&chain->seal_arena, line, text, &segment, &error);
	if (status == 0) {
		buf_clear(&chain->scratch);
		archive_segment_line(&segment, &chain->scratch);
		status = verify_canonical(line, &chain->scratch, &error);
	}
	if (status < 0)
		return note(chain, STREAM_SEALS, status, &error);
	return check_segment(chain, &segment, &text->path);
}

/* Every stream must be at its end now. */
static int check_ends(struct chain *chain)
{
	struct slice line;
	bool damaged = chain->run->result->wrong > chain->wrong_before;
	for (int i = 0; i < STREAM_COUNT && !damaged; i++) {
		enum archive_stream stream = (enum archive_stream)i;
		int status = next_line(chain, stream, &line);
		if (status < 0)
			return status;
		if (status == 1)
			wrong_at(chain, stream, NULL, "no line may follow here");
	}
	return 0;
}

static void check_totals(struct chain *chain)
{
	const char *path = chain->facts->input->path;
	const struct archive_manifest *manifest = chain->manifest;
	if (chain->events != (uint64_t)manifest->event_count)
		verify_add(chain->run, VERIFY_WRONG, path, ARCHIVE_MANIFEST_NAME,
		           "event_count is %" PRId64 ", the archive holds %" PRIu64
		           " events that could be read",
		           manifest->event_count, chain->events);
	else if (!sha256_equal(&chain->event_hash, &manifest->last_chain_hash))
		verify_add(chain->run, VERIFY_WRONG, path, ARCHIVE_MANIFEST_NAME,
		           "last_chain_hash is not the SHA-256 of the last event");
	for (size_t i = 0; i < manifest->config_count; i++)
		if (!chain->config_used[i])
			verify_add(chain->run, VERIFY_WRONG, path, ARCHIVE_MANIFEST_NAME,
			           "config_versions: no event names version %" PRId64,
			           manifest->configs[i].version);
	if (chain->range->first_sequence == 1 && chain->facts->has_genesis &&
	    !sha256_equal(&manifest->previous_chain_hash, &chain->facts->genesis_hash))
		verify_add(chain->run, VERIFY_WRONG, path, ARCHIVE_GENESIS_NAME,
		           "its SHA-256 is not the previous_chain_hash of event 1");
	if (chain->without_part > 0)
		verify_add(chain->run, VERIFY_WARNING, path, "",
		           "%" PRIu64 " events of modality content are in no content part",
		           chain->without_part);
}

/* What a reader must know of the times in a valid archive. */
static void tell_times(struct chain *chain)
{
	const char *path = chain->facts->input->path;
	const struct verify_delay *delay = &chain->delay;
	struct verify_delay *longest = &chain->run->result->longest_delay;
	if (chain->unsynchronized_segments > 0)
		verify_add(chain->run, VERIFY_WARNING, path, "",
		           "%" PRIu64 " of %" PRIu64 " segments were sealed while the service's clock was "
		           "not known to be synchronized: received_at rests on it",
		           chain->unsynchronized_segments, chain->segments);
	if (!delay->sequence)
		return;
	int64_t delay_us = delay->gen_time_us - delay->received_at_us;
	if (!longest->sequence || delay_us > longest->gen_time_us - longest->received_at_us)
		*longest = *delay;
	if (delay_us <= VERIFY_DELAY_MAX_US)
		return;
	char received[TIME_TEXT_SIZE], given[TIME_TEXT_SIZE], before[TIME_TEXT_SIZE] = "";
	char span[VERIFY_SPAN_SIZE];
	time_format(delay->received_at_us, received);
	time_format(delay->gen_time_us, given);
	verify_span(delay_us, span);
	bool passed_over = chain->delay_before_us > delay->received_at_us;
	if (passed_over)
		time_format(chain->delay_before_us, before);
	verify_add(chain->run, VERIFY_WARNING, path, "",
	           "event %" PRId64 " says it was received at %s, but nothing proves it before its "
	           "timestamp of %s, %s later%s%s",
	           delay->sequence, received, given, span,
	           passed_over ? "; the timestamp before, which does not cover it, is of " : "",
	           before);
}

static int walk(struct chain *chain)
{
	int status = 1;
	verify_point_event(chain->run, chain->facts->input, chain->range->first_sequence - 1,
	                   &chain->manifest->previous_chain_hash, TIME_NONE);
	verify_receipt_hash(chain->run, chain->facts->input, chain->range->first_sequence - 1,
	                    &chain->manifest->previous_chain_hash);
	while (chain->range->mode == MODE_LIVE && status == 1)
		status = take_segment(chain);
	if (status < 0)
		return status;
	bool sealed = chain->range->mode == MODE_TEST ||
	              chain->next_segment_sequence > chain->range->last_sequence;
	if (!sealed)
		verify_add(
			chain->run, VERIFY_WRONG, chain->facts->input->path, archive_stream_text(STREAM_SEALS),
			"from sequence %" PRId64 " on no valid segment covers the range",
			chain->segment_seen ? chain->next_segment_sequence : chain->range->first_sequence);
	do
		status = chain->next_sequence > chain->range->last_sequence || given_up(chain)
		             ? 0
		             : take_event(chain);
	while (status == 1);
	while (status == 0 && chain->part < chain->range->part_count) {
		if (!chain->part_open)
			status = open_part(chain);
		if (status == 0)
			status = finish_part(chain);
	}
	if (status == 0)
		status = check_ends(chain);
	if (status == 0) {
		check_totals(chain);
		tell_times(chain);
	}
	return status;
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
	arena_init(&chain.arena, (size_t)8 << 20);
	arena_init(&chain.seal_arena, (size_t)8 << 20);
	buf_init(&chain.scratch, ARCHIVE_LINE_MAX);
	chain.leaves = calloc(SEGMENT_EVENTS_MAX + 1, sizeof *chain.leaves);
	chain.config_used = calloc(facts->manifest->config_count + 1, sizeof *chain.config_used);
	int status = chain.leaves && chain.config_used ? 0 : ERR_NO_MEMORY;
	for (int i = 0; i < STREAM_COUNT && status == 0; i++)
		status = line_stream_open(facts->zip, (enum archive_stream)i, &chain.streams[i], NULL);
	if (status == 0)
		status = walk(&chain);
	for (int i = 0; i < STREAM_COUNT; i++)
		line_stream_free(chain.streams[i]);
	close_part(&chain);
	free(chain.leaves);
	free(chain.config_used);
	buf_free(&chain.scratch);
	arena_free(&chain.arena);
	arena_free(&chain.seal_arena);
	return status;
}
