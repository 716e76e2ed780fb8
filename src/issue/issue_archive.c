/* Writing of the evidence archive of a certification. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/tuned.h"
#include "evidence/signer_listing.h"
#include "evidence/stored_segment.h"
#include "evidence/token_renewals.h"
#include "issue/archive_validation.h"
#include "issue/issue_job.h"
#include "issue/issue_log.h"
#include "seal/trust.h"

#define STEP_MEMORY_MAX ((size_t)4 << 20)
#define ROUND_ID_SIZE 32
#define ROUNDS_AT_ONCE 1024
#define SEALS_AT_ONCE 1024 /* read within one use of a database connection */

struct archive_work {
	struct issue_job *issue;
	struct archive *archive;
	struct sha256 previous;              /* chain hash of the previous event */
	int64_t first_segment, last_segment; /* numbers */
	int64_t *seal_rounds;                /* rounds of issue->seals */
	int64_t last_round;                  /* last round written */
	struct archive_validation needs;
	struct token_renewals renewals;
	struct error *error;
};

static void round_id(int64_t round, char id[ROUND_ID_SIZE])
{
	snprintf(id, ROUND_ID_SIZE, "rnd_%" PRId64, round);
}

/* ---- events ---- */

static const struct report_configuration *configuration_of(const struct issue_job *issue,
                                                           int64_t version)
{
	for (size_t i = issue->configuration_count; i > 0; i--)
		if (issue->configurations[i - 1].facts.version == version)
			return &issue->configurations[i - 1];
	return NULL;
}

/* Keeps a row for the reports: all events up to REPORT_EVENT_ROWS_MAX, otherwise both ends of the
 * range. */
static int keep_row(struct issue_job *issue, const struct event *event)
{
	int64_t index = event->sequence - issue->certification->first_sequence;
	int64_t count = issue_event_count(issue);
	assert(index >= 0 && index < count);
	if (index == 0)
		issue->first_received_at_us = event->received_at_us;
	issue->last_received_at_us = event->received_at_us;
	if (count > REPORT_EVENT_ROWS_MAX && index >= REPORT_EDGE_ROWS &&
	    index < count - REPORT_EDGE_ROWS)
		return OK;
	const char *client_ref = arena_copy(issue->arena, event->declaration.client_ref.data,
	                                    event->declaration.client_ref.size);
	const uint8_t *hash =
		(const uint8_t *)arena_copy(issue->arena, event->declaration.hash, DIGEST_SIZE_MAX);
	if (!client_ref || !hash)
		return ERR_NO_MEMORY;
	assert(issue->event_rows < REPORT_EVENT_ROWS_MAX);
	issue->events[issue->event_rows++] = (struct report_event){
		.sequence = event->sequence,
		.received_at_us = event->received_at_us,
		.occurred_at_us = event->declaration.occurred_at_us,
		.client_ref = slice_make(client_ref, event->declaration.client_ref.size),
		.hash_algorithm = event->declaration.hash_algorithm,
		.hash = hash,
	};
	return OK;
}

static int add_event(void *context, const struct event *event)
{
	struct archive_work *work = context;
	struct issue_job *issue = work->issue;
	const struct report_configuration *configuration =
		configuration_of(issue, event->config_version);
	if (!configuration)
		return error_cause(work->error, ERR_CORRUPT,
		                   "event %" PRId64 " has configuration version %" PRId64
		                   ", which is not in the range",
		                   event->sequence, event->config_version);
	struct event_facts facts = event_facts_of(event, &configuration->digest, &work->previous);
	int result = archive_add_event(work->archive, &facts, work->error);
	struct sha256 chain_hash = archive_last_chain_hash(work->archive);
	if (!result && !sha256_equal(&chain_hash, &event->chain_hash))
		result = error_cause(work->error, ERR_CORRUPT, "event %s does not match its chain hash",
		                     event->event_id);
	work->previous = event->chain_hash;
	if (!result)
		result = keep_row(issue, event);
	if (!result)
		result = issue_progress(issue, event->sequence - issue->certification->first_sequence,
		                        issue_event_count(issue));
	return result;
}

static int add_configurations(struct archive_work *work)
{
	const struct issue_job *issue = work->issue;
	BUF_AUTO struct buf document;
	buf_init(&document, ARCHIVE_DOCUMENT_MAX);
	int result = OK;
	for (size_t i = 0; i < issue->configuration_count && !result; i++) {
		buf_clear(&document);
		config_document(&issue->configurations[i].facts, &document);
		result = buf_check(&document);
		if (!result)
			result = archive_add_config(work->archive, issue->configurations[i].facts.version,
			                            buf_slice(&document), work->error);
	}
	return result;
}

/* The archive does not wait for a list that is being signed again after a change. */
static int add_signers(struct archive_work *work)
{
	BUF_AUTO struct buf document;
	struct error none = {0};
	buf_init(&document, SIGNER_LISTING_MAX);
	int result = signer_listing_get(work->issue->service->store, &document, &none);
	if (result == ERR_NOT_FOUND)
		return OK;
	if (result)
		*work->error = none;
	return result ? result : archive_add_signers(work->archive, buf_slice(&document), work->error);
}

/* ---- segments ---- */

static int add_leaves(struct archive_work *work, int64_t first, int64_t last)
{
	if (first > last)
		return OK;
	const struct certification *certification = work->issue->certification;
	size_t count = (size_t)(last - first + 1);
	if (count > SEGMENT_EVENTS_MAX)
		return error_cause(work->error, ERR_CORRUPT, "a segment of more than %d events",
		                   SEGMENT_EVENTS_MAX);
	struct sha256 *hashes = malloc(count * sizeof *hashes);
	if (!hashes)
		return ERR_NO_MEMORY;
	int result = store_read_chain_hashes(work->issue->service->store, certification->account,
	                                     certification->chain, first, last, hashes, work->error);
	for (size_t i = 0; i < count && !result; i++)
		result = archive_add_leaf(work->archive, first + (int64_t)i, &hashes[i], work->error);
	free(hashes);
	return result;
}

/* Adds the leaves at both ends of the range, and finds the numbers of the segments between. */
static int find_segments(struct archive_work *work)
{
	const struct certification *certification = work->issue->certification;
	struct store *store = work->issue->service->store;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct segment_record first, last;
	int result = store_find_segment(store, certification->account, certification->chain,
	                                certification->first_sequence, &arena, &first, work->error);
	if (!result)
		result = store_find_segment(store, certification->account, certification->chain,
		                            certification->last_sequence, &arena, &last, work->error);
	if (result == ERR_NOT_FOUND)
		return error_cause(work->error, ERR_CORRUPT, "the range is not completely sealed");
	if (result)
		return result;
	work->first_segment = first.number;
	work->last_segment = last.number;
	work->issue->seal_count = last.number - first.number + 1;
	result = add_leaves(work, first.first_sequence, certification->first_sequence - 1);
	return result ? result : add_leaves(work, certification->last_sequence + 1, last.last_sequence);
}

static int add_segment(struct archive_work *work, const struct segment_record *segment,
                       struct arena *arena)
{
	struct issue_job *issue = work->issue;
	struct archive_segment given;
	struct tree_proof path;
	int result = stored_segment_document(segment, arena, &given.seal, work->error);
	if (!result)
		result = stored_segment_path(work->issue->service->store, segment, &path, work->error);
	if (result)
		return result;
	char id[ROUND_ID_SIZE];
	round_id(segment->round, id);
	given.path = &path;
	given.round_id = id;
	result = archive_add_segment(work->archive, &given, work->error);
	if (result || issue->seal_rows == REPORT_SEAL_ROWS_MAX)
		return result;
	assert(issue->seal_rows < REPORT_SEAL_ROWS_MAX);
	struct report_seal *seal = &issue->seals[issue->seal_rows];
	work->seal_rounds[issue->seal_rows++] = segment->round;
	seal->segment_id = arena_text(issue->arena, segment->segment_id);
	seal->first_sequence = segment->first_sequence;
	seal->last_sequence = segment->last_sequence;
	return seal->segment_id ? OK : ERR_NO_MEMORY;
}

static int add_segments(struct archive_work *work)
{
	const struct certification *certification = work->issue->certification;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	int result = OK;
	for (int64_t number = work->first_segment; number <= work->last_segment && !result; number++) {
		arena_reset(&arena);
		struct segment_record segment;
		result = store_get_segment(work->issue->service->store, certification->account,
		                           certification->chain, number, &arena, &segment, work->error);
		if (result == ERR_NOT_FOUND)
			result =
				error_cause(work->error, ERR_CORRUPT, "segment %" PRId64 " is missing", number);
		if (!result)
			result = add_segment(work, &segment, &arena);
		if (!result)
			result = issue_progress(work->issue, 1, 1);
	}
	return result;
}

/* ---- rounds ---- */

static int note_authority(struct issue_job *issue, const char *subject, enum authority_kind kind)
{
	char name[SUBJECT_SIZE];
	trust_name(subject, name);
	for (size_t i = 0; i < issue->authority_rows; i++)
		if (strcmp(issue->authorities[i].name, name) == 0 && issue->authorities[i].kind == kind)
			return OK;
	if (issue->authority_rows == REPORT_AUTHORITY_ROWS_MAX)
		return OK;
	const char *copy = arena_text(issue->arena, name);
	if (!copy)
		return ERR_NO_MEMORY;
	issue->authorities[issue->authority_rows++] = (struct report_authority){copy, kind};
	return OK;
}

/* Fills in the round's data in the rows of the report. */
static int describe_round(struct archive_work *work, const struct round_record *round,
                          enum authority_kind kind)
{
	struct issue_job *issue = work->issue;
	char name[SUBJECT_SIZE];
	trust_name(round->authority, name);
	int result = note_authority(issue, round->authority, kind);
	for (size_t i = 0; i < issue->seal_rows && !result; i++) {
		if (work->seal_rounds[i] != round->round)
			continue;
		issue->seals[i].time_us = round->sealed_at_us;
		issue->seals[i].kind = kind;
		issue->seals[i].authority = arena_text(issue->arena, name);
		if (!issue->seals[i].authority)
			result = ERR_NO_MEMORY;
	}
	return result;
}

/* Adds the second timestamp of a round, if it has one. */
static int add_second(struct archive_work *work, int64_t number, bool covers, struct arena *arena,
                      struct archive_round *round)
{
	struct round_token token;
	enum authority_kind kind;
	int result =
		store_get_second_token(work->issue->service->store, number, arena, &token, work->error);
	if (result == ERR_NOT_FOUND)
		return OK;
	if (!result && !authority_kind_parse(slice_of(token.kind), &kind))
		result =
			error_cause(work->error, ERR_CORRUPT, "round %" PRId64 ": kind %s", number, token.kind);
	if (result)
		return result;
	assert(round->token_count < ARCHIVE_TOKENS_MAX);
	round->tokens[round->token_count++] = (struct archive_token){
		.authority = token.authority,
		.kind = kind,
		.request = token.request,
		.token = token.token,
		.gen_time_us = token.sealed_at_us,
	};
	return covers ? note_authority(work->issue, token.authority, kind) : OK;
}

/* Adds validation data and renewals of the round's tokens. */
static int complete_round(struct archive_work *work, int64_t number, struct arena *arena,
                          struct archive_round *round)
{
	struct store *store = work->issue->service->store;
	int result = archive_validation_add(&work->needs, store, arena, round, work->error);
	for (size_t i = 0; i < round->token_count && !result; i++) {
		struct archive_token *token = &round->tokens[i];
		result = token_renewals_add(&work->renewals, store, i == 0 ? TOKEN_ROUND : TOKEN_SECOND,
		                            number, token->token, arena, &token->renewal, work->error);
	}
	return result;
}

static int add_round(struct archive_work *work, int64_t number, bool covers, struct arena *arena)
{
	struct round_record round;
	enum authority_kind kind;
	int result = store_get_round(work->issue->service->store, number, arena, &round, work->error);
	if (!result && !authority_kind_parse(slice_of(round.kind), &kind))
		result =
			error_cause(work->error, ERR_CORRUPT, "round %" PRId64 ": kind %s", number, round.kind);
	if (result)
		return result;
	char id[ROUND_ID_SIZE];
	round_id(number, id);
	struct archive_round given = {
		.round_id = id,
		.root = round.root,
		.tokens = {{.authority = round.authority,
	                .kind = kind,
	                .request = round.request,
	                .token = round.token,
	                .gen_time_us = round.sealed_at_us}},
		.token_count = 1,
	};
	result = add_second(work, number, covers, arena, &given);
	if (!result)
		result = complete_round(work, number, arena, &given);
	if (!result)
		result = archive_add_round(work->archive, &given, work->error);
	assert(result || number > work->last_round); /* each round once, in order */
	work->last_round = number;
	return !result && covers ? describe_round(work, &round, kind) : result;
}

/* Adds a round once, after the round before it. */
static int add_round_of_segment(struct archive_work *work, int64_t round)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	int result = OK;
	if (round > 1 && work->last_round < round - 1)
		result = add_round(work, round - 1, false, &arena);
	if (!result && work->last_round < round)
		result = add_round(work, round, true, &arena);
	return result;
}

/* The rounds follow all segments in the archive; segments contain only the numbers of rounds. */
static int add_rounds(struct archive_work *work)
{
	const struct certification *certification = work->issue->certification;
	int64_t rounds[ROUNDS_AT_ONCE];
	const int64_t most = tuned_up_to("archive_rounds", ROUNDS_AT_ONCE);
	int result = OK;
	for (int64_t first = work->first_segment; first <= work->last_segment && !result;
	     first += most) {
		int64_t last = first + most - 1;
		if (last > work->last_segment)
			last = work->last_segment;
		result =
			store_read_segment_rounds(work->issue->service->store, certification->account,
		                              certification->chain, first, last, rounds, NULL, work->error);
		for (int64_t i = 0; i <= last - first && !result; i++) {
			result = add_round_of_segment(work, rounds[i]);
			if (!result)
				result = issue_progress(work->issue, 1, 1);
		}
	}
	return result;
}

/* ---- the segments before ---- */

static int add_history_document(void *context, struct slice document)
{
	struct archive_work *work = context;
	return archive_add_history(work->archive, document, work->error);
}

static int add_history(struct archive_work *work)
{
	const struct certification *certification = work->issue->certification;
	const int64_t most = tuned_up_to("archive_history", SEALS_AT_ONCE);
	int result = OK;
	for (int64_t first = 1; first < work->first_segment && !result; first += most) {
		int64_t last = first + most - 1;
		if (last >= work->first_segment)
			last = work->first_segment - 1;
		result = store_read_seals(work->issue->service->store, certification->account,
		                          certification->chain, first, last, add_history_document, work,
		                          work->error);
		if (!result)
			result = issue_progress(work->issue, 1, 1);
	}
	return result;
}

/* ---- the whole ---- */

static int fill(struct archive_work *work)
{
	struct issue_job *issue = work->issue;
	int result = add_signers(work);
	if (!result)
		result = add_configurations(work);
	if (!result)
		result = issue_each_event(issue, false, add_event, work, work->error);
	if (result || issue->certification->mode == MODE_TEST)
		return result;
	result = find_segments(work);
	if (!result)
		result = add_segments(work);
	if (!result)
		result = add_rounds(work);
	if (!result)
		result = archive_validation_write(&work->needs, work->archive, work->error);
	if (!result)
		result = token_renewals_write(&work->renewals, issue->service->store, work->archive,
		                              work->error);
	if (!result)
		result = issue_add_log(issue, work->archive, work->first_segment, work->last_segment,
		                       work->error);
	issue->has_history = issue->certification->seal_history || work->first_segment == 1;
	return result || !issue->certification->seal_history ? result : add_history(work);
}

static int allocate(struct archive_work *work)
{
	struct issue_job *issue = work->issue;
	struct arena *arena = issue->arena;
	issue->events = arena_alloc(arena, REPORT_EVENT_ROWS_MAX * sizeof *issue->events);
	issue->seals = arena_alloc(arena, REPORT_SEAL_ROWS_MAX * sizeof *issue->seals);
	work->seal_rounds = arena_alloc(arena, REPORT_SEAL_ROWS_MAX * sizeof *work->seal_rounds);
	issue->authorities = arena_alloc(arena, REPORT_AUTHORITY_ROWS_MAX * sizeof *issue->authorities);
	return issue->events && issue->seals && work->seal_rounds && issue->authorities ? OK
	                                                                                : ERR_NO_MEMORY;
}

static int finish(struct archive_work *work)
{
	struct issue_job *issue = work->issue;
	struct cms_signing signing = issue->signing;
	if (signing.timestamp && issue->service->revocation) {
		signing.collect = issue_collect_inside;
		signing.collect_context = issue;
	}
	int result = issue_await_parts(issue, work->error);
	if (!result)
		result = archive_set_parts(work->archive, issue->parts, issue->part_count, work->error);
	if (!result)
		result = archive_finish(work->archive, &signing, &issue->archive_sum, work->error);
	if (result)
		return result;
	issue->first_chain_hash = archive_first_chain_hash(work->archive);
	issue->last_chain_hash = archive_last_chain_hash(work->archive);
	const int64_t count = issue_event_count(issue);
	assert((int64_t)issue->event_rows ==
	       (count <= REPORT_EVENT_ROWS_MAX ? count : 2 * REPORT_EDGE_ROWS));
	assert((int64_t)issue->seal_rows <= issue->seal_count);
	if (!sha256_equal(&issue->last_chain_hash, &work->previous))
		return error_cause(work->error, ERR_CORRUPT, "the last event's chain hash differs");
	return OK;
}

int issue_archive(struct issue_job *issue, struct error *error)
{
	const struct certification *certification = issue->certification;
	const struct settings *settings = issue->service->settings;
	struct archive_facts facts = {
		.certification_id = certification->certification_id,
		.verification_code = certification->verification_code,
		.channel_id = certification->channel_id,
		.mode = certification->mode,
		.genesis = {certification->channel_id, certification->mode, issue->head.created_at_us},
		.issued_at_us = issue->issued_at_us,
		.requested_from_us = certification->range.from_us,
		.requested_to_us = certification->range.to_us,
		.requested_first = certification->range.seq_from,
		.requested_last = certification->range.seq_to,
		.first_sequence = certification->first_sequence,
		.last_sequence = certification->last_sequence,
		.service_name = settings->service_name,
		.service_prefix = settings->service_prefix,
		.verification_url = issue->verification_url,
	};
	struct archive_work work = {
		.issue = issue,
		.previous = issue->chain_hash_before,
		.needs.revocations.work = issue,
		.error = error,
	};
	char path[ISSUE_PATH_MAX];
	issue_path(issue, issue->archive_name, path);
	int result = allocate(&work);
	if (!result)
		result = archive_begin(path, &facts, &work.archive, error);
	if (!result)
		result = fill(&work);
	if (!result)
		result = finish(&work);
	archive_free(work.archive);
	archive_validation_free(&work.needs);
	token_renewals_free(&work.renewals);
	return result;
}
