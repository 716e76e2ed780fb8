/* The archive timestamps that renewed an archive's timestamps. They are read before the rounds,
 * from the newest to the oldest. Only the data that older ones and the tokens of rounds need is
 * kept. */
#include <inttypes.h>
#include <stdlib.h>

#include "verify/verify_chain.h"

/* Returns the archive timestamp with that number; NULL: not found. */
static const struct stamp_state *find_stamp(struct chain *chain, int64_t number)
{
	size_t low = 0, high = chain->stamp_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		struct stamp_state *stamp = &chain->stamps[middle];
		if (stamp->number == number) {
			stamp->is_named = true;
			return stamp;
		}
		if (stamp->number > number)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

int chain_follow_renewal(struct chain *chain, const struct archive_renewal *renewal,
                         struct slice token, const struct stamp_state **ret_stamp,
                         struct error *error)
{
	*ret_stamp = NULL;
	if (renewal->stamp == 0)
		return 0;
	const struct stamp_state *stamp = find_stamp(chain, renewal->stamp);
	if (!stamp)
		return finding_fail(error, FINDING_RENEWAL_MISSING, renewal->stamp);
	struct tree_proof path = *renewal->path;
	path.leaf = sha256_of(token.data, token.size);
	struct sha256 root = tree_proof_root(&path);
	if (!sha256_equal(&root, &stamp->imprint))
		return finding_fail(error, FINDING_RENEWAL_ROOT, renewal->stamp);
	*ret_stamp = stamp;
	return 0;
}

int64_t chain_judgement_time(int64_t gen_time_us, const struct stamp_state *stamp)
{
	return stamp && stamp->gen_time_us > gen_time_us ? stamp->gen_time_us : TIME_NONE;
}

static int check_token(struct chain *chain, const struct archive_stamp *stamp,
                       const struct stamp_state *next, struct stamp_state *ret_state,
                       struct error *error)
{
	BUF_AUTO struct buf complete;
	buf_init(&complete, CMS_PATH_SIZE_MAX);
	struct timestamp_path path = {.complete = &complete, .tolerant = true};
	struct timestamp_facts facts;
	struct digest imprint;
	int result = timestamp_token_imprint(stamp->token, &imprint, error);
	if (!result && imprint.algorithm != DIGEST_SHA256)
		result = finding_fail(error, FINDING_RENEWAL_IMPRINT);
	if (!result)
		result = timestamp_verify_token_at(stamp->token, &imprint, chain->run->roots.timestamps,
		                                   &path, chain_judgement_time(stamp->gen_time_us, next),
		                                   &facts, error);
	(void)finding_set_step(error, FINDING_TOKEN_NOT_VALID, result);
	if (!result)
		result = verify_note_timestamp(chain->run, &facts, buf_slice(&complete));
	if (result)
		return result;
	if (facts.gen_time_us != stamp->gen_time_us)
		return finding_fail(error, FINDING_TOKEN_TIME_DIFFERS);
	memcpy(ret_state->imprint.bytes, imprint.bytes, SHA256_SIZE);
	ret_state->until_us = next ? next->until_us : facts.authority.not_after_us;
	return 0;
}

static int make_room(struct chain *chain, struct error *error)
{
	if (chain->stamp_count == ARCHIVE_RENEWALS_MAX)
		return finding_fail(error, FINDING_RENEWAL_COUNT);
	if (chain->stamp_count < chain->stamp_room)
		return 0;
	size_t room = chain->stamp_room ? 2 * chain->stamp_room : 16;
	struct stamp_state *grown = reallocarray(chain->stamps, room, sizeof *grown);
	if (!grown)
		return ERR_NO_MEMORY;
	chain->stamps = grown;
	chain->stamp_room = room;
	return 0;
}

static int take_stamp(struct chain *chain, struct slice line, struct error *error)
{
	struct archive_stamp stamp;
	const struct stamp_state *next = NULL;
	arena_reset(&chain->arena);
	int result = archive_read_stamp(&chain->arena, line, &stamp, error);
	if (result < 0)
		return result;
	buf_clear(&chain->scratch);
	archive_stamp_line(&stamp, &chain->scratch);
	result = verify_canonical(line, &chain->scratch, error);
	if (!result && chain->stamp_count > 0 &&
	    chain->stamps[chain->stamp_count - 1].number <= stamp.stamp)
		result = finding_fail(error, FINDING_RENEWAL_NOT_DESCENDING);
	if (!result)
		result = make_room(chain, error);
	if (!result)
		result = chain_follow_renewal(chain, &stamp.renewal, stamp.token, &next, error);
	if (!result && next && next->gen_time_us < stamp.gen_time_us)
		result = finding_fail(error, FINDING_RENEWAL_OLDER);
	struct stamp_state state = {.number = stamp.stamp, .gen_time_us = stamp.gen_time_us};
	if (!result)
		result = check_token(chain, &stamp, next, &state, error);
	if (result)
		return result;
	chain->stamps[chain->stamp_count++] = state;
	chain->run->development |= stamp.kind == AUTHORITY_DEVELOPMENT;
	chain->run->non_qualified |= stamp.kind == AUTHORITY_NON_QUALIFIED;
	chain->run->result->checked.renewals++;
	return 0;
}

int chain_read_renewals(struct chain *chain)
{
	struct slice line;
	int result = chain_next_line(chain, STREAM_RENEWALS, &line);
	while (result == 1) {
		struct error error = {0};
		result = take_stamp(chain, line, &error);
		if (result < 0)
			result = chain_record_error(chain, STREAM_RENEWALS, result, &error);
		if (result < 0 || chain_is_abandoned(chain))
			return result;
		result = chain_next_line(chain, STREAM_RENEWALS, &line);
	}
	return result;
}

void chain_check_renewals(struct chain *chain)
{
	for (size_t i = 0; i < chain->stamp_count; i++)
		if (!chain->stamps[i].is_named)
			verify_add(chain->run, VERIFY_WRONG, chain->facts->input->path,
			           archive_stream_text(STREAM_RENEWALS), FINDING_RENEWAL_NOT_NAMED,
			           chain->stamps[i].number);
}

void chain_warn_expired(struct chain *chain)
{
	if (chain->ended_segments > 0)
		verify_add(chain->run, VERIFY_WARNING, chain->facts->input->path, "",
		           FINDING_SEGMENT_CERTIFICATES_ENDED, chain->ended_segments, chain->segments);
}
