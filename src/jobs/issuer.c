#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/schedule.h"
#include "jobs/internal.h"
#include "service/issue.h"

#define POLL_US US_PER_SECOND
#define OVERDUE_INTERVAL_US (60 * US_PER_SECOND)
#define PAUSE_FIRST_US (2 * US_PER_SECOND)
#define PAUSE_MAX_US (600 * US_PER_SECOND)
/* One that is old and was tried so often without an answer is not tried again. */
#define ATTEMPTS_MAX 30
/* How long what fails in itself is tried again all the same: a clock, a mount or a setting may be
 * wrong for a while. */
#define SETTLED_AFTER_US (3600 * US_PER_SECOND)
#define JOB_MEMORY_MAX ((size_t)64 << 20)

struct issuing {
	struct issuer *issuer;
	struct certification certification;
	const atomic_bool *stopping;
	atomic_int_fast64_t permille;
	atomic_bool lost; /* the lease went to another */
};

void issuer_init(struct issuer *issuer, struct service *service, const char *node,
                 const char *directory, int number, struct keeper *keeper)
{
	*issuer = (struct issuer){
		.service = service,
		.keeper = keeper,
		.looks_for_overdue = number == 0,
		/* After a long standstill the sealer goes first. */
		.overdue_at_us = clock_monotonic_us() + OVERDUE_INTERVAL_US,
	};
	snprintf(issuer->node, sizeof issuer->node, "%.*s#", HOLDER_SIZE - 16, node);
	snprintf(issuer->holder, sizeof issuer->holder, "%.*s%d", HOLDER_SIZE - 8, issuer->node,
	         number);
	snprintf(issuer->directory, sizeof issuer->directory, "%s/issuer-%d", directory, number);
}

/* ---- while it works ---- */

/* Writes the progress with the lease. Whether the store is well again shows at the end; a lost
 * lease ends the work at once. */
static int renew(void *context)
{
	struct issuing *job = context;
	struct store *store = job->issuer->service->store;
	int result = store_renew_certification(store, &job->certification, job->issuer->holder,
	                                       store_now_us(store) + KEPT_LEASE_US,
	                                       atomic_load(&job->permille), NULL);
	if (result == ERR_REFUSED)
		atomic_store(&job->lost, true);
	return result;
}

static int report_progress(void *context, int64_t permille)
{
	struct issuing *job = context;
	if (atomic_load(job->stopping))
		return ERR_UNAVAILABLE;
	/* The first sign of progress soon, the others with the lease. */
	bool early = atomic_exchange(&job->permille, permille) == 0 && permille > 0;
	if (early)
		(void)renew(job);
	return atomic_load(&job->lost) ? ERR_REFUSED : OK;
}

/* ---- how it ends ---- */

static int64_t pause_after(int64_t attempts)
{
	return backoff_us(attempts, PAUSE_FIRST_US, PAUSE_MAX_US);
}

static int fail(struct issuer *issuer, const struct certification *certification,
                const char *holder, const char *cause)
{
	char incident_id[ID_SIZE];
	struct error error = {0};
	int result =
		store_fail_certification(issuer->service->store, certification, holder, cause,
	                             store_now_us(issuer->service->store), incident_id, &error);
	if (result) {
		if (result != ERR_REFUSED)
			log_error("certification_not_failed", "certification_id",
			          certification->certification_id, "cause", error_reason(&error, result));
		return result;
	}
	atomic_fetch_add(&issuer->service->counters.certifications_failed, 1);
	log_error("certification_failed", "certification_id", certification->certification_id,
	          "incident_id", incident_id, "cause", cause);
	return OK;
}

static void delay(struct issuing *job, int64_t pause_us, const char *cause)
{
	struct error error = {0};
	struct store *store = job->issuer->service->store;
	int result = store_delay_certification(store, &job->certification, job->issuer->holder,
	                                       store_now_us(store) + pause_us, cause, &error);
	/* A lease that cannot be given back runs out. */
	if (result && result != ERR_REFUSED)
		log_warning("certification_not_released", "certification_id",
		            job->certification.certification_id, "cause", error_reason(&error, result));
}

static bool is_old(const struct issuing *job)
{
	const struct service *service = job->issuer->service;
	return store_now_us(service->store) - job->certification.requested_at_us >
	       service->settings->certification_give_up_after;
}

/* Whether its attempts, with the pauses between them, have gone on for long enough: it may have
 * waited for other things before the first, and an operator may have called for some at once. */
static bool is_settled(const struct issuing *job)
{
	int64_t tried_us = 0;
	for (int64_t i = 1; i < job->certification.attempts && tried_us < SETTLED_AFTER_US; i++)
		tried_us += pause_after(i);
	return tried_us >= SETTLED_AFTER_US &&
	       store_now_us(job->issuer->service->store) - job->certification.requested_at_us >=
	           SETTLED_AFTER_US;
}

static bool may_pass(const struct issuing *job, int result)
{
	switch (result) {
	case ERR_INVALID_EVIDENCE: /* the clock is wrong, or an authority's certificate */
	case ERR_NOT_FOUND:        /* another place is mounted where the content should be */
	case ERR_INTERNAL: /* a font is missing */ return !is_settled(job);
	default: return issue_is_transient(result);
	}
}

static void end_failed_attempt(struct issuing *job, int result, const struct error *error)
{
	const struct certification *certification = &job->certification;
	if (atomic_load(job->stopping)) {
		delay(job, 0, NULL);
		return;
	}
	char cause[ERROR_CAUSE_MAX + 64];
	snprintf(cause, sizeof cause, "%d %s: %s", result, error_code_text(result),
	         error_reason(error, result));
	if (!may_pass(job, result) || is_old(job)) {
		int failed = fail(job->issuer, certification, job->issuer->holder, cause);
		if (!failed || failed == ERR_REFUSED)
			return;
	}
	log_warning("certification_delayed", "certification_id", certification->certification_id,
	            "cause", cause);
	delay(job, pause_after(certification->attempts), cause);
}

static void complete(struct issuing *job, const struct issue_result *issued)
{
	const struct certification *certification = &job->certification;
	struct service *service = job->issuer->service;
	struct error error = {0};
	int result = store_complete_certification(service->store, certification, job->issuer->holder,
	                                          issued->issued_at_us, issued->documents,
	                                          issued->count, &error);
	if (!result) {
		atomic_fetch_add(&service->counters.certifications_completed, 1);
		log_info("certification_completed", "certification_id", certification->certification_id);
		return;
	}
	/* Unless it is known to be another's, the documents may be the issued ones; what nothing names
	 * is swept. */
	if (result == ERR_REFUSED)
		for (size_t i = 0; i < issued->count; i++)
			content_discard(service->content, issued->documents[i].object);
	if (result != ERR_REFUSED)
		end_failed_attempt(job, result, &error);
}

/* ---- one after the other ---- */

static int prepare_directory(const struct issuer *issuer, struct error *error)
{
	int result = file_remove_tree(issuer->directory, error);
	if (!result && mkdir(issuer->directory, 0700) != 0)
		result = error_cause(error, ERR_IO, "mkdir %s: %s", issuer->directory, strerror(errno));
	return result;
}

static void work_on(struct issuing *job, struct arena *arena)
{
	struct issuer *issuer = job->issuer;
	if (job->certification.attempts > ATTEMPTS_MAX && is_old(job)) {
		fail(issuer, &job->certification, issuer->holder, "attempts at it end the process");
		return;
	}
	struct issue_watch watch = {report_progress, job};
	struct issue_result issued;
	struct error error = {0};
	int result = prepare_directory(issuer, &error);
	int holding = keeper_hold(issuer->keeper, renew, job);
	if (!result)
		result = issue_certification(issuer->service, &job->certification, issuer->directory,
		                             &watch, arena, &issued, &error);
	keeper_release(issuer->keeper, holding);
	if (!result)
		complete(job, &issued);
	else if (!atomic_load(&job->lost))
		end_failed_attempt(job, result, &error);
	result = file_remove_tree(issuer->directory, &error);
	if (result)
		log_warning("working_files_left", "cause", error_reason(&error, result));
}

/* What waits for a seal that does not come is never claimed, so it is looked for apart. */
static void fail_overdue(struct issuer *issuer, const atomic_bool *stopping)
{
	int64_t now_us = clock_monotonic_us();
	if (!issuer->looks_for_overdue || now_us < issuer->overdue_at_us)
		return;
	issuer->overdue_at_us = now_us + OVERDUE_INTERVAL_US;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, JOB_MEMORY_MAX);
	struct certification found = {0};
	struct store *store = issuer->service->store;
	int64_t before_us =
		store_now_us(store) - issuer->service->settings->certification_give_up_after;
	while (!atomic_load(stopping) &&
	       !store_find_overdue_certification(store, before_us, found.certification, &arena, &found,
	                                         NULL)) {
		/* One that cannot be failed is told of, and keeps none of the others. */
		(void)fail(issuer, &found, NULL, "its range was not sealed in time");
		arena_reset(&arena);
	}
}

int64_t issuer_run(void *context, const atomic_bool *stopping)
{
	struct issuer *issuer = context;
	fail_overdue(issuer, stopping);
	ARENA_AUTO struct arena arena;
	arena_init(&arena, JOB_MEMORY_MAX);
	while (!atomic_load(stopping)) {
		arena_reset(&arena);
		struct issuing job = {.issuer = issuer, .stopping = stopping};
		struct error error = {0};
		struct certification_claim claim = {
			.holder = issuer->holder,
			.now_us = store_now_us(issuer->service->store),
			.lease_us = KEPT_LEASE_US,
			.after_account = issuer->last_account,
			.node = issuer->node,
			.account_max = ISSUER_COUNT - 1,
		};
		int result = store_claim_certification(issuer->service->store, &claim, &arena,
		                                       &job.certification, &error);
		if (result) {
			if (result != ERR_NOT_FOUND)
				log_warning("certification_not_claimed", "cause", error_reason(&error, result));
			break;
		}
		issuer->last_account = job.certification.account;
		work_on(&job, &arena);
	}
	return POLL_US;
}
