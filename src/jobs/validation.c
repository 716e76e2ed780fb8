/* Logs the achievable levels of signatures and timestamps. Long-term validation (levels LT and LTA
 * of ETSI) needs revocation data for each certificate below a root. If an authority does not
 * publish such data, issued documents reach level T only: they can be validated as long as others
 * provide the data. The log informs the operator before users rely on a level. */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "jobs/internal.h"
#include "seal/revocation_client.h"
#include "seal/signer.h"

#define PATH_PEM_MAX ((size_t)1 << 20)
#define CHECK_INTERVAL_US (6 * 3600 * US_PER_SECOND)
#define RETRY_INTERVAL_US (15 * 60 * US_PER_SECOND) /* while a path lacks data */

_Static_assert(SERVICE_PATHS == 1 + AUTHORITIES_MAX, "there is room for all");

static bool is_new(struct sha256 *logged, const char *subject, const char *outcome,
                   const char *reason)
{
	char text[SUBJECT_SIZE + REVOCATION_CAUSE_SIZE + 64];
	int size = snprintf(text, sizeof text, "%s\n%s\n%s", subject, outcome, reason);
	assert(size > 0 && (size_t)size < sizeof text);
	struct sha256 digest = sha256_of(text, (size_t)size);

	if (sha256_equal(logged, &digest))
		return false;
	*logged = digest;
	return true;
}

static enum path_state state_of(const struct revocation_verdict *lack)
{
	if (!lack)
		return PATH_COMPLETE;
	return lack->outcome == REVOCATION_REVOKED ? PATH_REVOKED : PATH_INCOMPLETE;
}

static void log_path_level(struct sha256 *logged, const char *of,
                           const struct revocation_verdict *verdicts, size_t count)
{
	assert(count >= 1 && count <= REVOCATION_PATH_MAX);
	const struct revocation_verdict *lack = revocation_find_insufficient(verdicts, count);
	const char *subject = (lack ? lack : &verdicts[0])->certificate.subject;
	const char *outcome = lack ? revocation_outcome_text(lack->outcome) : "complete";
	const char *reason = lack ? lack->cause : "";

	if (!is_new(logged, subject, outcome, reason))
		return;
	if (!lack)
		log_info("validation_data", "of", of, "certificate", subject, "signature_level", "LTA");
	else if (lack->outcome == REVOCATION_REVOKED)
		log_error("certificate_revoked", "of", of, "certificate", subject, "consequence",
		          "nothing that is signed with it is valid");
	else
		log_warning("validation_data_missing", "of", of, "certificate", subject, "outcome", outcome,
		            "reason", reason, "signature_level", "T");
}

/* Returns whether a path must be checked: it has changed, or the last check is too old. */
static bool is_due(struct validation_log_state *logged, struct slice path)
{
	int64_t now_us = clock_monotonic_us();
	struct sha256 digest = sha256_of(path.data, path.size);

	if (sha256_equal(&logged->path, &digest) && now_us < logged->next_us)
		return false;
	logged->path = digest;
	logged->next_us = now_us + CHECK_INTERVAL_US;
	return true;
}

/* Counts every known revocation, also one in the second by which the check looks back. */
static void count_revocations(struct revocation_verdict *verdicts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (verdicts[i].revoked_us != TIME_NONE)
			verdicts[i].outcome = REVOCATION_REVOKED;
}

static void check_path(struct validation_log_state *logged, struct service *service, size_t index,
                       const char *of, struct slice path)
{
	if (!is_due(logged, path))
		return;
	atomic_int *state = &service->path_states[index];
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	/* One second in the past, so that data issued now counts as issued afterwards. */
	struct revocation_moment at = {.time_us = clock_now_us() - US_PER_SECOND};
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct error error = {0};
	size_t count = 0;
	int result = revocation_fetch(service->revocation, path, &at, &set, verdicts, &count, &error);

	if (!result) {
		count_revocations(verdicts, count);
		atomic_store(state, state_of(revocation_find_insufficient(verdicts, count)));
		log_path_level(&logged->said, of, verdicts, count);
	} else {
		atomic_store(state, PATH_UNKNOWN);
	}
	if (atomic_load(state) != PATH_COMPLETE)
		logged->next_us = clock_monotonic_us() + RETRY_INTERVAL_US;
	if (result && is_new(&logged->said, of, "failed", error_reason(&error, result)))
		log_warning("validation_data_unknown", "of", of, "cause", error_reason(&error, result));
}

void validation_log_levels(struct validation_logger *level_logger, struct service *service,
                           const atomic_bool *stopping)
{
	if (!service->revocation || !service->signer || atomic_load(stopping))
		return;
	check_path(&level_logger->logged[0], service, 0, "signer",
	           signer_certificates(service->signer));
	for (size_t i = 0; service->authorities && i < AUTHORITIES_MAX; i++) {
		struct authority_certificates seen;
		BUF_AUTO struct buf path;
		buf_init(&path, PATH_PEM_MAX);
		if (!atomic_load(stopping) &&
		    authorities_get_certificates(service->authorities, i, &seen, &path) &&
		    !buf_check(&path))
			check_path(&level_logger->logged[1 + i], service, 1 + i, seen.name, buf_slice(&path));
	}
}
