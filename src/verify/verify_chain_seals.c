/* Checks the segments of a chain: seal documents, the trees over their events, and the rounds and
 * timestamps to which these lead. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "verify/verify_chain.h"

#define SEGMENT_LINE_MAX 8192 /* seal document, longest path and round id */

static int check_token(struct chain *chain, const struct sha256 *root,
                       const struct archive_token *token, struct timestamp_facts *ret_facts,
                       struct token_verdict *ret_verdict, struct error *error)
{
	const struct stamp_state *stamp;
	struct digest imprint = digest_of_sha256(root);
	BUF_AUTO struct buf known, complete;
	buf_init(&known, TIMESTAMP_PATH_MAX);
	buf_init(&complete, CMS_PATH_SIZE_MAX);
	int result = chain_find_path(chain, token, &known, error);
	struct timestamp_path path = {.known = buf_slice(&known),
	                              .request = token->request,
	                              .complete = &complete,
	                              .tolerant = true};
	if (!result)
		result = chain_follow_renewal(chain, &token->renewal, token->token, &stamp, error);
	if (!result)
		result = timestamp_verify_token_at(token->token, &imprint, chain->run->roots.timestamps,
		                                   &path, chain_judgement_time(token->gen_time_us, stamp),
		                                   ret_facts, error);
	(void)finding_set_step(error, FINDING_TOKEN_NOT_VALID, result);
	if (!result)
		result = verify_note_timestamp(chain->run, ret_facts, buf_slice(&complete));
	if (!result)
		result = finding_set_step(
			error, FINDING_TOKEN_REVOCATIONS_NOT_VALID,
			chain_judge_revocations(chain, token, buf_slice(&known), ret_verdict, error));
	if (result < 0)
		return result;
	if (ret_verdict->standing == TOKEN_GOOD)
		verify_note_not_revoked(chain->run, &ret_facts->authority);
	if (ret_facts->gen_time_us != token->gen_time_us)
		return finding_fail(error, FINDING_TOKEN_TIME_DIFFERS);
	if (stamp && stamp->gen_time_us < token->gen_time_us)
		return finding_fail(error, FINDING_RENEWAL_OLDER);
	chain_ignore_later_revocation(stamp, ret_verdict);
	int64_t until_us = stamp ? stamp->until_us : ret_facts->authority.not_after_us;
	if (chain->round.until_us < until_us)
		chain->round.until_us = until_us;
	return 0;
}

/* Compares the two timestamps of a round. A large difference does not make the evidence invalid:
 * each timestamp alone would suffice, and it is unknown which one is wrong. It is only a warning.
 */
static void compare_tokens(struct chain *chain, const char *round_id,
                           const struct timestamp_facts facts[ARCHIVE_TOKENS_MAX])
{
	struct pair_comparison *pairs = &chain->pairs;
	int64_t apart_us = facts[1].gen_time_us - facts[0].gen_time_us;
	apart_us = apart_us < 0 ? -apart_us : apart_us;
	pairs->divergent += apart_us > VERIFY_DIVERGENCE_MAX_US;
	pairs->dependent += strcmp(facts[0].authority.subject, facts[1].authority.subject) == 0;
	if (apart_us <= pairs->widest_us)
		return;
	pairs->widest_us = apart_us;
	snprintf(pairs->round_id, sizeof pairs->round_id, "%s", round_id);
	for (size_t i = 0; i < ARCHIVE_TOKENS_MAX; i++) {
		pairs->gen_times_us[i] = facts[i].gen_time_us;
		memcpy(pairs->names[i], facts[i].authority.name, sizeof pairs->names[i]);
	}
}

void chain_warn_pairs(struct chain *chain)
{
	const struct pair_comparison *pairs = &chain->pairs;
	const char *path = chain->facts->input->path;
	if (pairs->divergent > 0) {
		char times[ARCHIVE_TOKENS_MAX][TIME_TEXT_SIZE], span[VERIFY_SPAN_SIZE];
		for (size_t i = 0; i < ARCHIVE_TOKENS_MAX; i++)
			time_format(pairs->gen_times_us[i], times[i]);
		verify_format_span(pairs->widest_us, span);
		verify_add(chain->run, VERIFY_WARNING, path, "", FINDING_ROUND_TIMES_DIVERGE,
		           pairs->divergent, pairs->round_id, span, times[0], pairs->names[0], times[1],
		           pairs->names[1]);
	}
	if (pairs->dependent > 0)
		verify_add(chain->run, VERIFY_WARNING, path, "", FINDING_ROUND_ONE_AUTHORITY,
		           pairs->dependent);
}

static int check_round_time(struct chain *chain, int64_t gen_time_us, struct error *error)
{
	if (chain->previous_round.usable &&
	    chain->previous_round.gen_time_us > gen_time_us + VERIFY_CLOCK_TOLERANCE_US)
		return finding_fail(error, FINDING_ROUND_BEFORE_PREVIOUS);
	if (chain->facts->input->signed_at_us != TIME_NONE &&
	    gen_time_us > chain->facts->input->signed_at_us + VERIFY_CLOCK_TOLERANCE_US)
		return finding_fail(error, FINDING_ROUND_AFTER_SIGNATURE);
	if (gen_time_us > chain->range->issued_at_us + VERIFY_CLOCK_TOLERANCE_US)
		return finding_fail(error, FINDING_ROUND_AFTER_ISSUE);
	return 0;
}

static int read_line(struct chain *chain, struct slice line, struct archive_round *ret_round,
                     struct error *error)
{
	int64_t version = chain->manifest->version;
	arena_reset(&chain->arena);
	int result = archive_read_round(&chain->arena, line, version, ret_round, error);
	if (result < 0)
		return result;
	buf_clear(&chain->scratch);
	archive_round_line(ret_round, version, &chain->scratch);
	return verify_canonical(line, &chain->scratch, error);
}

static int read_round(struct chain *chain, struct slice line, struct error *error)
{
	struct archive_round round;
	int result = read_line(chain, line, &round, error);
	if (result < 0)
		return result;
	assert(round.token_count >= 1 && round.token_count <= ARCHIVE_TOKENS_MAX);
	const struct archive_token *first = &round.tokens[0];
	struct round_state *state = &chain->round;
	if (chain->previous_round.usable && strcmp(chain->previous_round.round_id, round.round_id) == 0)
		return finding_fail(error, FINDING_ROUND_REPEATED);
	snprintf(state->round_id, sizeof state->round_id, "%s", round.round_id);
	state->root = round.root;
	state->token_hash = sha256_of(first->token.data, first->token.size);
	state->gen_time_us = first->gen_time_us;
	state->usable = true;
	struct timestamp_facts facts[ARCHIVE_TOKENS_MAX];
	struct token_verdict verdicts[ARCHIVE_TOKENS_MAX];
	for (size_t i = 0; i < round.token_count && !result; i++)
		result = check_token(chain, &round.root, &round.tokens[i], &facts[i], &verdicts[i], error);
	if (result < 0)
		return result;
	state->revoked = chain_warn_revoked(chain, verdicts, round.token_count);
	chain->run->development |= first->kind == AUTHORITY_DEVELOPMENT;
	chain->run->non_qualified |= first->kind == AUTHORITY_NON_QUALIFIED;
	if (round.token_count == ARCHIVE_TOKENS_MAX)
		compare_tokens(chain, round.round_id, facts);
	return check_round_time(chain, first->gen_time_us, error);
}

/* Reads the next round. Returns 1, or 0 if there is none. */
static int take_round(struct chain *chain)
{
	struct slice line;
	int result = chain_next_line(chain, STREAM_ROUNDS, &line);
	if (result <= 0)
		return result;
	chain->previous_round = chain->round;
	chain->round = (struct round_state){.present = true, .until_us = TIME_NONE};
	struct error error = {0};
	result = read_round(chain, line, &error);
	if (result < 0)
		result = chain_record_error(chain, STREAM_ROUNDS, result, &error);
	return result < 0 ? result : 1;
}

/* Reads rounds up to that of a segment. Only its predecessor may come before it. Each further one
 * is a finding, so a large number of them ends the check. */
static int find_round(struct chain *chain, const char *round_id)
{
	for (int skipped = 0;; skipped++) {
		if (chain->round.usable && strcmp(chain->round.round_id, round_id) == 0)
			return 1;
		int result = chain_is_abandoned(chain) ? 0 : take_round(chain);
		if (result < 0)
			return result;
		if (!result) {
			chain_wrong_at(chain, STREAM_SEALS, "round_id", FINDING_SEGMENT_ROUND_MISSING);
			return 0;
		}
		if (skipped >= 2)
			chain_wrong_at(chain, STREAM_ROUNDS, NULL, FINDING_ROUND_SUPERFLUOUS);
	}
}

static void note_delay(struct chain *chain)
{
	const struct round_state *round = &chain->round, *before = &chain->previous_round;
	const int64_t received_us = chain->segment_received_at_us;
	if (received_us == TIME_NONE || !round->usable)
		return;
	bool between = before->usable && before->gen_time_us > received_us;
	const struct verify_delay delay = {.sequence = chain->segment_sequence,
	                                   .received_at_us = received_us,
	                                   .between_us = between ? before->gen_time_us : TIME_NONE,
	                                   .gen_time_us = round->gen_time_us,
	                                   .path = chain->facts->input->path};
	if (!chain->delay.sequence ||
	    round->gen_time_us - received_us > chain->delay.gen_time_us - chain->delay.received_at_us)
		chain->delay = delay;
	if (!between || delay.between_us - received_us <= VERIFY_CLOCK_TOLERANCE_US)
		return;
	chain->uncovered_segments++;
	if (!chain->passed.sequence ||
	    delay.between_us - received_us > chain->passed.between_us - chain->passed.received_at_us)
		chain->passed = delay;
}

/* Checks the lower bound of a segment's time, the timestamp to which its seal document refers. */
static void check_lower_bound(struct chain *chain, const struct seal_document *seal)
{
	const struct round_state *before = &chain->previous_round;
	const int64_t received_us = chain->segment_received_at_us;
	if (before->present) {
		if (!seal->previous_token_hash ||
		    (before->usable && !sha256_equal(seal->previous_token_hash, &before->token_hash)))
			chain_wrong_at(chain, STREAM_SEALS, "seal.previous_token_hash",
			               FINDING_SEGMENT_PREVIOUS_TOKEN);
	} else if (seal->previous_token_hash) {
		chain_wrong_at(chain, STREAM_SEALS, "seal.previous_token_hash",
		               FINDING_SEGMENT_PREVIOUS_ROUND_MISSING);
	} else if (!chain->segment_seen && seal->first_sequence > 1) {
		/* This is the case if the first round of a service has several segments of a chain. */
		const struct verify_options *options = chain->run->options;
		verify_add(chain->run, options && options->own_seals ? VERIFY_WARNING : VERIFY_UNCHECKED,
		           chain->facts->input->path, line_stream_where(chain->streams[STREAM_SEALS]),
		           FINDING_SEGMENT_NO_LOWER_BOUND);
	} else if (!chain->segment_seen && received_us != TIME_NONE && chain->round.usable &&
	           chain->round.gen_time_us - received_us > VERIFY_CLOCK_TOLERANCE_US) {
		verify_add(chain->run, VERIFY_WARNING, chain->facts->input->path,
		           line_stream_where(chain->streams[STREAM_SEALS]),
		           FINDING_SEGMENT_FIRST_OF_SERVICE);
	}
}

static void check_round(struct chain *chain, const struct archive_segment *segment,
                        const struct sha256 *segment_root)
{
	assert(chain->round.usable && segment->path);
	const struct seal_document *seal = &segment->seal;
	struct tree_proof path = *segment->path;
	path.leaf = *segment_root;
	struct sha256 root = tree_proof_root(&path);
	if (!sha256_equal(&root, &chain->round.root))
		chain_wrong_at(chain, STREAM_SEALS, "path", FINDING_SEGMENT_ROOT);
	chain->ended_segments += chain->round.until_us != TIME_NONE &&
	                         chain->round.until_us < chain->facts->input->signed_at_us;
	if (chain->round.revoked)
		chain_wrong_at(chain, STREAM_SEALS, "round_id", FINDING_SEGMENT_ROUND_REVOKED);
	check_lower_bound(chain, seal);
	if (chain->received_at_us != TIME_NONE &&
	    chain->received_at_us > chain->round.gen_time_us + VERIFY_CLOCK_TOLERANCE_US)
		chain_wrong_at(chain, STREAM_SEALS, NULL, FINDING_SEGMENT_BEFORE_RECEPTION);
	note_delay(chain);
}

/* Checks a seal document before its events are read. */
static void check_seal(struct chain *chain, const struct seal_document *seal)
{
	const enum archive_stream seals = STREAM_SEALS;
	if (strcmp(seal->channel_id, chain->range->channel_id) != 0)
		chain_wrong_at(chain, seals, "seal.channel_id", FINDING_SEGMENT_CHANNEL);
	if (strcmp(seal->chain, mode_text(chain->range->mode)) != 0)
		chain_wrong_at(chain, seals, "seal.chain", FINDING_SEGMENT_MODE);
	verify_point_event(chain->run, chain->facts->input, seal->first_sequence - 1,
	                   &seal->chain_hash_before, TIME_NONE);
	if (seal->previous_seal_hash)
		verify_point_seal(chain->run, chain->facts->input, seal->first_sequence - 1,
		                  seal->first_sequence - 1, seal->previous_seal_hash, NULL);
	if (chain->segment_seen) {
		if (!seal->previous_seal_hash || !sha256_equal(seal->previous_seal_hash, &chain->seal_hash))
			chain_wrong_at(chain, seals, "seal.previous_seal_hash", FINDING_SEGMENT_PREVIOUS_SEAL);
		if (!sha256_equal(&seal->chain_hash_before, &chain->chain_hash))
			chain_wrong_at(chain, seals, "seal.chain_hash_before", FINDING_SEGMENT_PREVIOUS_EVENT);
		return;
	}
	const struct seal_walk *history = &chain->history;
	bool leads = history->count > 0 && seal->first_sequence == history->last_sequence + 1 &&
	             seal->previous_seal_hash &&
	             sha256_equal(seal->previous_seal_hash, &history->seal_hash) &&
	             sha256_equal(&seal->chain_hash_before, &history->chain_hash);
	chain->facts->input->has_seals = true;
	chain->facts->input->has_history = leads || seal->first_sequence == 1;
	if (history->count > 0 && !leads)
		chain_wrong_at(chain, seals, "seal.previous_seal_hash", FINDING_HISTORY_NOT_LEADING);
	if ((seal->first_sequence == 1) != (seal->previous_seal_hash == NULL))
		chain_wrong_at(chain, seals, "seal.previous_seal_hash",
		               FINDING_SEGMENT_PREVIOUS_SEAL_OF_FIRST);
	bool at_range = seal->first_sequence == chain->range->first_sequence;
	if ((at_range &&
	     !sha256_equal(&seal->chain_hash_before, &chain->manifest->previous_chain_hash)) ||
	    (seal->first_sequence == 1 && chain->facts->has_genesis &&
	     !sha256_equal(&seal->chain_hash_before, &chain->facts->genesis_hash)))
		chain_wrong_at(chain, seals, "seal.chain_hash_before", FINDING_SEGMENT_START);
}

/* Collects the leaves of a segment. Returns 1, or 0 if events or leaves are missing. */
static int collect(struct chain *chain, const struct seal_document *seal)
{
	size_t count = 0;
	for (int64_t sequence = seal->first_sequence; sequence <= seal->last_sequence; sequence++) {
		bool inside =
			sequence >= chain->range->first_sequence && sequence <= chain->range->last_sequence;
		int result = inside ? chain_check_event(chain) : chain_check_leaf(chain, sequence);
		if (result < 0)
			return result;
		if (!result || chain_is_abandoned(chain)) {
			if (inside)
				chain_wrong_at(chain, STREAM_SEALS, NULL, FINDING_SEGMENT_EVENTS_UNREAD);
			else
				chain_wrong_at(chain, STREAM_SEALS, NULL, FINDING_SEGMENT_LEAVES_UNREAD);
			return 0;
		}
		assert(count < SEGMENT_EVENTS_MAX); /* of the seal document */
		chain->leaves[count++] = chain->chain_hash;
	}
	return 1;
}

/* Computes the root of a segment from the tree over all its leaves, an implementation independent
 * of the sealer's. */
static int compute_root(struct chain *chain, const struct seal_document *seal,
                        struct sha256 *ret_root)
{
	size_t count = (size_t)(seal->last_sequence - seal->first_sequence + 1);
	assert(count >= 1 && count <= SEGMENT_EVENTS_MAX);
	buf_clear(&chain->scratch);
	chain->seal_hash = seal_document_digest(seal, &chain->scratch);
	chain->leaves[count] = chain->seal_hash;
	struct hash_tree *tree;
	int result = tree_build(chain->leaves, count + 1, &tree);
	if (result < 0)
		return result;
	*ret_root = tree_root(tree);
	tree_free(tree);
	return 0;
}

/* Returns 1 to continue with the next segment, 0 to stop. */
static int check_segment(struct chain *chain, const struct archive_segment *segment)
{
	const struct seal_document *seal = &segment->seal;
	bool fits = chain->segment_seen ? seal->first_sequence == chain->next_segment_sequence
	                                : seal->first_sequence <= chain->range->first_sequence &&
	                                      seal->last_sequence >= chain->range->first_sequence;
	if (!fits || seal->first_sequence > chain->range->last_sequence) {
		chain_wrong_at(chain, STREAM_SEALS, "seal.first_sequence", FINDING_SEGMENT_MISPLACED);
		return 0;
	}
	check_seal(chain, seal);
	chain->segments++;
	chain->unsynchronized_segments += !seal->clock.synchronized;
	chain->uncompared_segments += strcmp(seal->clock.source, SEAL_CLOCK_UNVERIFIED) == 0;
	chain->segment_received_at_us = TIME_NONE;
	int result = collect(chain, seal);
	if (result <= 0)
		return result;
	if (!sha256_equal(&seal->chain_hash_last, &chain->chain_hash))
		chain_wrong_at(chain, STREAM_SEALS, "seal.chain_hash_last", FINDING_SEGMENT_LAST_EVENT);
	struct sha256 root;
	result = compute_root(chain, seal, &root);
	if (!result)
		result = chain_check_log(chain, seal);
	if (!result)
		result = find_round(chain, segment->round_id);
	if (result < 0)
		return result;
	if (result == 1) {
		check_round(chain, segment, &root);
		verify_receipt_segment(chain->run, chain->facts->input, seal->first_sequence,
		                       seal->last_sequence, chain->round.gen_time_us);
	}
	verify_point_seal(chain->run, chain->facts->input, seal->first_sequence, seal->last_sequence,
	                  &chain->seal_hash, result == 1 ? &chain->round.token_hash : NULL);
	chain->segment_seen = true;
	chain->next_segment_sequence = seal->last_sequence + 1;
	chain->run->result->checked.segments++;
	return 1;
}

int verify_read_segment(struct arena *arena, struct slice line, struct buf *scratch,
                        struct archive_segment *ret_segment, struct error *error)
{
	if (line.size > SEGMENT_LINE_MAX)
		return finding_fail(error, FINDING_LINES_TOO_LONG, SEGMENT_LINE_MAX);
	int result = archive_read_segment(arena, line, ret_segment, error);
	if (result < 0)
		return result;
	buf_clear(scratch);
	seal_document_write(&ret_segment->seal, scratch);
	if (buf_check(scratch))
		return ERR_NO_MEMORY;
	if (scratch->size > SEAL_DOCUMENT_MAX)
		return finding_fail(error, FINDING_SEGMENT_TOO_LONG, SEAL_DOCUMENT_MAX);
	buf_clear(scratch);
	archive_segment_line(ret_segment, scratch);
	return verify_canonical(line, scratch, error);
}

int chain_check_segment(struct chain *chain)
{
	struct slice line;
	int result = chain_is_abandoned(chain) ? 0 : chain_next_line(chain, STREAM_SEALS, &line);
	if (result <= 0)
		return result;
	struct error error = {0};
	struct archive_segment segment;
	arena_reset(&chain->seal_arena);
	result = verify_read_segment(&chain->seal_arena, line, &chain->scratch, &segment, &error);
	if (result < 0)
		return chain_record_error(chain, STREAM_SEALS, result, &error);
	return check_segment(chain, &segment);
}
