/* The job that claims certifications and issues them. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/tuned.h"
#include "evidence/signers.h"
#include "issue/issue_attempt.h"
#include "jobs/internal.h"
#include "service/read_only.h"

#define POLL_US US_PER_SECOND
#define OVERDUE_INTERVAL_US (60 * US_PER_SECOND)
#define JOB_MEMORY_MAX ((size_t)64 << 20)

struct issuing {
	struct issuer *issuer;
	struct certification certification;
	const atomic_bool *stopping;
	atomic_int_fast64_t permille;
	atomic_bool lost; /* another node holds the lease */
};

void issuer_init(struct issuer *issuer, struct service *service, const char *node,
                 const char *directory, int number, struct lease_renewer *lease_renewer)
{
	assert(number >= 0 && number < ISSUER_COUNT);
	*issuer = (struct issuer){
		.service = service,
		.lease_renewer = lease_renewer,
		.checks_overdue = number == 0,
		/* After a long downtime the sealer runs first. */
		.overdue_at_us = clock_monotonic_us() + tuned_up_to("overdue_us", OVERDUE_INTERVAL_US),
	};
	snprintf(issuer->node, sizeof issuer->node, "%.*s#", HOLDER_SIZE - 16, node);
	snprintf(issuer->holder, sizeof issuer->holder, "%.*s%d", HOLDER_SIZE - 8, issuer->node,
	         number);
	snprintf(issuer->directory, sizeof issuer->directory, "%s/issuer-%d", directory, number);
}

/* ---- progress ---- */

/* Renews the lease and writes the progress. Failures of the store show at the end; a lost lease
 * ends the work immediately. */
static int renew(void *context)
{
	struct issuing *job = context;
	struct store *store = job->issuer->service->store;
	int result = store_renew_certification(store, &job->certification, job->issuer->holder,
	                                       store_now_us(store) + renewed_lease_us(),
	                                       atomic_load(&job->permille), NULL);
	if (result == ERR_REFUSED)
		atomic_store(&job->lost, true);
	return result;
}

static int report_progress(void *context, int64_t permille)
{
	assert(permille >= 0 && permille <= 1000);
	struct issuing *job = context;
	if (atomic_load(job->stopping))
		return ERR_UNAVAILABLE;
	/* The first progress is written immediately, later progress with the lease. */
	bool early = atomic_exchange(&job->permille, permille) == 0 && permille > 0;
	if (early)
		(void)renew(job);
	return atomic_load(&job->lost) ? ERR_REFUSED : OK;
}

/* ---- processing ---- */

static int prepare_directory(const struct issuer *issuer, struct error *error)
{
	assert(strstr(issuer->directory, "/issuer-")); /* removed with its contents */
	int result = file_remove_tree(issuer->directory, error);
	if (!result && mkdir(issuer->directory, 0700) != 0)
		result = error_cause(error, ERR_IO, "mkdir %s: %s", issuer->directory, strerror(errno));
	return result;
}

static void work_on(struct issuing *job, struct arena *arena)
{
	struct issuer *issuer = job->issuer;
	const struct issue_attempt attempt = {
		.service = issuer->service,
		.certification = &job->certification,
		.holder = issuer->holder,
		.stopping = job->stopping,
	};
	if (issue_fail_forced(&attempt) || issue_give_up_overdue(&attempt))
		return;
	struct issue_listener watch = {report_progress, job};
	struct issue_result issued;
	struct error error = {0};
	int result = prepare_directory(issuer, &error);
	int holding = lease_renewer_add(issuer->lease_renewer, renew, job);
	if (!result)
		result = issue_certification(issuer->service, &job->certification, issuer->directory,
		                             &watch, arena, &issued, &error);
	lease_renewer_remove(issuer->lease_renewer, holding);
	if (!result)
		issue_record_success(&attempt, &issued);
	else if (!atomic_load(&job->lost))
		issue_record_failure(&attempt, result, &error);
	result = file_remove_tree(issuer->directory, &error);
	if (result)
		log_warning("working_files_not_removed", "cause", error_reason(&error, result));
}

/* Certifications that wait for a missing seal are never claimed, so they are checked separately. */
static void fail_overdue(struct issuer *issuer, const atomic_bool *stopping)
{
	int64_t now_us = clock_monotonic_us();
	if (!issuer->checks_overdue || now_us < issuer->overdue_at_us)
		return;
	issuer->overdue_at_us = now_us + tuned_up_to("overdue_us", OVERDUE_INTERVAL_US);
	issue_fail_overdue(issuer->service, stopping);
}

int64_t issuer_run(void *context, const atomic_bool *stopping)
{
	struct issuer *issuer = context;
	if (read_only_is_active(issuer->service))
		return READ_ONLY_POLL_US;
	fail_overdue(issuer, stopping);
	ARENA_AUTO struct arena arena;
	arena_init(&arena, JOB_MEMORY_MAX);
	/* Certifications that this node cannot sign wait, or another node takes them. */
	while (!atomic_load(stopping) && !read_only_is_active(issuer->service) &&
	       !signers_check(issuer->service, NULL)) {
		arena_reset(&arena);
		struct issuing job = {.issuer = issuer, .stopping = stopping};
		struct error error = {0};
		struct certification_claim claim = {
			.holder = issuer->holder,
			.now_us = store_now_us(issuer->service->store),
			.lease_us = renewed_lease_us(),
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
