/* The signature of an archive. */
#include "proof/verify_check.h"
#include "seal/validation.h"

/* Nothing is over what was put inside for the validation: it has to prove what it is there for, and
 * there has to be nothing else. */
static int judge_level(const struct cms_facts *facts, const struct cms_paths *paths,
                       enum level *ret_level, struct error *error)
{
	struct level_proof proof = {
		.signer = buf_slice(&paths->signer),
		.authority = buf_slice(&paths->authority),
		.signed_us = facts->timestamp.gen_time_us,
	};
	char cause[LEVEL_CAUSE_SIZE];
	*ret_level = facts->has_timestamp ? LEVEL_T : LEVEL_B;
	if (paths->inside->count == 0)
		return OK;
	if (!facts->has_timestamp)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "there is revocation data inside, but no timestamp");
	int result = level_judge(&proof, paths->inside, ret_level, cause, error);
	if (!result && *ret_level != LEVEL_LT)
		return error_cause(error, ERR_INVALID_EVIDENCE, "what is inside does not validate it: %s",
		                   cause);
	return result ? result : level_check_bare(&proof, paths->inside, error);
}

int verify_signature(struct slice cms, const struct sha256 *signed_digest,
                     const struct trust_roots *roots, struct cms_paths *paths,
                     struct cms_facts *ret_facts, enum level *ret_level, struct error *error)
{
	VALIDATION_AUTO struct validation_set inside = {0};
	paths->inside = &inside;
	int result = cms_verify_along(cms, signed_digest, roots, paths, ret_facts, error);
	if (!result)
		result = judge_level(ret_facts, paths, ret_level, error);
	paths->inside = NULL;
	return result;
}

int verify_note_unvalidated(struct run *run, const char *path, const char *where,
                            const struct cms_facts *facts, const struct cms_paths *paths)
{
	struct level_proof proof = {
		.signer = buf_slice(&paths->signer),
		.authority = buf_slice(&paths->authority),
		.signed_us = facts->timestamp.gen_time_us,
	};
	bool is_published = false;
	int result = facts->has_timestamp ? level_is_published(&proof, &is_published, NULL) : OK;
	if (is_published)
		verify_add(run, VERIFY_WARNING, path, where,
		           "nothing inside tells whether certificates were revoked, though they name where "
		           "that is told: it could not be had, or was taken out");
	return result;
}
