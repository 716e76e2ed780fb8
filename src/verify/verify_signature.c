/* Verifies the signature of an archive. */
#include "seal/validation_set.h"
#include "verify/verify_check.h"

static struct level_proof proof_of_paths(const struct cms_facts *facts,
                                         const struct cms_paths *paths)
{
	return (struct level_proof){
		.signer = buf_slice(&paths->signer),
		.authority = buf_slice(&paths->authority),
		.signed_us = facts->timestamp.gen_time_us,
	};
}

static void begin(struct cms_paths *paths)
{
	buf_init(&paths->signer, CMS_PATH_SIZE_MAX);
	buf_init(&paths->authority, CMS_PATH_SIZE_MAX);
}

static void end(struct cms_paths *paths)
{
	buf_free(&paths->signer);
	buf_free(&paths->authority);
}

/* Judges the embedded validation data, which no signature covers. It must be complete for its
 * purpose and contain nothing else. This refers to the embedded paths, because the roots of a later
 * verifier were unknown when the data was collected. */
static int judge_inside(struct slice cms, const struct cms_facts *facts,
                        const struct validation_set *set, enum level *ret_level,
                        struct error *error)
{
	char cause[LEVEL_CAUSE_SIZE];
	struct cms_paths own = {0};
	begin(&own);
	int result = cms_find_embedded_paths(cms, &own, error);
	struct level_proof proof = proof_of_paths(facts, &own);
	if (!result)
		result = level_judge(&proof, set, ret_level, cause, error);
	if (!result && *ret_level != LEVEL_LT)
		result = error_cause(error, ERR_INVALID_EVIDENCE, "%s", cause);
	if (!result)
		result = level_check_minimal(&proof, set, error);
	end(&own);
	return finding_set_step(error, FINDING_SIGNATURE_VALIDATION_NOT_VALID, result);
}

static int judge_level(struct slice cms, const struct cms_facts *facts,
                       const struct cms_paths *paths, enum level *ret_level,
                       char cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	struct level_proof proof = proof_of_paths(facts, paths);
	cause[0] = '\0';
	*ret_level = facts->has_timestamp ? LEVEL_T : LEVEL_B;
	if (paths->inside->count == 0)
		return OK;
	if (!facts->has_timestamp)
		return finding_fail(error, FINDING_SIGNATURE_VALIDATION_UNTIMED);
	int result = judge_inside(cms, facts, paths->inside, ret_level, error);
	return result ? result : level_judge(&proof, paths->inside, ret_level, cause, error);
}

int verify_signature(struct slice cms, const struct sha256 *signed_digest,
                     const struct trust_roots *roots, struct cms_paths *paths,
                     struct cms_facts *ret_facts, enum level *ret_level,
                     char ret_cause[LEVEL_CAUSE_SIZE], struct error *error)
{
	VALIDATION_SET_AUTO struct validation_set inside = {0};
	paths->inside = &inside;
	int result = cms_verify_paths(cms, signed_digest, roots, paths, ret_facts, error);
	if (!result)
		result = judge_level(cms, ret_facts, paths, ret_level, ret_cause, error);
	paths->inside = NULL;
	return result;
}

int verify_warn_unvalidated(struct run *run, const char *path, const char *where,
                            const struct cms_facts *facts, const struct cms_paths *paths)
{
	struct level_proof proof = proof_of_paths(facts, paths);
	bool is_published = false;
	int result = facts->has_timestamp ? level_is_published(&proof, &is_published, NULL) : OK;
	if (is_published)
		verify_add(run, VERIFY_WARNING, path, where, FINDING_SIGNATURE_REVOCATION_UNKNOWN);
	return result;
}
