#include "seal/level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seal/certificate.h"
#include "seal/revocation_client.h"
#include "seal/trust.h"

/* *ret_suffices: nothing is missing; else the cause says what. */
static int conclude(const struct revocation_verdict *verdicts, size_t count, bool *ret_suffices,
                    char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	const struct revocation_verdict *lack = revocation_lack(verdicts, count);

	*ret_suffices = !lack;
	if (lack && lack->outcome == REVOCATION_REVOKED)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the certificate of %s was revoked",
		                   lack->certificate.name);
	if (lack)
		snprintf(cause, LEVEL_CAUSE_SIZE, "revocation data of %.200s: %s%s%.200s",
		         lack->certificate.name, revocation_outcome_text(lack->outcome),
		         lack->cause[0] ? ", " : "", lack->cause);
	return 0;
}

/* *ret_is_rooted: the path ends with a root, which vouches for itself. */
static int judge(struct slice path, const struct validation_set *set,
                 const struct revocation_moment *at, bool *ret_suffices, bool *ret_is_rooted,
                 char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	BUF_AUTO struct buf pem;
	struct revocation_verdict *verdicts = calloc(REVOCATION_PATH_MAX, sizeof *verdicts);
	size_t count = 0;

	buf_init(&pem, PEM_FILE_MAX);
	int result = verdicts ? trust_path_to_pem(path, &pem, error) : ERR_NO_MEMORY;
	if (!result)
		result = revocation_judge(buf_slice(&pem), set, at, verdicts, &count, error);
	if (!result)
		result = conclude(verdicts, count, ret_suffices, cause, error);
	*ret_is_rooted = !result && verdicts[count - 1].outcome == REVOCATION_NOT_NEEDED;
	free(verdicts);
	return result == ERR_VALIDATION ? ERR_INVALID_EVIDENCE : result;
}

int level_judge(const struct level_proof *proof, const struct validation_set *set,
                enum level *ret_level, char ret_cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	bool lasts = proof->last.size > 0;
	/* The timestamp over all proves when the one over the signature existed; nothing but its own
	 * authority says when that one did. */
	struct revocation_moment signature = {proof->signed_us, false};
	struct revocation_moment first = {lasts ? proof->last_us : proof->signed_us, !lasts};
	struct revocation_moment last = {proof->last_us, true};
	char causes[3][LEVEL_CAUSE_SIZE];
	bool signer_suffices = false, authority_suffices = false, last_suffices = false, rooted = false;

	int result = judge(proof->signer, set, &signature, &signer_suffices, &rooted, causes[0], error);
	if (!result)
		result =
			judge(proof->authority, set, &first, &authority_suffices, &rooted, causes[1], error);
	if (!result && lasts)
		result = judge(proof->last, set, &last, &last_suffices, &rooted, causes[2], error);
	/* Nothing is over it, so nothing else would show that a certificate of it was changed. */
	if (!result && lasts && !rooted)
		result = error_cause(error, ERR_INVALID_EVIDENCE,
		                     "the path of the last timestamp does not end with a root");
	if (result)
		return result;
	*ret_level = LEVEL_T;
	ret_cause[0] = '\0';
	if (!signer_suffices || !authority_suffices)
		snprintf(ret_cause, LEVEL_CAUSE_SIZE, "%s", causes[signer_suffices]);
	else
		*ret_level = lasts ? LEVEL_LTA : LEVEL_LT;
	return 0;
}

static int collect(struct revocation_client *client, struct slice path_pem,
                   const struct revocation_moment *at, struct validation_set *set,
                   bool *ret_suffices, char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	struct revocation_verdict *verdicts = calloc(REVOCATION_PATH_MAX, sizeof *verdicts);
	size_t count = 0;
	int result = verdicts ? revocation_fetch(client, path_pem, at, set, verdicts, &count, error)
	                      : ERR_NO_MEMORY;

	if (!result)
		result = conclude(verdicts, count, ret_suffices, cause, error);
	free(verdicts);
	return result;
}

int level_collect_authority(struct revocation_client *client, struct slice authority,
                            int64_t stamped_us, struct validation_set *set, bool *ret_suffices,
                            char ret_cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	struct revocation_moment at = {stamped_us, true};
	BUF_AUTO struct buf pem;

	buf_init(&pem, PEM_FILE_MAX);
	ret_cause[0] = '\0';
	int result = trust_path_to_pem(authority, &pem, error);
	if (!result)
		result = collect(client, buf_slice(&pem), &at, set, ret_suffices, ret_cause, error);
	return result == ERR_VALIDATION ? ERR_INVALID_EVIDENCE : result;
}

int level_collect(struct revocation_client *client, const struct level_wanted *wanted,
                  struct validation_set *set, enum level *ret_level,
                  char ret_cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	struct revocation_moment signature = {wanted->signed_us, false};
	struct revocation_moment first = {wanted->signed_us, true};
	BUF_AUTO struct buf pem;
	bool suffices = false;

	buf_init(&pem, PEM_FILE_MAX);
	ret_cause[0] = '\0';
	int result = trust_path_to_pem(wanted->authority, &pem, error);
	if (!result)
		result = collect(client, wanted->signer_pem, &signature, set, &suffices, ret_cause, error);
	if (!result && suffices)
		result = collect(client, buf_slice(&pem), &first, set, &suffices, ret_cause, error);
	*ret_level = !result && suffices ? LEVEL_LT : LEVEL_T;
	if (*ret_level != LEVEL_LT)
		validation_free(set);
	return result == ERR_VALIDATION ? ERR_INVALID_EVIDENCE : result;
}
