#include "seal/level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seal/certificate.h"
#include "seal/cms.h"
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

/* ---- a set that nothing is over ---- */

/* What is said of each certificate of two paths. */
struct standing {
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

static int stand(const struct paths *paths, const struct validation_set *set,
                 struct standing *standing, struct error *error)
{
	struct revocation_moment signature = {paths->signed_us, false};
	struct revocation_moment own = {paths->signed_us, true};
	size_t count = 0, more = 0;

	int result = revocation_judge(buf_slice(&paths->signer), set, &signature, standing->verdicts,
	                              &count, error);
	if (!result)
		result = revocation_judge(buf_slice(&paths->authority), set, &own,
		                          standing->verdicts + count, &more, error);
	standing->first_count = count;
	standing->count = count + more;
	return result == ERR_VALIDATION ? ERR_INVALID_EVIDENCE : result;
}

/* Whether a certificate is judged worse without it. */
static int is_needed(const struct paths *paths, const struct validation_set *set, size_t index,
                     const struct standing *whole, struct standing *scratch, bool *ret_is_needed,
                     struct error *error)
{
	struct validation_set rest = {.count = set->count - 1};
	rest.objects = calloc(set->count, sizeof *rest.objects);
	if (!rest.objects)
		return ERR_NO_MEMORY;
	memcpy(rest.objects, set->objects, index * sizeof *rest.objects);
	memcpy(rest.objects + index, set->objects + index + 1,
	       (rest.count - index) * sizeof *rest.objects);
	int result = stand(paths, &rest, scratch, error);
	free(rest.objects);
	*ret_is_needed = false;
	for (size_t i = 0; !result && i < whole->count; i++)
		if (scratch->verdicts[i].outcome > whole->verdicts[i].outcome)
			*ret_is_needed = true;
	return result;
}

/* Whether a certificate is judged by it: of two that say the same, the newer one. */
static bool decides(const struct standing *standing, const struct validation_object *object)
{
	for (size_t i = 0; i < standing->count; i++)
		if (sha256_equal(&standing->verdicts[i].object, &object->sha256))
			return true;
	return false;
}

/* Finds an object that is not needed, one that nothing is judged by first. *ret_index is the set's
 * count: there is none. */
static int find_needless(const struct paths *paths, const struct validation_set *set,
                         size_t *ret_index, struct error *error)
{
	struct standing *standings = calloc(2, sizeof *standings);
	int result = standings ? stand(paths, set, &standings[0], error) : ERR_NO_MEMORY;
	bool needed = true;

	*ret_index = set->count;
	for (int pass = 0; !result && pass < 2; pass++)
		for (size_t i = 0; !result && needed && i < set->count; i++) {
			const struct validation_object *object = &set->objects[i];
			if (object->kind == VALIDATION_CERTIFICATE ||
			    decides(&standings[0], object) != (pass == 1))
				continue;
			result = is_needed(paths, set, i, &standings[0], &standings[1], &needed, error);
			if (!result && !needed)
				*ret_index = i;
		}
	free(standings);
	return result;
}

static size_t count_revocations(const struct validation_set *set)
{
	size_t count = 0;

	for (size_t i = 0; i < set->count; i++)
		count += set->objects[i].kind != VALIDATION_CERTIFICATE;
	return count;
}

int level_check_bare(const struct level_proof *proof, const struct validation_set *set,
                     struct error *error)
{
	PATHS_AUTO struct paths paths;
	char digest[2 * SHA256_SIZE + 1];
	size_t needless = 0;

	int result = paths_of(proof, &paths, error);
	if (!result && count_revocations(set) > LEVEL_BARE_OBJECTS_MAX)
		result = error_cause(error, ERR_INVALID_EVIDENCE, "more than %d objects of revocation data",
		                     LEVEL_BARE_OBJECTS_MAX);
	if (!result)
		result = find_needless(&paths, set, &needless, error);
	if (result || needless == set->count)
		return result;
	const struct validation_object *object = &set->objects[needless];
	hex_encode(object->sha256.bytes, SHA256_SIZE, digest);
	return error_cause(error, ERR_INVALID_EVIDENCE,
	                   "revocation data inside that nothing needs: %s, SHA-256 %s",
	                   validation_kind_text(object->kind), digest);
}

int level_is_published(const struct level_proof *proof, bool *ret_is_published, struct error *error)
{
	PATHS_AUTO struct paths paths;
	struct standing *standing = calloc(1, sizeof *standing);

	int result = paths_of(proof, &paths, error);
	if (!result)
		result =
			standing ? stand(&paths, &(struct validation_set){0}, standing, error) : ERR_NO_MEMORY;
	*ret_is_published = false;
	for (size_t i = 0; !result && i < standing->count; i++) {
		bool topmost = i + 1 == standing->first_count || i + 1 == standing->count;
		if (!topmost && standing->verdicts[i].outcome == REVOCATION_MISSING)
			*ret_is_published = true;
	}
	free(standing);
	return result == ERR_NO_MEMORY ? result : OK;
}

/* By the rule that level_check_bare has. */
static int prune(const struct paths *paths, struct validation_set *set, enum level *level,
                 char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	size_t needless = 0;
	int result = OK;

	while (!result && needless < set->count) {
		result = find_needless(paths, set, &needless, error);
		if (!result && needless < set->count)
			validation_remove(set, needless);
		else
			break;
	}
	if (!result && count_revocations(set) > LEVEL_BARE_OBJECTS_MAX) {
		*level = LEVEL_T;
		snprintf(cause, LEVEL_CAUSE_SIZE, "more than %d objects of revocation data are needed",
		         LEVEL_BARE_OBJECTS_MAX);
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

/* What does not fit cannot be had: the set, and then the signature, are bounded. */
static int fit(int result, const struct validation_set *set, enum level *level,
               char cause[LEVEL_CAUSE_SIZE], const struct error *error)
{
	if (result == ERR_TOO_LARGE)
		snprintf(cause, LEVEL_CAUSE_SIZE, "%s", error_reason(error, result));
	else if (!result && *level == LEVEL_LT && set->size_bytes > CMS_INSIDE_SIZE_MAX)
		snprintf(cause, LEVEL_CAUSE_SIZE,
		         "%zu bytes of revocation data, where a signature holds %zu", set->size_bytes,
		         CMS_INSIDE_SIZE_MAX);
	else
		return result;
	*level = LEVEL_T;
	return OK;
}

/* What was got for one path may say of the other that a certificate was revoked, which does not
 * suffice any more: it is all judged together, as whoever verifies does. */
static int judge_whole(const struct paths *paths, const struct validation_set *set,
                       bool *ret_suffices, char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	struct standing *standing = malloc(sizeof *standing);
	int result = standing ? stand(paths, set, standing, error) : ERR_NO_MEMORY;

	if (!result)
		result = conclude(standing->verdicts, standing->count, ret_suffices, cause, error);
	free(standing);
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

int level_collect(struct revocation_client *client, const struct level_wanted *wanted,
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
	result = fit(result, set, ret_level, ret_cause, error);
	if (result || *ret_level != LEVEL_LT)
		validation_free(set);
	return result == ERR_VALIDATION ? ERR_INVALID_EVIDENCE : result;
}
