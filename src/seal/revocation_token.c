#include "seal/revocation_token.h"

#include <stdlib.h>

#include "base/clock.h"
#include "seal/certificate.h"

struct judged {
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	size_t count;
};

static int judge(struct slice pem, int64_t gen_time_us, const struct validation_set *set,
                 struct judged *ret, struct error *error)
{
	struct revocation_moment at = {gen_time_us, true};
	int result = revocation_judge(pem, set, &at, ret->verdicts, &ret->count, error);

	return result == ERR_VALIDATION ? ERR_INVALID_EVIDENCE : result;
}

static enum token_state state_of(const struct revocation_verdict *verdict)
{
	if (verdict->outcome == REVOCATION_REVOKED)
		return TOKEN_REVOKED;
	return revocation_is_sufficient(verdict->outcome) ? TOKEN_GOOD : TOKEN_UNDECIDED;
}

static bool have_same_states(const struct judged *one, const struct judged *other)
{
	for (size_t i = 0; i < one->count; i++)
		if (state_of(&one->verdicts[i]) != state_of(&other->verdicts[i]))
			return false;
	return true;
}

/* Finds out whether the state of every certificate is the same without one of the set's objects. */
static int try_without(struct slice pem, int64_t gen_time_us, const struct judged *with,
                       const struct validation_set *set, size_t place, bool *ret_same,
                       struct error *error)
{
	struct validation_set rest = {0};
	struct judged *without = malloc(sizeof *without);

	rest.objects = calloc(set->count, sizeof *rest.objects);
	int result = without && rest.objects ? OK : ERR_NO_MEMORY;
	for (size_t i = 0; !result && i < set->count; i++)
		if (i != place)
			rest.objects[rest.count++] = set->objects[i];
	if (!result)
		result = judge(pem, gen_time_us, &rest, without, error);
	if (!result)
		*ret_same = have_same_states(with, without);
	free(rest.objects); /* the bytes belong to the set */
	free(without);
	return result;
}

static int prune(struct slice pem, int64_t gen_time_us, const struct judged *judged,
                 struct validation_set *set, struct error *error)
{
	int result = OK;

	for (size_t i = set->count; !result && i > 0; i--) {
		bool superfluous = false;
		result = try_without(pem, gen_time_us, judged, set, i - 1, &superfluous, error);
		if (!result && superfluous)
			validation_set_remove(set, i - 1);
	}
	return result;
}

/* Returns the last time at which the deciding data still decides; TIME_NONE: it does not cover
 * other times. */
static int64_t decided_until(const struct judged *judged)
{
	int64_t until_us = INT64_MAX;

	for (size_t i = 0; i < judged->count; i++) {
		const struct revocation_verdict *verdict = &judged->verdicts[i];
		if (verdict->outcome == REVOCATION_NOT_NEEDED)
			continue;
		if (!revocation_is_sufficient(verdict->outcome))
			return TIME_NONE;
		int64_t end_us =
			verdict->next_us > verdict->issued_us ? verdict->next_us : verdict->issued_us;
		/* The revocation only affects later signatures. */
		if (verdict->revoked_us != TIME_NONE && verdict->revoked_us <= end_us)
			end_us = verdict->revoked_us - 1;
		until_us = end_us < until_us ? end_us : until_us;
	}
	return until_us;
}

/* Finds the last time for which the same minimal set is good. It is then good for every earlier
 * time too: data that is current then was issued later or is current as well. So only the end needs
 * to be checked. */
static int find_end(struct slice pem, const struct judged *judged, const struct validation_set *set,
                    int64_t *ret_until_us, struct error *error)
{
	struct judged *last = malloc(sizeof *last);
	int64_t until_us = decided_until(judged);
	bool same = until_us != TIME_NONE;
	bool superfluous = false;
	int result = last ? OK : ERR_NO_MEMORY;

	if (!result && same)
		result = judge(pem, until_us, set, last, error);
	same = !result && same && have_same_states(judged, last) && decided_until(last) != TIME_NONE;
	for (size_t i = 0; same && !superfluous && !result && i < set->count; i++)
		result = try_without(pem, until_us, last, set, i, &superfluous, error);
	*ret_until_us = same && !superfluous ? until_us : TIME_NONE;
	free(last);
	return result;
}

static void fill(const struct judged *judged, struct token_verdict *verdict)
{
	const struct revocation_verdict *lack =
		revocation_find_insufficient(judged->verdicts, judged->count);

	*verdict = (struct token_verdict){
		.standing = lack ? state_of(lack) : TOKEN_GOOD,
		.outcome = lack ? lack->outcome : REVOCATION_GOOD_AFTER,
		.revoked_us = lack ? lack->revoked_us : TIME_NONE,
		.same_until_us = TIME_NONE,
	};
	if (!lack)
		return;
	for (size_t i = 0; i < judged->count; i++)
		if (judged->verdicts[i].outcome == REVOCATION_REVOKED &&
		    judged->verdicts[i].revoked_us < lack->revoked_us)
			lack = &judged->verdicts[i];
	verdict->revoked_us = lack->revoked_us;
	verdict->certificate = lack->certificate;
	memcpy(verdict->cause, lack->cause, sizeof verdict->cause);
}

int revocation_judge_token(struct slice path, int64_t gen_time_us, struct validation_set *set,
                           struct token_verdict *ret_verdict, struct error *error)
{
	BUF_AUTO struct buf pem;
	struct judged *judged = malloc(sizeof *judged);

	buf_init(&pem, PEM_FILE_MAX);
	int result = judged ? trust_path_to_pem(path, &pem, error) : ERR_NO_MEMORY;
	if (!result)
		result = judge(buf_slice(&pem), gen_time_us, set, judged, error);
	if (!result)
		fill(judged, ret_verdict);
	if (!result)
		result = prune(buf_slice(&pem), gen_time_us, judged, set, error);
	if (!result && ret_verdict->standing == TOKEN_GOOD)
		result = find_end(buf_slice(&pem), judged, set, &ret_verdict->same_until_us, error);
	free(judged);
	return result;
}
