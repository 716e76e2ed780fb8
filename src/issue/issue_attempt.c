#include "issue/issue_attempt.h"
#include "service/read_only.h"

#include <stdio.h>

#include "base/log.h"
#include "base/schedule.h"
#include "evidence/signers.h"

#define PAUSE_FIRST_US (2 * US_PER_SECOND)
#define PAUSE_MAX_US (600 * US_PER_SECOND)
/* An overdue certification with this many attempts without a result is not retried. */
#define ATTEMPTS_MAX 30
/* Time for which permanent errors are retried: a clock, a mount or a setting may be wrong
 * temporarily. */
#define SETTLED_AFTER_US (3600 * US_PER_SECOND)
#define OVERDUE_MEMORY_MAX ((size_t)1 << 20)

static int64_t pause_after(int64_t attempts)
{
	return backoff_us(attempts, PAUSE_FIRST_US, PAUSE_MAX_US);
}

static int fail(struct service *service, const struct certification *certification,
                const char *holder, const char *cause)
{
	char incident_id[ID_SIZE];
	struct error error = {0};
	int result = store_fail_certification(service->store, certification, holder, cause,
	                                      store_now_us(service->store), incident_id, &error);
	if (result) {
		if (result != ERR_REFUSED)
			log_error("certification_failure_not_recorded", "certification_id",
			          certification->certification_id, "cause", error_reason(&error, result));
		return result;
	}
	if (!certification->fails)
		atomic_fetch_add(&service->counters.certifications_failed, 1);
	log_write(certification->fails ? LOG_INFO : LOG_ERROR, "certification_failed",
	          "certification_id", certification->certification_id, "incident_id", incident_id,
	          "cause", cause, NULL);
	return OK;
}

/* cause NULL: the attempt is not counted. */
static void delay(const struct issue_attempt *attempt, int64_t pause_us, const char *cause,
                  bool own_failure)
{
	struct error error = {0};
	struct store *store = attempt->service->store;
	const struct certification_delay delay = {
		.next_us = store_now_us(store) + pause_us,
		.cause = cause,
		.own_failure = own_failure,
	};
	int result =
		store_delay_certification(store, attempt->certification, attempt->holder, &delay, &error);
	/* A lease that cannot be released expires. */
	if (result && result != ERR_REFUSED)
		log_warning("certification_not_released", "certification_id",
		            attempt->certification->certification_id, "cause",
		            error_reason(&error, result));
}

static bool is_old(const struct issue_attempt *attempt)
{
	const struct service *service = attempt->service;
	int64_t from_us = read_only_waiting_since(service, attempt->certification->requested_at_us);
	return store_now_us(service->store) - from_us > service->settings->certification_give_up_after;
}

/* Returns whether the attempts that failed with permanent errors, with their back-off, have gone on
 * for long enough. The certification may have waited for other things before. If an operator
 * requests an immediate retry, the store restarts the count. */
static bool is_settled(const struct issue_attempt *attempt)
{
	const struct certification *certification = attempt->certification;
	int64_t tried_us = 0;
	for (int64_t i = 1; i <= certification->own_failures && tried_us < SETTLED_AFTER_US; i++)
		tried_us += pause_after(certification->attempts - i);
	return tried_us >= SETTLED_AFTER_US &&
	       store_now_us(attempt->service->store) - certification->requested_at_us >=
	           SETTLED_AFTER_US;
}

static bool is_transient(int code)
{
	switch (code) {
	case ERR_UNAVAILABLE:
	case ERR_IO:
	case ERR_NO_SPACE:
	case ERR_NO_MEMORY:
	case ERR_AUTHORITY:
	case ERR_NETWORK:
	case ERR_UNKNOWN_OUTCOME: return true;
	default: return false;
	}
}

/* Returns whether an error is permanent in principle, but may disappear when its cause is
 * corrected. */
static bool is_own_failure(int code)
{
	switch (code) {
	case ERR_INVALID_EVIDENCE: /* the clock or an authority's certificate is wrong */
	case ERR_NOT_FOUND:        /* another file system is mounted instead of the content */
	case ERR_INTERNAL: /* a font is missing */ return true;
	default: return false;
	}
}

void issue_record_failure(const struct issue_attempt *attempt, int result,
                          const struct error *error)
{
	const struct certification *certification = attempt->certification;
	char cause[ERROR_CAUSE_MAX + 64];
	snprintf(cause, sizeof cause, "%d %s: %s", result, error_code_text(result),
	         error_reason(error, result));
	if (atomic_load(attempt->stopping)) {
		log_info("certification_released", "certification_id", certification->certification_id,
		         "cause", cause);
		delay(attempt, 0, NULL, false);
		return;
	}
	bool own_failure = is_own_failure(result);
	bool may_pass = own_failure ? !is_settled(attempt) : is_transient(result);
	/* Without a key, the certification waits for one. */
	bool lacks_key = signers_check(attempt->service, NULL) != 0;
	if (!lacks_key && (!may_pass || is_old(attempt))) {
		int failed = fail(attempt->service, certification, attempt->holder, cause);
		if (!failed || failed == ERR_REFUSED)
			return;
	}
	log_warning("certification_delayed", "certification_id", certification->certification_id,
	            "cause", cause);
	delay(attempt, pause_after(certification->attempts), cause, own_failure);
}

void issue_record_success(const struct issue_attempt *attempt, const struct issue_result *issued)
{
	const struct certification *certification = attempt->certification;
	struct service *service = attempt->service;
	struct error error = {0};
	int result = store_complete_certification(service->store, certification, attempt->holder,
	                                          issued->issued_at_us, issued->documents,
	                                          issued->count, &error);
	if (!result) {
		atomic_fetch_add(&service->counters.certifications_completed, 1);
		log_info("certification_completed", "certification_id", certification->certification_id);
		return;
	}
	/* Unless another node is known to hold the certification, the documents may be the issued ones.
	 * Unreferenced objects are swept. */
	if (result != ERR_REFUSED) {
		issue_record_failure(attempt, result, &error);
		return;
	}
	log_warning("certification_not_completed", "certification_id", certification->certification_id,
	            "cause", error_reason(&error, result));
	for (size_t i = 0; i < issued->count; i++)
		content_discard(service->content, issued->documents[i].object);
}

bool issue_fail_forced(const struct issue_attempt *attempt)
{
	if (!attempt->certification->fails)
		return false;
	(void)fail(attempt->service, attempt->certification, attempt->holder, "a test scenario");
	return true;
}

bool issue_give_up_overdue(const struct issue_attempt *attempt)
{
	if (attempt->certification->attempts <= ATTEMPTS_MAX || !is_old(attempt))
		return false;
	/* If it cannot be failed now, it is claimed again when its lease has expired. */
	(void)fail(attempt->service, attempt->certification, attempt->holder,
	           "its attempts crash the process");
	return true;
}

void issue_fail_overdue(struct service *service, const atomic_bool *stopping)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, OVERDUE_MEMORY_MAX);
	struct certification found = {0};
	struct store *store = service->store;
	int64_t before_us = store_now_us(store) - service->settings->certification_give_up_after;
	if (read_only_waiting_since(service, before_us) > before_us)
		return; /* resumed since: none has waited that long */
	while (!atomic_load(stopping) &&
	       !store_find_overdue_certification(store, before_us, found.certification, &arena, &found,
	                                         NULL)) {
		/* A failure is logged and does not affect the others. */
		(void)fail(service, &found, NULL, "its range was not sealed in time");
		arena_reset(&arena);
	}
}
