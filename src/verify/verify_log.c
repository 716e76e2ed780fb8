/* Checks the places of segments in the log (src/tlog): that each entry is in the tree of its
 * checkpoint, that all checkpoints are of one history, and which witnesses cosigned. */
#include <stdio.h>
#include <stdlib.h>

#include "tlog/checkpoint.h"
#include "tlog/entry.h"
#include "tlog/policy.h"
#include "verify/verify_chain.h"

#define NOTE_MEMORY_MAX ((size_t)512 << 10)
/* A segment should be in a witnessed checkpoint before that time has passed since the reception of
 * its events: two of the longest intervals within which a service promises to seal. */
#define WITNESS_DELAY_MAX_US (1200 * US_PER_SECOND)
#define NAMES_SIZE 256
#define WAITING_MAX 1024

/* Segments whose checkpoints too few witnesses cosigned: the next checkpoint that enough of them
 * cosigned is the first that shows when they existed. */
struct waiting_segments {
	int64_t received_us;
	uint64_t count;
};

struct log_check {
	bool has_checkpoint;
	struct checkpoint checkpoint; /* the last one read */
	struct note note;             /* of it, in the arena */
	struct merkle_path consistency;
	struct arena arena;
	struct arena next_arena; /* of the line that is read: one that is not valid replaces nothing */
	uint64_t logged, not_logged, late;
	int64_t received_us; /* of the last segment in the log; TIME_NONE: unknown */
	struct waiting_segments waiting[WAITING_MAX];
	size_t waiting_count;
	/* The keys of logs that the archive's signer certifies. */
	struct note_key *certified;
	size_t certified_count;
	bool is_signed, is_certified; /* the newest one, by a log of the policy, and by one of these */
	/* Times of the cosignatures of the last one, if they were verified; TIME_NONE: none. */
	bool has_cosignatures;
	int64_t stated_us[POLICY_WITNESSES_MAX];
	int64_t impossible_us[POLICY_WITNESSES_MAX]; /* of any checkpoint; TIME_NONE: none */
	/* Of the newest one. */
	bool cosigned[POLICY_WITNESSES_MAX];
	int64_t cosigned_us[POLICY_WITNESSES_MAX];
};

static const struct policy *policy_of(const struct chain *chain)
{
	return chain->run->options ? chain->run->options->log_policy : NULL;
}

/* ---- checkpoints ---- */

static int verify_key(const struct note *note, const struct note_key *key, bool *ret_signed,
                      int64_t *ret_time_us, struct error *error)
{
	enum note_verdict verdict = note_verify(note, key, ret_time_us);
	*ret_signed = verdict == NOTE_SIGNED;
	if (verdict == NOTE_NOT_CHECKED)
		return ERR_NO_MEMORY;
	return verdict == NOTE_FALSE ? finding_fail(error, FINDING_LOG_SIGNATURE_FALSE, key->name) : 0;
}

/* Verifies a signature of the log itself. */
static int check_log_key(const struct log_check *log, const struct note *note,
                         const struct note_key *key, bool *signed_so_far, struct error *error)
{
	bool is_signed;
	int result = verify_key(note, key, &is_signed, NULL, error);
	*signed_so_far |= is_signed && strcmp(key->name, log->checkpoint.origin) == 0;
	return result;
}

/* Verifies the signatures of the log's known keys. Those of earlier checkpoints are not needed: the
 * newest tree begins with theirs. */
static int check_log_keys(struct chain *chain, struct error *error)
{
	struct log_check *log = chain->log;
	const struct policy *policy = policy_of(chain);
	int result = 0;
	for (size_t i = 0; i < log->certified_count && !result; i++)
		result = check_log_key(log, &log->note, &log->certified[i], &log->is_certified, error);
	for (size_t i = 0; policy && i < policy->log_count && !result; i++)
		result = check_log_key(log, &log->note, &policy->logs[i].key, &log->is_signed, error);
	return result;
}

/* Verifies the cosignatures of the last checkpoint, unless that was done. */
static int check_cosignatures(struct chain *chain, struct error *error)
{
	struct log_check *log = chain->log;
	const struct policy *policy = policy_of(chain);
	int result = 0;
	for (size_t i = 0; policy && i < policy->witness_count && !log->has_cosignatures && !result;
	     i++) {
		bool is_signed;
		result = verify_key(&log->note, &policy->witnesses[i].key, &is_signed, &log->stated_us[i],
		                    error);
	}
	log->has_cosignatures = !result;
	return result;
}

/* Takes the times of the last checkpoint that can be right: a witness cosigns no event before its
 * reception, and nothing that the archive has after the archive was signed. */
static void take_times(struct chain *chain, int64_t received_us,
                       int64_t times_us[POLICY_WITNESSES_MAX])
{
	struct log_check *log = chain->log;
	const struct input *archive = chain->facts->input;
	const int64_t end_us =
		archive->signed_at_us != TIME_NONE ? archive->signed_at_us : chain->run->result->at_us;
	for (size_t i = 0; i < policy_of(chain)->witness_count; i++) {
		const int64_t time_us = log->stated_us[i];
		bool possible =
			time_us != TIME_NONE && time_us <= end_us + VERIFY_CLOCK_TOLERANCE_US &&
			(received_us == TIME_NONE || time_us >= received_us - VERIFY_CLOCK_TOLERANCE_US);
		times_us[i] = possible ? time_us : TIME_NONE;
		if (!possible && time_us != TIME_NONE)
			log->impossible_us[i] = time_us;
	}
}

/* ---- the delay until witnesses cosigned ---- */

/* Beyond the bound, the number of late segments may come out too low, but not the first late ones:
 * events are in the order of their reception. */
static void add_waiting(struct log_check *log, int64_t received_us)
{
	if (log->waiting_count < WAITING_MAX)
		log->waiting[log->waiting_count++] = (struct waiting_segments){received_us, 0};
	struct waiting_segments *last = &log->waiting[log->waiting_count - 1];
	last->received_us = received_us;
	last->count++;
}

/* Compares the time of the last checkpoint, if enough witnesses cosigned it, with the reception of
 * the segments that wait. */
static int witness_waiting(struct chain *chain, struct error *error)
{
	struct log_check *log = chain->log;
	int64_t times_us[POLICY_WITNESSES_MAX];
	if (log->waiting_count == 0)
		return 0;
	int result = check_cosignatures(chain, error);
	if (result)
		return result;
	take_times(chain, log->waiting[log->waiting_count - 1].received_us, times_us);
	const int64_t time_us = policy_time(policy_of(chain), times_us);
	if (time_us == TIME_NONE)
		return 0;
	for (size_t i = 0; i < log->waiting_count; i++)
		if (time_us - log->waiting[i].received_us > WITNESS_DELAY_MAX_US)
			log->late += log->waiting[i].count;
	log->waiting_count = 0;
	return 0;
}

static int witness_segment(struct chain *chain)
{
	const struct policy *policy = policy_of(chain);
	struct log_check *log = chain->log;
	struct error error = {0};
	if (!policy || policy->witness_count == 0 || chain->segment_received_at_us == TIME_NONE)
		return 0;
	log->received_us = chain->segment_received_at_us;
	add_waiting(log, log->received_us);
	int result = witness_waiting(chain, &error);
	return result ? chain_record_error(chain, STREAM_CHECKPOINTS, result, &error) : 0;
}

/* ---- reading ---- */

/* Compares the new checkpoint with the one before it. */
static int check_history(const struct log_check *log, const struct checkpoint *next,
                         struct error *error)
{
	if (!log->has_checkpoint)
		return 0;
	if (strcmp(log->checkpoint.origin, next->origin) != 0)
		return finding_fail(error, FINDING_LOG_ORIGIN_DIFFERS, next->origin);
	if (next->size <= log->checkpoint.size)
		return finding_fail(error, FINDING_LOG_CHECKPOINTS_NOT_ASCENDING);
	if (!merkle_is_consistent(log->checkpoint.size, &log->checkpoint.root, next->size, &next->root,
	                          &log->consistency))
		return finding_fail(error, FINDING_LOG_TWO_HISTORIES, log->checkpoint.size, next->size);
	return 0;
}

static int read_checkpoint(struct chain *chain, struct slice line, struct error *error)
{
	struct log_check *log = chain->log;
	struct archive_checkpoint given;
	struct checkpoint next;
	struct note note;
	arena_reset(&log->next_arena);
	int result = archive_read_checkpoint(&log->next_arena, line, &given, error);
	if (result < 0)
		return result;
	buf_clear(&chain->scratch);
	archive_checkpoint_line(&given, &chain->scratch);
	result = verify_canonical(line, &chain->scratch, error);
	if (!result)
		result = note_parse(&log->next_arena, slice_of(given.note), &note, error);
	if (!result)
		result = checkpoint_parse(note.text, &next, error);
	if (!result)
		result = check_history(log, &next, error);
	if (result)
		return result;
	const struct arena before = log->arena;
	log->arena = log->next_arena;
	log->next_arena = before;
	log->has_checkpoint = true;
	log->checkpoint = next;
	log->note = note;
	log->consistency = *given.consistency;
	log->has_cosignatures = false;
	return witness_waiting(chain, error);
}

/* Reads checkpoints up to that of a size. Returns 1, or 0 if there is none. */
static int find_checkpoint(struct chain *chain, uint64_t size)
{
	struct log_check *log = chain->log;
	while (!log->has_checkpoint || log->checkpoint.size < size) {
		struct slice line;
		struct error error = {0};
		int result =
			chain_is_abandoned(chain) ? 0 : chain_next_line(chain, STREAM_CHECKPOINTS, &line);
		if (result == 1) {
			result = read_checkpoint(chain, line, &error);
			result = result < 0 ? chain_record_error(chain, STREAM_CHECKPOINTS, result, &error) : 1;
		}
		if (result <= 0)
			return result;
	}
	return log->checkpoint.size == size;
}

/* ---- segments ---- */

static int read_place(struct chain *chain, struct slice line, struct archive_log_place *ret,
                      struct error *error)
{
	arena_reset(&chain->arena);
	int result = archive_read_log_place(&chain->arena, line, ret, error);
	if (result < 0)
		return result;
	buf_clear(&chain->scratch);
	archive_log_line(ret, &chain->scratch);
	return verify_canonical(line, &chain->scratch, error);
}

static int check_entry(struct chain *chain, const struct seal_document *seal,
                       const struct archive_log_place *place)
{
	const struct log_check *log = chain->log;
	struct tlog_entry entry = {
		{{0}}, seal->first_sequence, seal->last_sequence, seal->chain_hash_last, chain->seal_hash};
	struct sha256 leaf;
	bool has_tag = tlog_tag(seal->channel_id, seal->chain, &entry.tag);
	if (tlog_entry_leaf(&entry, &chain->scratch, &leaf))
		return ERR_NO_MEMORY;
	if (!has_tag ||
	    !merkle_is_included(&leaf, place->index, place->size, place->path, &log->checkpoint.root))
		chain_wrong_at(chain, STREAM_LOG, "path", FINDING_LOG_NOT_INCLUDED);
	return witness_segment(chain);
}

int chain_check_log(struct chain *chain, const struct seal_document *seal)
{
	struct log_check *log = chain->log;
	struct slice line;
	struct error error = {0};
	struct archive_log_place place;
	if (!log)
		return 0;
	int result = chain_next_line(chain, STREAM_LOG, &line);
	if (!result)
		chain_wrong_at(chain, STREAM_SEALS, NULL, FINDING_LOG_PLACE_MISSING);
	if (result <= 0)
		return result;
	result = read_place(chain, line, &place, &error);
	if (result < 0)
		return chain_record_error(chain, STREAM_LOG, result, &error);
	log->logged += place.size > 0;
	log->not_logged += place.size == 0;
	if (place.size == 0)
		return 0;
	result = find_checkpoint(chain, place.size);
	if (!result)
		chain_wrong_at(chain, STREAM_LOG, "size", FINDING_LOG_CHECKPOINT_MISSING);
	return result <= 0 ? result : check_entry(chain, seal, &place);
}

/* ---- the whole ---- */

static int read_certified(struct chain *chain)
{
	const struct input *archive = chain->facts->input;
	struct log_check *log = chain->log;
	size_t count = archive->log_keys.count;
	struct error ignored = {0};
	log->certified = calloc(count + 1, sizeof *log->certified);
	if (!log->certified)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < count; i++)
		if (note_key_parse(slice_of(archive->log_keys.items[i].key),
		                   &log->certified[log->certified_count], &ignored) == OK)
			log->certified_count++;
	return 0;
}

int chain_begin_log(struct chain *chain)
{
	char path[ZIP_NAME_MAX + 1];
	archive_stream_path(STREAM_CHECKPOINTS, 1, path);
	if (!zip_find(chain->facts->zip, path))
		return 0;
	chain->log = calloc(1, sizeof *chain->log);
	if (!chain->log)
		return ERR_NO_MEMORY;
	arena_init(&chain->log->arena, NOTE_MEMORY_MAX);
	arena_init(&chain->log->next_arena, NOTE_MEMORY_MAX);
	chain->log->received_us = TIME_NONE;
	for (size_t i = 0; i < POLICY_WITNESSES_MAX; i++)
		chain->log->impossible_us[i] = TIME_NONE;
	return read_certified(chain);
}

void chain_free_log(struct chain *chain)
{
	if (!chain->log)
		return;
	arena_free(&chain->log->arena);
	arena_free(&chain->log->next_arena);
	free(chain->log->certified);
	free(chain->log);
}

/* Records what the newest checkpoint says. */
static int note_log(struct chain *chain)
{
	const struct policy *policy = policy_of(chain);
	const struct log_check *log = chain->log;
	struct verify_result *result = chain->run->result;
	size_t witnesses = policy ? policy->witness_count : 0;
	struct verify_log *item = arena_alloc(&result->arena, sizeof *item);
	char *path = arena_text(&result->arena, chain->facts->input->path);
	char *origin = arena_text(&result->arena, log->checkpoint.origin);
	struct verify_witness *cosigners =
		arena_alloc(&result->arena, (witnesses + 1) * sizeof *cosigners);
	if (!item || !path || !origin || !cosigners)
		return ERR_NO_MEMORY;
	verify_make_visible(path);
	verify_make_visible(origin);
	*item = (struct verify_log){.path = path,
	                            .origin = origin,
	                            .entries = log->checkpoint.size,
	                            .segments = log->logged + log->not_logged,
	                            .logged = log->logged,
	                            .is_signed = log->is_signed || log->is_certified,
	                            .witnesses = cosigners};
	for (size_t i = 0; i < witnesses; i++)
		if (log->cosigned[i])
			cosigners[item->witness_count++] = (struct verify_witness){
				arena_text(&result->arena, policy->witnesses[i].name), log->cosigned_us[i]};
	for (size_t i = 0; i < item->witness_count; i++)
		if (!cosigners[i].name)
			return ERR_NO_MEMORY;
	*(result->last_log ? &result->last_log->next : &result->logs) = item;
	result->last_log = item;
	return 0;
}

/* Lists the witnesses that did not cosign the newest checkpoint. */
static void list_missing(const struct policy *policy, const bool *cosigned, char names[NAMES_SIZE])
{
	size_t size = 0;
	names[0] = '\0';
	for (size_t i = 0; i < policy->witness_count && size < NAMES_SIZE; i++)
		if (!cosigned[i])
			size += (size_t)snprintf(names + size, NAMES_SIZE - size, "%s%s", size ? ", " : "",
			                         policy->witnesses[i].name);
}

/* Warns of what witnesses do not show about times. */
static void warn_witnesses(struct chain *chain, const struct policy *policy)
{
	const struct log_check *log = chain->log;
	const char *path = chain->facts->input->path;
	char time[TIME_TEXT_SIZE];
	uint64_t waiting = 0;
	for (size_t i = 0; i < policy->witness_count; i++) {
		if (log->impossible_us[i] == TIME_NONE)
			continue;
		time_format(log->impossible_us[i], time);
		verify_add(chain->run, VERIFY_WARNING, path, "", FINDING_LOG_COSIGNATURE_TIME,
		           policy->witnesses[i].name, time);
	}
	for (size_t i = 0; i < log->waiting_count; i++)
		waiting += log->waiting[i].count;
	if (waiting > 0)
		verify_add(chain->run, VERIFY_WARNING, path, "", FINDING_LOG_NOT_WITNESSED, waiting);
	if (log->late > 0)
		verify_add(chain->run, VERIFY_WARNING, path, "", FINDING_LOG_WITNESSED_LATE, log->late);
}

/* Judges the newest checkpoint by the policy. */
static void judge(struct chain *chain)
{
	const struct policy *policy = policy_of(chain);
	const struct log_check *log = chain->log;
	const char *path = chain->facts->input->path;
	char names[NAMES_SIZE];
	if (!policy || chain->run->options->log_policy_informs)
		return;
	if (!log || !log->has_checkpoint) {
		verify_add(chain->run, VERIFY_UNESTABLISHED, path, "", FINDING_LOG_ABSENT);
		return;
	}
	if (!log->is_signed)
		verify_add(chain->run, VERIFY_UNESTABLISHED, path, "", FINDING_LOG_NOT_SIGNED,
		           log->checkpoint.origin);
	if (!policy_is_satisfied(policy, log->cosigned)) {
		list_missing(policy, log->cosigned, names);
		verify_add(chain->run, VERIFY_UNESTABLISHED, path, "", FINDING_LOG_NO_QUORUM, names);
	}
	if (log->not_logged > 0)
		verify_add(chain->run, VERIFY_UNESTABLISHED, path, "", FINDING_LOG_SEGMENTS_NOT_LOGGED,
		           log->not_logged, log->logged + log->not_logged);
	warn_witnesses(chain, policy);
}

/* Verifies the signatures of the newest checkpoint. */
static int check_newest(struct chain *chain)
{
	struct log_check *log = chain->log;
	const struct policy *policy = policy_of(chain);
	struct error error = {0};
	int result = check_log_keys(chain, &error);
	if (!result)
		result = check_cosignatures(chain, &error);
	if (result)
		return chain_record_error(chain, STREAM_CHECKPOINTS, result, &error);
	if (policy)
		take_times(chain, log->received_us, log->cosigned_us);
	for (size_t i = 0; policy && i < policy->witness_count; i++)
		log->cosigned[i] = log->cosigned_us[i] != TIME_NONE;
	return 0;
}

/* Keeps that with which a report is compared. */
static int keep_for_reports(struct chain *chain)
{
	const struct log_check *log = chain->log;
	struct input *archive = chain->facts->input;
	archive->log_is_read = !chain_is_abandoned(chain);
	if (!log || !log->has_checkpoint)
		return 0;
	archive->log_segments = log->logged;
	archive->log_note = arena_text(&chain->run->arena, log->note.text.data);
	return archive->log_note ? 0 : ERR_NO_MEMORY;
}

int chain_finish_log(struct chain *chain)
{
	struct log_check *log = chain->log;
	/* The newest checkpoint follows those that segments need. */
	int result = log ? find_checkpoint(chain, MERKLE_SIZE_MAX) : 0;
	if (result >= 0 && log && log->has_checkpoint)
		result = check_newest(chain);
	if (result < 0)
		return result;
	if (log && log->has_checkpoint && log->consistency.count > 0)
		chain_wrong_at(chain, STREAM_CHECKPOINTS, "consistency", FINDING_LOG_LAST_CONSISTENCY);
	judge(chain);
	result = keep_for_reports(chain);
	return result || !log || !log->has_checkpoint ? result : note_log(chain);
}
