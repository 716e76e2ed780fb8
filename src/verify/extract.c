#include "verify/extract.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "archive/logged_event.h"
#include "ledger/ledger.h"
#include "seal/evidence_record.h"
#include "seal/validation_set.h"
#include "verify/verify_check.h"

#define EVENTS_PER_PROGRESS 4096
#define LINE_ARENA_MAX ((size_t)8 << 20)
#define MANIFEST_ARENA_MAX ((size_t)64 << 20)
#define LOG_PROOF_ARENA_MAX ((size_t)32 << 20)

struct walk {
	const struct extraction *extraction;
	struct error *error;
	struct zip_reader *zip;
	struct arena arena;       /* memory of the manifest */
	struct arena line_arena;  /* memory of one line */
	struct arena stamp_arena; /* memory of an archive timestamp of the round */
	struct archive_manifest manifest;
	int64_t sequence; /* sequence of the event */
	struct line_stream *streams[STREAM_COUNT];
	struct buf line;       /* line of the segment */
	struct buf event;      /* the event record */
	struct sha256 *leaves; /* leaves of its segment */
	int64_t received_at_us;
	int64_t next_sequence; /* sequence of the next line of events */
	int64_t segment;       /* number of its segment's line, from 1 */
	struct buf lines;      /* of the proof that it is in the log */
};

static int invalid(struct walk *walk, const char *what)
{
	return error_cause(walk->error, ERR_INVALID_EVIDENCE, "%s: %s", walk->extraction->archive,
	                   what);
}

/* Reads a line that must exist. */
static int next_line(struct walk *walk, enum archive_stream stream, struct slice *ret_line)
{
	int result = line_stream_next(walk->streams[stream], ret_line, walk->error);
	if (!result)
		return error_cause(walk->error, ERR_INVALID_EVIDENCE, "%s: %s ends too early",
		                   walk->extraction->archive, archive_stream_text(stream));
	return result < 0 ? result : OK;
}

/* ---- the manifest ---- */

static int read_manifest(struct walk *walk)
{
	BUF_AUTO struct buf text;
	buf_init(&text, ARCHIVE_MANIFEST_MAX);
	const struct zip_entry *entry = zip_find(walk->zip, ARCHIVE_MANIFEST_NAME);
	if (!entry)
		return invalid(walk, "not an evidence archive: there is no " ARCHIVE_MANIFEST_NAME);
	int result = zip_entry_load(walk->zip, entry, ARCHIVE_MANIFEST_MAX - 1, &text, walk->error);
	return result ? result
	              : archive_read_manifest(&walk->arena, buf_slice(&text), &walk->manifest,
	                                      walk->error);
}

/* Finds the event. Its identifier contains the chain and the sequence. */
static int find_event(struct walk *walk)
{
	const struct archive_facts *facts = &walk->manifest.facts;
	if (facts->mode == MODE_TEST)
		return error_cause(walk->error, ERR_REFUSED,
		                   "%s is a test archive: its events have no timestamps",
		                   walk->extraction->archive);
	walk->sequence =
		event_id_sequence(slice_of(walk->extraction->event_id), facts->channel_id, facts->mode);
	if (walk->sequence >= facts->first_sequence && walk->sequence <= facts->last_sequence)
		return OK;
	return error_cause(walk->error, ERR_NOT_FOUND,
	                   "%s contains events %" PRId64 " to %" PRId64 " of %s, but not %s",
	                   walk->extraction->archive, facts->first_sequence, facts->last_sequence,
	                   facts->channel_id, walk->extraction->event_id);
}

/* ---- the segment ---- */

/* Reads seals up to the segment that covers the event. */
static int find_segment(struct walk *walk, struct archive_segment *ret_segment)
{
	for (;;) {
		struct slice line;
		int result = next_line(walk, STREAM_SEALS, &line);
		if (result)
			return result;
		/* The segment points into its line, which is copied because later lines overwrite it. */
		walk->segment++;
		buf_clear(&walk->line);
		buf_add_slice(&walk->line, line);
		result = buf_check(&walk->line);
		arena_reset(&walk->line_arena);
		if (!result)
			result = archive_read_segment(&walk->line_arena, buf_slice(&walk->line), ret_segment,
			                              walk->error);
		if (result)
			return result;
		const struct seal_document *seal = &ret_segment->seal;
		if (seal->first_sequence <= walk->sequence && seal->last_sequence >= walk->sequence)
			return OK;
	}
}

static int take_leaf(struct walk *walk, int64_t sequence, struct sha256 *ret_leaf)
{
	struct slice line;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, LINE_ARENA_MAX);
	/* The leaves of earlier segments come first. */
	for (int64_t found = 0; found != sequence;) {
		int result = next_line(walk, STREAM_LEAVES, &line);
		arena_reset(&arena);
		if (!result)
			result = archive_read_leaf(&arena, line, &found, ret_leaf, walk->error);
		if (result)
			return result;
		if (found > sequence)
			return invalid(walk, "a leaf of the event's segment is missing");
	}
	return OK;
}

static int keep_event(struct walk *walk, struct slice line)
{
	struct event_facts event;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, LINE_ARENA_MAX);
	int result = archive_read_event(&arena, line, &event, walk->error);
	if (result)
		return result;
	if (event.sequence != walk->sequence || !slice_is(event.event_id, walk->extraction->event_id))
		return invalid(walk, "the event is not at its position");
	walk->received_at_us = event.received_at_us;
	buf_add_slice(&walk->event, line);
	return buf_check(&walk->event);
}

static void keep_for_log(struct walk *walk, struct slice line)
{
	if (!walk->extraction->wants_log_proof)
		return;
	buf_add_slice(&walk->lines, line);
	buf_add_byte(&walk->lines, '\n');
}

/* Reads events up to `sequence`. The lines begin with the range and have no gaps. */
static int take_event(struct walk *walk, int64_t sequence, struct sha256 *ret_leaf)
{
	const struct extraction *extraction = walk->extraction;
	for (; walk->next_sequence <= sequence; walk->next_sequence++) {
		struct slice line;
		int result = next_line(walk, STREAM_EVENTS, &line);
		if (!result && walk->next_sequence == sequence)
			*ret_leaf = sha256_of(line.data, line.size);
		if (!result && walk->next_sequence == walk->sequence)
			result = keep_event(walk, line);
		if (!result && walk->next_sequence >= walk->sequence)
			keep_for_log(walk, line);
		uint64_t done = (uint64_t)(walk->next_sequence - walk->manifest.facts.first_sequence) + 1;
		if (!result && extraction->progress && done % EVENTS_PER_PROGRESS == 0)
			result = extraction->progress(extraction->progress_context, extraction->archive, done,
			                              (uint64_t)walk->manifest.event_count);
		if (result)
			return result;
	}
	return OK;
}

/* Computes the proof of the event up to the root of the segment. */
static int prove_in_segment(struct walk *walk, const struct seal_document *seal,
                            struct tree_proof *ret_proof)
{
	const struct archive_facts *facts = &walk->manifest.facts;
	BUF_AUTO struct buf scratch;
	buf_init(&scratch, SEAL_DOCUMENT_MAX);
	size_t count = 0;
	seal_document_write(seal, &scratch);
	int result = buf_check(&scratch);
	if (!result)
		keep_for_log(walk, buf_slice(&scratch));
	for (int64_t at = seal->first_sequence; at <= seal->last_sequence && !result; at++) {
		bool inside = at >= facts->first_sequence && at <= facts->last_sequence;
		assert(count < SEGMENT_EVENTS_MAX); /* of the seal document */
		struct sha256 *leaf = &walk->leaves[count++];
		result = inside ? take_event(walk, at, leaf) : take_leaf(walk, at, leaf);
	}
	if (result)
		return result;
	walk->leaves[count] = sha256_of(scratch.data, scratch.size);
	TREE_AUTO struct hash_tree *tree = NULL;
	result = tree_build(walk->leaves, count + 1, &tree);
	if (!result)
		tree_prove(tree, (size_t)(walk->sequence - seal->first_sequence), ret_proof);
	return result;
}

/* ---- the round ---- */

static int find_round(struct walk *walk, const char *round_id, struct archive_round *ret_round)
{
	for (;;) {
		struct slice line;
		int result = next_line(walk, STREAM_ROUNDS, &line);
		arena_reset(&walk->line_arena);
		if (!result)
			result = archive_read_round(&walk->line_arena, line, walk->manifest.version, ret_round,
			                            walk->error);
		if (result || strcmp(ret_round->round_id, round_id) == 0)
			return result;
	}
}

/* ---- its renewals ---- */

/* Finds an archive timestamp. The stream is read from its beginning, because it is short and the
 * line may be anywhere in it. */
static int find_stamp(struct walk *walk, int64_t number, struct archive_stamp *ret_stamp)
{
	line_stream_free(walk->streams[STREAM_RENEWALS]);
	walk->streams[STREAM_RENEWALS] = NULL;
	int result = line_stream_open(walk->zip, STREAM_RENEWALS, false,
	                              &walk->streams[STREAM_RENEWALS], walk->error);
	for (ret_stamp->stamp = 0; !result && ret_stamp->stamp != number;) {
		struct slice line;
		result = next_line(walk, STREAM_RENEWALS, &line);
		arena_reset(&walk->stamp_arena);
		if (!result)
			result = archive_read_stamp(&walk->stamp_arena, line, ret_stamp, walk->error);
	}
	return result;
}

static int append_renewal(struct walk *walk, struct evidence_record *record,
                          const struct archive_renewal *renewal, struct archive_stamp *ret_stamp)
{
	assert(renewal->path && renewal->path->count <= TREE_PROOF_MAX);
	struct evidence_path path = {.count = renewal->path->count};
	struct error cause = {0};
	for (size_t i = 0; i < path.count; i++)
		path.siblings[i] = digest_of_sha256(&renewal->path->siblings[i]);
	int result = find_stamp(walk, renewal->stamp, ret_stamp);
	if (!result)
		result = evidence_record_next_leaf(record, NULL, &path.leaf);
	if (!result)
		result = evidence_record_renew(record, NULL, &path, ret_stamp->token, &cause);
	return result == ERR_INVALID_EVIDENCE && cause.cause[0] ? invalid(walk, cause.cause) : result;
}

/* The validation objects to which a token refers. */
struct named {
	struct buf certificates; /* DER, concatenated */
	struct validation_set revocations;
};

static bool is_named(const struct sha256 *names, size_t count, const struct sha256 *sha256)
{
	for (size_t i = 0; i < count; i++)
		if (sha256_equal(&names[i], sha256))
			return true;
	return false;
}

static int take_object(const struct archive_token *token, const struct archive_object *object,
                       const struct sha256 *sha256, struct named *named, size_t *left,
                       struct error *error)
{
	int result = OK;
	if (is_named(token->certificates, token->certificate_count, sha256))
		buf_add_slice(&named->certificates, object->der);
	else if (is_named(token->revocations, token->revocation_count, sha256))
		result = validation_set_add(&named->revocations,
		                            object->kind == OBJECT_CRL ? VALIDATION_CRL : VALIDATION_OCSP,
		                            object->der, error);
	else
		return OK;
	--*left;
	return result;
}

static int read_named(struct walk *walk, const struct archive_token *token, struct named *named)
{
	size_t left = token->certificate_count + token->revocation_count;
	int result = OK;
	if (left > 0) {
		line_stream_free(walk->streams[STREAM_VALIDATION]);
		walk->streams[STREAM_VALIDATION] = NULL;
		result = line_stream_open(walk->zip, STREAM_VALIDATION, false,
		                          &walk->streams[STREAM_VALIDATION], walk->error);
	}
	while (!result && left > 0) {
		struct slice line;
		struct archive_object object;
		struct sha256 sha256;
		result = next_line(walk, STREAM_VALIDATION, &line);
		arena_reset(&walk->stamp_arena);
		if (!result)
			result = archive_read_object(&walk->stamp_arena, line, &object, &sha256, walk->error);
		if (!result)
			result = take_object(token, &object, &sha256, named, &left, walk->error);
	}
	return result ? result : buf_check(&named->certificates);
}

/* Appends the archive timestamps that renewed the token, in the order of time. *ret_newest is the
 * last one of them, as stored. */
static int follow_renewals(struct walk *walk, const struct archive_token *token,
                           struct evidence_record *record, struct archive_stamp *ret_newest)
{
	int result = OK;
	*ret_newest = (struct archive_stamp){.renewal = token->renewal, .token = token->token};
	while (!result && ret_newest->renewal.stamp > 0) {
		/* The path is copied because later lines overwrite it. */
		struct tree_proof path = *ret_newest->renewal.path;
		struct archive_renewal renewal = {ret_newest->renewal.stamp, &path};
		result = append_renewal(walk, record, &renewal, ret_newest);
	}
	return result;
}

/* Computes the time until which the newest token is valid, from its own data and the objects to
 * which the first token refers. */
static int find_end(struct walk *walk, struct slice newest, bool renewed, const struct named *named,
                    int64_t *ret_until_us)
{
	int64_t gen_time_us;
	struct slice embedded = renewed ? slice_make(NULL, 0) : buf_slice(&named->certificates);
	return timestamp_valid_until(newest, embedded, &gen_time_us, ret_until_us, walk->error);
}

/* Completes the record with one token of the round, its renewals and its validation data.
 * *ret_until_us (may be NULL) is the time until which the record is valid. */
static int complete_record(struct walk *walk, const struct archive_token *token,
                           struct evidence_record *record, struct named *named,
                           int64_t *ret_until_us)
{
	struct archive_stamp newest;
	BUF_AUTO struct buf newest_token;
	buf_init(&newest_token, ARCHIVE_LINE_MAX);
	int result = follow_renewals(walk, token, record, &newest);
	/* The token is copied because later lines overwrite it. */
	if (!result)
		buf_add_slice(&newest_token, newest.token);
	if (!result)
		result = buf_check(&newest_token);
	if (!result)
		result = read_named(walk, token, named);
	if (!result && ret_until_us)
		result =
			find_end(walk, buf_slice(&newest_token), token->renewal.stamp > 0, named, ret_until_us);
	return result ? result
	              : evidence_record_complete(record, buf_slice(&named->certificates),
	                                         &named->revocations, walk->error);
}

static int make_record(struct walk *walk, const struct tree_proof *proof,
                       const struct archive_token *token, struct evidence_record **ret_record,
                       int64_t *ret_until_us)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	struct named named = {0};
	struct error cause = {0};
	int result = evidence_record_create(proof, token->token, &record, &cause);
	if (result == ERR_INVALID_EVIDENCE)
		return invalid(walk, cause.cause);
	buf_init(&named.certificates, TIMESTAMP_PATH_MAX);
	if (!result)
		result = complete_record(walk, token, record, &named, ret_until_us);
	buf_free(&named.certificates);
	validation_set_free(&named.revocations);
	if (result)
		return result;
	*ret_record = record;
	record = NULL;
	return OK;
}

/* ---- the log ---- */

/* Reads the place of the event's segment. The places have the order of the segments. */
static int read_place(struct walk *walk, struct archive_log_place *ret)
{
	struct slice line = {0};
	int result = OK;
	for (int64_t i = 0; i < walk->segment && !result; i++) {
		result = line_stream_next(walk->streams[STREAM_LOG], &line, walk->error);
		if (!result && i == 0)
			return error_cause(walk->error, ERR_REFUSED,
			                   "%s has no log/: its segments were not in a log when it was issued",
			                   walk->extraction->archive);
		result = result == 1 ? OK : result ? result : invalid(walk, "log/ ends too early");
	}
	arena_reset(&walk->line_arena);
	if (!result)
		result = archive_read_log_place(&walk->line_arena, line, ret, walk->error);
	if (!result && ret->size == 0)
		return error_cause(walk->error, ERR_REFUSED,
		                   "%s: the event's segment has no place in the log",
		                   walk->extraction->archive);
	return result;
}

/* Reads checkpoints up to that of a tree. */
static int find_note(struct walk *walk, uint64_t size, const char **ret_note)
{
	for (;;) {
		struct slice line;
		struct archive_checkpoint found;
		struct checkpoint checkpoint;
		struct note note;
		int result = next_line(walk, STREAM_CHECKPOINTS, &line);
		arena_reset(&walk->stamp_arena);
		if (!result)
			result = archive_read_checkpoint(&walk->stamp_arena, line, &found, walk->error);
		if (!result)
			result = note_parse(&walk->stamp_arena, slice_of(found.note), &note, walk->error);
		if (!result)
			result = checkpoint_parse(note.text, &checkpoint, walk->error);
		if (result)
			return result;
		*ret_note = found.note;
		if (checkpoint.size == size)
			return OK;
	}
}

/* Refuses what the archive does not have all records for. */
static int check_lines(struct walk *walk, int64_t last_sequence)
{
	const char *archive = walk->extraction->archive;
	int64_t last = walk->manifest.facts.last_sequence;
	if (last_sequence > last)
		return error_cause(walk->error, ERR_REFUSED,
		                   "%s ends with event %" PRId64 ", and the event's segment with %" PRId64
		                   ": the proof of the log needs an archive with both",
		                   archive, last, last_sequence);
	if (buf_check(&walk->lines) == OK)
		return OK;
	return walk->lines.full ? error_cause(walk->error, ERR_REFUSED,
	                                      "%s: the event and those after it in its segment have "
	                                      "more than %zu bytes",
	                                      archive, LOGGED_EVENT_LINES_MAX)
	                        : ERR_NO_MEMORY;
}

/* Proves that the event is in the log. The checkpoint is the first one with the segment. */
static int prove_in_log(struct walk *walk, int64_t last_sequence, struct buf *out)
{
	ARENA_AUTO struct arena arena;
	struct archive_log_place place;
	struct logged_event ignored;
	struct error cause = {0};
	const char *note;
	arena_init(&arena, LOG_PROOF_ARENA_MAX);
	int result = check_lines(walk, last_sequence);
	if (!result)
		result = read_place(walk, &place);
	if (!result)
		result = find_note(walk, place.size, &note);
	if (!result)
		result = logged_event_write(buf_slice(&walk->lines), place.index, place.path,
		                            slice_of(note), out);
	if (!result)
		result = logged_event_read(&arena, buf_slice(out), &ignored, &cause);
	return result == ERR_INVALID_EVIDENCE && cause.cause[0] ? invalid(walk, cause.cause) : result;
}

/* ---- the extraction ---- */

/* Uses the second token if the first one is no longer valid. */
static int make_best_record(struct walk *walk, const struct tree_proof *proof,
                            const struct archive_round *round, struct buf *out)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *first = NULL;
	EVIDENCE_RECORD_AUTO struct evidence_record *second = NULL;
	int64_t until_us = 0, second_until_us = 0;
	struct sha256 root = tree_proof_root(proof);
	if (!sha256_equal(&root, &round->root))
		return invalid(walk, "the event's segment does not lead to the root of its round");
	assert(round->token_count >= 1 && round->token_count <= ARCHIVE_TOKENS_MAX);
	bool alone = round->token_count == 1;
	int result = make_record(walk, proof, &round->tokens[0], &first, alone ? NULL : &until_us);
	if (!result && !alone && until_us < clock_now_us())
		result = make_record(walk, proof, &round->tokens[1], &second, &second_until_us);
	if (result)
		return result;
	return evidence_record_write(second && second_until_us > until_us ? second : first, out);
}

static struct slice keep(struct arena *arena, struct slice bytes, int *result)
{
	char *copy = *result ? NULL : arena_copy(arena, bytes.data, bytes.size);
	if (!copy && !*result)
		*result = ERR_NO_MEMORY;
	return slice_make(copy, bytes.size);
}

static int follow(struct walk *walk, struct arena *arena, struct extracted *extracted)
{
	struct archive_segment segment;
	struct tree_proof within, path, proof;
	int result = find_segment(walk, &segment);
	if (!result)
		result = prove_in_segment(walk, &segment.seal, &within);
	if (result)
		return result;
	const int64_t last_sequence = segment.seal.last_sequence;
	path = *segment.path;
	path.leaf = tree_proof_root(&within);
	if (tree_proof_compose(&within, &path, &proof))
		return invalid(walk, "the path from the event to the round is too long");
	const char *round_id = arena_text(arena, segment.round_id);
	extracted->segment_id = arena_text(arena, segment.seal.segment_id);
	if (!round_id || !extracted->segment_id)
		return ERR_NO_MEMORY;
	struct archive_round round;
	BUF_AUTO struct buf der;
	BUF_AUTO struct buf log_proof;
	buf_init(&der, EVIDENCE_RECORD_MAX);
	buf_init(&log_proof, LOGGED_EVENT_MAX);
	result = find_round(walk, round_id, &round);
	if (!result)
		result = make_best_record(walk, &proof, &round, &der);
	extracted->event = keep(arena, buf_slice(&walk->event), &result);
	extracted->record = keep(arena, buf_slice(&der), &result);
	if (result)
		return result;
	extracted->authority = arena_text(arena, round.tokens[0].authority);
	extracted->gen_time_us = round.tokens[0].gen_time_us;
	if (!extracted->authority)
		return ERR_NO_MEMORY;
	/* This comes last, because it overwrites the line of the round. */
	if (walk->extraction->wants_log_proof)
		result = prove_in_log(walk, last_sequence, &log_proof);
	if (log_proof.size > 0)
		extracted->log_proof = keep(arena, buf_slice(&log_proof), &result);
	return result;
}

static int begin(struct walk *walk)
{
	int result = zip_open(walk->extraction->archive, &walk->zip, walk->error);
	if (!result)
		result = read_manifest(walk);
	if (!result)
		result = find_event(walk);
	for (int i = 0; i < STREAM_COUNT && !result; i++)
		result = line_stream_open(walk->zip, (enum archive_stream)i, false, &walk->streams[i],
		                          walk->error);
	walk->next_sequence = walk->manifest.facts.first_sequence;
	return result;
}

static void end(struct walk *walk)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		line_stream_free(walk->streams[i]);
	zip_reader_free(walk->zip);
	free(walk->leaves);
	buf_free(&walk->line);
	buf_free(&walk->event);
	buf_free(&walk->lines);
	arena_free(&walk->arena);
	arena_free(&walk->line_arena);
	arena_free(&walk->stamp_arena);
}

int extract_record(const struct extraction *extraction, struct arena *arena,
                   struct extracted *ret_extracted, struct error *error)
{
	struct walk walk = {.extraction = extraction, .error = error};
	struct extracted extracted = {0};
	arena_init(&walk.arena, MANIFEST_ARENA_MAX);
	arena_init(&walk.line_arena, LINE_ARENA_MAX);
	arena_init(&walk.stamp_arena, LINE_ARENA_MAX);
	buf_init(&walk.line, ARCHIVE_LINE_MAX + 1);
	buf_init(&walk.event, ARCHIVE_LINE_MAX + 1);
	buf_init(&walk.lines, LOGGED_EVENT_LINES_MAX);
	walk.leaves = calloc(SEGMENT_LEAVES_MAX, sizeof *walk.leaves);
	int result = walk.leaves ? begin(&walk) : ERR_NO_MEMORY;
	if (!result)
		result = follow(&walk, arena, &extracted);
	if (!result) {
		extracted.sequence = walk.sequence;
		extracted.received_at_us = walk.received_at_us;
		*ret_extracted = extracted;
	}
	end(&walk);
	return result;
}
