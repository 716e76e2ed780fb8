#include <string.h>

#include "base/log.h"
#include "seal/validation.h"
#include "service/issue_work.h"

/* Whatever validates the timestamp and is known now goes inside, for a signature has no place
 * beside. */
int issue_stamp(void *context, const struct sha256 *imprint, struct buf *out, struct error *error)
{
	struct issue_work *work = context;
	AUTHORITY_RESULT_AUTO struct authority_result stamped = {0};
	int result = authorities_timestamp(work->service->authorities, imprint, TIME_NONE, &stamped,
	                                   NULL, error);
	if (result)
		return result;
	buf_clear(&work->authority_path);
	buf_add_slice(&work->authority_path, buf_slice(&stamped.path));
	work->stamped_us = stamped.facts.gen_time_us;
	result = buf_check(&work->authority_path);
	return result ? result
	              : timestamp_token_complete(buf_slice(&stamped.token), buf_slice(&stamped.path),
	                                         out, error);
}

int issue_collect(void *context, struct validation_set *set, struct error *error)
{
	struct issue_work *work = context;
	struct level_wanted wanted = {
		.signer_pem = signer_certificates(work->service->signer),
		.authority = buf_slice(&work->authority_path),
		.signed_us = work->stamped_us,
	};
	enum level level = LEVEL_T, least = LEVEL_B;
	char cause[LEVEL_CAUSE_SIZE];
	const char *setting = work->service->settings->certification_level;
	if (*setting && !level_parse(setting, &least))
		return error_cause(error, ERR_VALIDATION, "certification.level");
	int result = level_collect(work->service->revocation, &wanted, set, &level, cause, error);
	if (result || level != LEVEL_T)
		return result;
	if (least > LEVEL_T)
		return error_cause(error, ERR_UNAVAILABLE, "level B-%s cannot be had: %s",
		                   level_text(least), cause);
	log_warning("level_not_reached", "certification_id", work->certification->certification_id,
	            "level", "B-T", "cause", cause);
	return OK;
}
