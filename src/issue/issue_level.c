/* Timestamps and validation data of the signatures of issued documents, and the level that they
 * reach. */
#include <string.h>

#include "base/log.h"
#include "evidence/timestamp_roots.h"
#include "issue/issue_job.h"
#include "seal/validation_set.h"

/* The available validation data of the timestamp is stored inside the token, because a signature
 * has no other place for it. */
int issue_stamp(void *context, const struct sha256 *imprint, struct buf *out, struct error *error)
{
	struct issue_job *work = context;
	AUTHORITY_RESULT_AUTO struct authority_result stamped = {0};
	int result = authorities_timestamp(work->service->authorities, imprint, TIME_NONE, &stamped,
	                                   NULL, error);
	if (result)
		return result;
	result = timestamp_roots_record(work->service, buf_slice(&stamped.path), error);
	if (result)
		return result;
	buf_clear(&work->authority_path);
	buf_add_slice(&work->authority_path, buf_slice(&stamped.path));
	buf_clear(&work->path_inside);
	work->stamped_us = stamped.facts.gen_time_us;
	work->stamped_until_us = stamped.facts.authority.not_after_us;
	result = buf_check(&work->authority_path);
	if (!result)
		result = timestamp_token_add_certificates(buf_slice(&stamped.token),
		                                          buf_slice(&stamped.path), out, error);
	return result ? result : timestamp_embedded_path(buf_slice(out), &work->path_inside, error);
}

static int collect(struct issue_job *work, bool bare, struct validation_set *set,
                   struct error *error)
{
	struct level_request wanted = {
		.signer_pem = signer_certificates(work->service->signer),
		.authority = buf_slice(bare ? &work->path_inside : &work->authority_path),
		.signed_us = work->stamped_us,
		.bare = bare,
	};
	enum level level = LEVEL_T, least = LEVEL_B;
	char cause[LEVEL_CAUSE_SIZE];
	const char *setting = work->service->settings->certification_level;
	if (*setting && !level_parse(setting, &least))
		return error_cause(error, ERR_VALIDATION, "certification.level");
	int result = level_collect(work->service->revocation, &wanted, set, &level, cause, error);
	work->collected = level;
	if (result || level != LEVEL_T)
		return result;
	if (least > LEVEL_T)
		return error_cause(error, ERR_UNAVAILABLE, "level B-%s is unavailable: %s",
		                   level_text(least), cause);
	log_warning("signature_level_missed", "certification_id", work->certification->certification_id,
	            "signature_level", "B-T", "cause", cause);
	return OK;
}

int issue_collect(void *context, struct validation_set *set, struct error *error)
{
	return collect(context, false, set, error);
}

int issue_collect_inside(void *context, struct validation_set *set, struct error *error)
{
	return collect(context, true, set, error);
}

/* ---- statements of a report about its own signature ---- */

static bool lasts(const struct issue_job *work)
{
	return work->signing.timestamp && work->service->revocation;
}

int issue_predict_level(struct issue_job *work, struct report_facts *facts, struct error *error)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct certificate_facts signer;
	int result = OK;
	if (!work->signing.timestamp) {
		result = trust_describe(signer_certificates(work->service->signer), &signer, error);
		facts->level = LEVEL_B;
		facts->checkable_until_us = !result ? signer.not_after_us : 0;
		return result;
	}
	work->collected = LEVEL_T;
	if (lasts(work))
		result = issue_collect(work, &set, error);
	facts->level = work->collected == LEVEL_LT ? LEVEL_LTA : LEVEL_T;
	facts->checkable_until_us = work->stamped_until_us;
	return result;
}

int issue_check_level(const struct issue_job *work, const struct report_facts *facts,
                      struct error *error)
{
	enum level reached = lasts(work) && work->collected == LEVEL_LT ? LEVEL_LTA : LEVEL_T;
	if (!work->signing.timestamp ||
	    (reached == facts->level && work->stamped_until_us >= facts->checkable_until_us))
		return OK;
	return error_cause(error, ERR_UNAVAILABLE,
	                   "the achievable signature level changed while the report was made");
}
