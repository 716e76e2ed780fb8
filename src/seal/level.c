#include "seal/level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seal/certificate.h"
#include "seal/cms.h"
#include "seal/revocation_client.h"
#include "seal/trust.h"

/* *ret_suffices: all data is present; otherwise the cause states what is missing. */
static int summarize(const struct revocation_verdict *verdicts, size_t count, bool *ret_suffices,
                     char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	const struct revocation_verdict *lack = revocation_find_insufficient(verdicts, count);

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

/* *ret_is_rooted: the path ends with a self-signed root. */
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
		result = summarize(verdicts, count, ret_suffices, cause, error);
	*ret_is_rooted = !result && verdicts[count - 1].outcome == REVOCATION_NOT_NEEDED;
	free(verdicts);
	return result == ERR_VALIDATION ? ERR_INVALID_EVIDENCE : result;
}

int level_judge(const struct level_proof *proof, const struct validation_set *set,
                enum level *ret_level, char ret_cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	bool lasts = proof->last.size > 0;
	/* The last timestamp proves when the signature timestamp existed. Its own time is stated only
	 * by its own authority. */
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
	/* Nothing covers the last timestamp, so only the path to its root shows that no certificate was
	 * altered. */
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

/* ---- a set that no timestamp covers ---- */

/* The verdicts on the certificates of two paths. */
struct verdict_list {
	struct revocation_verdict verdicts[2 * REVOCATION_PATH_MAX];
	size_t first_count; /* of the first path */
	size_t count;
};

/* PEM. */
struct paths {
	struct buf signer, authority;
	int64_t signed_us;
};

static void paths_free(struct paths *paths)
{
	buf_free(&paths->signer);
	buf_free(&paths->authority);
}
#define PATHS_AUTO __attribute__((cleanup(paths_free)))

static int paths_of(const struct level_proof *proof, struct paths *paths, struct error *error)
{
	buf_init(&paths->signer, PEM_FILE_MAX);
	buf_init(&paths->authority, PEM_FILE_MAX);
	paths->signed_us = proof->signed_us;
	int result = trust_path_to_pem(proof->signer, &paths->signer, error);
	return result ? result : trust_path_to_pem(proof->authority, &paths->authority, error);
}

static int judge_both(const struct paths *paths, const struct validation_set *set,
                      struct verdict_list *verdict_list, struct error *error)
{
	struct revocation_moment signature = {paths->signed_us, false};
	struct revocation_moment own = {paths->signed_us, true};
	size_t count = 0, more = 0;

	int result = revocation_judge(buf_slice(&paths->signer), set, &signature,
	                              verdict_list->verdicts, &count, error);
	if (!result)
		result = revocation_judge(buf_slice(&paths->authority), set, &own,
		                          verdict_list->verdicts + count, &more, error);
	verdict_list->first_count = count;
	verdict_list->count = count + more;
	return result == ERR_VALIDATION ? ERR_INVALID_EVIDENCE : result;
}

/* Returns whether the outcome of a certificate is worse without the object. */
static int is_needed(const struct paths *paths, const struct validation_set *set, size_t index,
                     const struct verdict_list *whole, struct verdict_list *scratch,
                     bool *ret_is_needed, struct error *error)
{
	struct validation_set rest = {.count = set->count - 1};
	rest.objects = calloc(set->count, sizeof *rest.objects);
	if (!rest.objects)
		return ERR_NO_MEMORY;
	memcpy(rest.objects, set->objects, index * sizeof *rest.objects);
	memcpy(rest.objects + index, set->objects + index + 1,
	       (rest.count - index) * sizeof *rest.objects);
	int result = judge_both(paths, &rest, scratch, error);
	free(rest.objects);
	*ret_is_needed = false;
	for (size_t i = 0; !result && i < whole->count; i++)
		if (scratch->verdicts[i].outcome > whole->verdicts[i].outcome)
			*ret_is_needed = true;
	return result;
}

/* Returns whether the object decides the outcome of a certificate; of two equivalent objects the
 * newer one decides. */
static bool decides(const struct verdict_list *verdict_list, const struct validation_object *object)
{
	for (size_t i = 0; i < verdict_list->count; i++)
		if (sha256_equal(&verdict_list->verdicts[i].object, &object->sha256))
			return true;
	return false;
}

/* Finds an object that is not needed, preferring one that decides nothing. *ret_index is the set's
 * count if all are needed. */
static int find_unneeded(const struct paths *paths, const struct validation_set *set,
                         size_t *ret_index, struct error *error)
{
	struct verdict_list *verdict_lists = calloc(2, sizeof *verdict_lists);
	int result = verdict_lists ? judge_both(paths, set, &verdict_lists[0], error) : ERR_NO_MEMORY;
	bool needed = true;

	*ret_index = set->count;
	for (int pass = 0; !result && pass < 2; pass++)
		for (size_t i = 0; !result && needed && i < set->count; i++) {
			const struct validation_object *object = &set->objects[i];
			if (object->kind == VALIDATION_CERTIFICATE ||
			    decides(&verdict_lists[0], object) != (pass == 1))
				continue;
			result = is_needed(paths, set, i, &verdict_lists[0], &verdict_lists[1], &needed, error);
			if (!result && !needed)
				*ret_index = i;
		}
	free(verdict_lists);
	return result;
}

static size_t count_revocations(const struct validation_set *set)
{
	size_t count = 0;

	for (size_t i = 0; i < set->count; i++)
		count += set->objects[i].kind != VALIDATION_CERTIFICATE;
	return count;
}

int level_check_minimal(const struct level_proof *proof, const struct validation_set *set,
                        struct error *error)
{
	PATHS_AUTO struct paths paths;
	char digest[2 * SHA256_SIZE + 1];
	size_t unneeded = 0;

	int result = paths_of(proof, &paths, error);
	if (!result && count_revocations(set) > LEVEL_OBJECTS_MAX)
		result = error_cause(error, ERR_INVALID_EVIDENCE, "more than %d objects of revocation data",
		                     LEVEL_OBJECTS_MAX);
	if (!result)
		result = find_unneeded(&paths, set, &unneeded, error);
	if (result || unneeded == set->count)
		return result;
	const struct validation_object *object = &set->objects[unneeded];
	hex_encode(object->sha256.bytes, SHA256_SIZE, digest);
	return error_cause(error, ERR_INVALID_EVIDENCE,
	                   "revocation data inside that nothing needs: %s, SHA-256 %s",
	                   validation_kind_text(object->kind), digest);
}

int level_is_published(const struct level_proof *proof, bool *ret_is_published, struct error *error)
{
	PATHS_AUTO struct paths paths;
	struct verdict_list *verdict_list = calloc(1, sizeof *verdict_list);

	int result = paths_of(proof, &paths, error);
	if (!result)
		result = verdict_list ? judge_both(&paths, &(struct validation_set){0}, verdict_list, error)
		                      : ERR_NO_MEMORY;
	*ret_is_published = false;
	for (size_t i = 0; !result && i < verdict_list->count; i++) {
		bool topmost = i + 1 == verdict_list->first_count || i + 1 == verdict_list->count;
		if (!topmost && verdict_list->verdicts[i].outcome == REVOCATION_MISSING)
			*ret_is_published = true;
	}
	free(verdict_list);
	return result == ERR_NO_MEMORY ? result : OK;
}

/* Removes unneeded objects, by the rule of level_check_minimal. */
static int prune(const struct paths *paths, struct validation_set *set, enum level *level,
                 char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	size_t unneeded = 0;
	int result = OK;

	while (!result && unneeded < set->count) {
		result = find_unneeded(paths, set, &unneeded, error);
		if (!result && unneeded < set->count)
			validation_set_remove(set, unneeded);
		else
			break;
	}
	if (!result && count_revocations(set) > LEVEL_OBJECTS_MAX) {
		*level = LEVEL_T;
		snprintf(cause, LEVEL_CAUSE_SIZE, "more than %d objects of revocation data are needed",
		         LEVEL_OBJECTS_MAX);
	}
	return result;
}

/* ---- collecting ---- */

static int collect(struct revocation_client *client, struct slice path_pem,
                   const struct revocation_moment *at, struct validation_set *set,
                   bool *ret_suffices, char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	struct revocation_verdict *verdicts = calloc(REVOCATION_PATH_MAX, sizeof *verdicts);
	size_t count = 0;
	int result = verdicts ? revocation_fetch(client, path_pem, at, set, verdicts, &count, error)
	                      : ERR_NO_MEMORY;

	if (!result)
		result = summarize(verdicts, count, ret_suffices, cause, error);
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

/* Treats data that exceeds a limit of the set or the signature as unavailable. */
static int check_size(int result, const struct validation_set *set, enum level *level,
                      char cause[LEVEL_CAUSE_SIZE], const struct error *error)
{
	if (result == ERR_TOO_LARGE)
		snprintf(cause, LEVEL_CAUSE_SIZE, "%s", error_reason(error, result));
	else if (!result && *level == LEVEL_LT && set->size_bytes > CMS_VALIDATION_SIZE_MAX)
		snprintf(cause, LEVEL_CAUSE_SIZE,
		         "%zu bytes of revocation data, but a signature holds at most %zu", set->size_bytes,
		         CMS_VALIDATION_SIZE_MAX);
	else
		return result;
	*level = LEVEL_T;
	return OK;
}

/* Evaluates both paths with the complete set, as a verifier does: data fetched for one path may
 * show that a certificate of the other was revoked. */
static int judge_whole(const struct paths *paths, const struct validation_set *set,
                       bool *ret_suffices, char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	struct verdict_list *verdict_list = malloc(sizeof *verdict_list);
	int result = verdict_list ? judge_both(paths, set, verdict_list, error) : ERR_NO_MEMORY;

	if (!result)
		result = summarize(verdict_list->verdicts, verdict_list->count, ret_suffices, cause, error);
	free(verdict_list);
	return result;
}

static int collect_both(struct revocation_client *client, const struct paths *paths,
                        struct validation_set *set, bool *ret_suffices,
                        char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	struct revocation_moment signature = {paths->signed_us, false};
	struct revocation_moment first = {paths->signed_us, true};

	int result =
		collect(client, buf_slice(&paths->signer), &signature, set, ret_suffices, cause, error);
	if (!result && *ret_suffices)
		result =
			collect(client, buf_slice(&paths->authority), &first, set, ret_suffices, cause, error);
	if (!result && *ret_suffices)
		result = judge_whole(paths, set, ret_suffices, cause, error);
	return result;
}

int level_collect(struct revocation_client *client, const struct level_request *wanted,
                  struct validation_set *set, enum level *ret_level,
                  char ret_cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	PATHS_AUTO struct paths paths = {.signed_us = wanted->signed_us};
	bool suffices = false;

	buf_init(&paths.signer, PEM_FILE_MAX);
	buf_init(&paths.authority, PEM_FILE_MAX);
	ret_cause[0] = '\0';
	buf_add_slice(&paths.signer, wanted->signer_pem);
	int result = buf_check(&paths.signer);
	if (!result)
		result = trust_path_to_pem(wanted->authority, &paths.authority, error);
	if (!result)
		result = collect_both(client, &paths, set, &suffices, ret_cause, error);
	*ret_level = !result && suffices ? LEVEL_LT : LEVEL_T;
	if (*ret_level == LEVEL_LT && wanted->bare)
		result = prune(&paths, set, ret_level, ret_cause, error);
	result = check_size(result, set, ret_level, ret_cause, error);
	if (result || *ret_level != LEVEL_LT)
		validation_set_free(set);
	return result == ERR_VALIDATION ? ERR_INVALID_EVIDENCE : result;
}
