#include "jobs/jobs.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/tuned.h"
#include "evidence/signers.h"
#include "issue/check_file.h"
#include "issue/links.h"
#include "jobs/deliverer.h"
#include "jobs/internal.h"
#include "jobs/mailer.h"
#include "service/clock_start.h"
#include "service/read_only.h"

struct jobs {
	struct service *service;
	struct lease_renewer *lease_renewer;
	struct sealer sealer;
	struct issuer issuers[ISSUER_COUNT];
	struct renewer renewer;
	struct list_signer list_signer;
	struct topup topups[TOPUP_COUNT];
	struct digest_indexer digest_indexer;
	struct log_publishing log_publishing;
	struct deliverer deliverer;
	struct watcher watcher;
	struct mailer mailer;
	struct housekeeping housekeeping;
	struct request_logger request_logger;
	struct job_thread *sealer_thread;
	struct job_thread *issuer_threads[ISSUER_COUNT];
	struct job_thread *topup_threads[TOPUP_COUNT];
	struct job_thread *renewer_thread;
	struct job_thread *list_signer_thread;
	struct job_thread *deliverer_thread;
	struct job_thread *mailer_thread;
	struct job_thread *housekeeping_thread;
	struct job_thread *watch_components_thread;
	struct job_thread *key_uses_thread;
	struct job_thread *request_logger_thread;
	struct job_thread *index_repairer_thread;
	struct job_thread *digest_indexer_thread;
	struct job_thread *log_publishing_thread;
	struct job_thread *clock_thread;
	int64_t clock_checked_us; /* last time the sealer was woken to check the clock; monotonic; 0:
	                             never */
};

static void wake_each(struct job_thread *const *threads, size_t count)
{
	for (size_t i = 0; i < count; i++)
		job_thread_wake(threads[i]);
}

static void wake(void *context, enum wake which)
{
	struct jobs *jobs = context;
	switch (which) {
	case WAKE_SEALER: wake_each(&jobs->sealer_thread, 1); break;
	case WAKE_ISSUER: wake_each(jobs->issuer_threads, ISSUER_COUNT); break;
	case WAKE_TOPUP: wake_each(jobs->topup_threads, TOPUP_COUNT); break;
	case WAKE_CLOCK: wake_each(&jobs->clock_thread, 1); break;
	}
}

/* Builds the node's name in leases: the same after a restart, so that the node resumes its work. */
static void name_node(const struct settings *settings, char node[HOLDER_SIZE])
{
	char host[128] = "";
	gethostname(host, sizeof host - 1);
	int size = snprintf(node, HOLDER_SIZE, "%s:%.300s", host, settings->service_data_dir);
	assert(size > 0 && size < HOLDER_SIZE); /* a cut name could be that of another node */
}

static int make_directory(const struct settings *settings, char *path, size_t size,
                          struct error *error)
{
	snprintf(path, size, "%s/work", settings->service_data_dir);
	int result = file_remove_tree(path, error);
	if (!result && mkdir(path, 0700) != 0)
		result = error_cause(error, ERR_IO, "mkdir %s: %s", path, strerror(errno));
	return result;
}

/* Done on this thread after a reload, because the store may hang. Retried after a failure. */
static void write_trust(struct service *service)
{
	struct error error = {0};
	if (!atomic_exchange(&service->trust_is_old, false))
		return;
	int result = service_write_trust(service, &error);
	if (!result)
		return;
	atomic_store(&service->trust_is_old, true);
	log_warning("trust_not_written", "cause", error_reason(&error, result));
}

#define CLOCK_CHECK_INTERVAL_US (10 * US_PER_SECOND)

/* Periodic checks. While the clock appears to be ahead, the sealer requests a timestamp, which
 * shows whether it is; otherwise it would do so only at the next interval. */
static int64_t watch_components(void *context, const atomic_bool *stopping)
{
	struct jobs *jobs = context;
	struct error error = {0};
	clock_start_decide(jobs->service);
	int result = read_only_refresh(jobs->service, &error);
	if (result)
		log_warning("read_only_mode_not_read", "cause", error_reason(&error, result));
	result = service_refresh_links(jobs->service, &error);
	if (result)
		log_warning("link_secrets_not_read", "cause", error_reason(&error, result));
	result = signers_follow(jobs->service, &error);
	if (result)
		log_warning("signer_not_updated", "cause", error_reason(&error, result));
	write_trust(jobs->service);
	service_watch_expiry(jobs->service);
	int64_t now_us = clock_monotonic_us();
	if (service_watch_clock(jobs->service) &&
	    now_us >= jobs->clock_checked_us + CLOCK_CHECK_INTERVAL_US) {
		jobs->clock_checked_us = now_us;
		job_thread_wake(jobs->sealer_thread);
	}
	return LINKS_INTERVAL_US;
}

/* Separate thread, so that a hanging authority does not delay anything else. */
static int64_t compare_clock(void *context, const atomic_bool *stopping)
{
	struct jobs *jobs = context;
	int64_t pause_us;
	if (clock_start_query(jobs->service, stopping, &pause_us))
		job_thread_wake(jobs->watch_components_thread);
	return pause_us;
}

/* A crash loses one minute of these times. */
static int64_t write_key_uses(void *context, const atomic_bool *stopping)
{
	struct jobs *jobs = context;
	struct error error = {0};
	(void)stopping;
	int result = service_write_key_uses(jobs->service, &error);
	if (result)
		log_warning("key_uses_not_written", "cause", error_reason(&error, result));
	return tuned_up_to("key_uses_us", KEY_USES_INTERVAL_US);
}

static int start_threads(struct jobs *jobs, struct error *error)
{
	int result = OK;
	for (int i = 0; i < ISSUER_COUNT && !result; i++)
		result = job_thread_start("issuer", issuer_run, &jobs->issuers[i], &jobs->issuer_threads[i],
		                          error);
	if (!result)
		result = job_thread_start("sealer", sealer_run, &jobs->sealer, &jobs->sealer_thread, error);
	for (int i = TOPUP_COUNT - 1; i >= 0 && !result; i--)
		result =
			job_thread_start("topup", topup_run, &jobs->topups[i], &jobs->topup_threads[i], error);
	if (!result)
		result =
			job_thread_start("renewer", renewer_run, &jobs->renewer, &jobs->renewer_thread, error);
	if (!result)
		result = job_thread_start("list-signer", list_signer_run, &jobs->list_signer,
		                          &jobs->list_signer_thread, error);
	if (!result)
		result = job_thread_start("mailer", mailer_run, &jobs->mailer, &jobs->mailer_thread, error);
	if (!result)
		result = job_thread_start("deliverer", deliverer_run, &jobs->deliverer,
		                          &jobs->deliverer_thread, error);
	if (!result)
		result = job_thread_start("housekeeping", housekeeping_run, &jobs->housekeeping,
		                          &jobs->housekeeping_thread, error);
	if (!result)
		result = job_thread_start("look-around", watch_components, jobs,
		                          &jobs->watch_components_thread, error);
	if (!result)
		result = job_thread_start("key-uses", write_key_uses, jobs, &jobs->key_uses_thread, error);
	if (!result)
		result = job_thread_start("request-log", request_logger_run, &jobs->request_logger,
		                          &jobs->request_logger_thread, error);
	if (!result)
		result = job_thread_start("mender", index_repairer_run, jobs->service,
		                          &jobs->index_repairer_thread, error);
	if (!result)
		result = job_thread_start("digests", digest_indexer_run, &jobs->digest_indexer,
		                          &jobs->digest_indexer_thread, error);
	if (!result)
		result = job_thread_start("log", log_publishing_run, &jobs->log_publishing,
		                          &jobs->log_publishing_thread, error);
	if (!result) /* after the thread that it wakes */
		result = job_thread_start("clock", compare_clock, jobs, &jobs->clock_thread, error);
	return result;
}

int jobs_start(struct service *service, struct jobs **ret_jobs, struct error *error)
{
	assert(ret_jobs && !service->wake);
	struct jobs *jobs = calloc(1, sizeof *jobs);
	if (!jobs)
		return ERR_NO_MEMORY;
	jobs->service = service;
	jobs->housekeeping.service = service;
	jobs->request_logger.service = service;
	char node[HOLDER_SIZE];
	char directory[3800];
	name_node(service->settings, node);
	int result = make_directory(service->settings, directory, sizeof directory, error);
	if (!result)
		result = lease_renewer_start(&jobs->lease_renewer, error);
	jobs->housekeeping.lease_renewer = jobs->lease_renewer;
	snprintf(jobs->housekeeping.holder, sizeof jobs->housekeeping.holder, "%s", node);
	if (!result)
		result = sealer_init(&jobs->sealer, service, node, jobs->lease_renewer);
	renewer_init(&jobs->renewer, service, node, jobs->lease_renewer);
	digest_indexer_init(&jobs->digest_indexer, service, node);
	list_signer_init(&jobs->list_signer, service, node);
	if (!result)
		result =
			log_publishing_init(&jobs->log_publishing, service, node, jobs->lease_renewer, error);
	if (!result)
		result = mailer_init(&jobs->mailer, service, node, error);
	if (!result)
		result = deliverer_init(&jobs->deliverer, service, node, error);
	for (int i = 0; i < ISSUER_COUNT; i++)
		issuer_init(&jobs->issuers[i], service, node, directory, i, jobs->lease_renewer);
	for (int i = 0; i < TOPUP_COUNT; i++)
		topup_init(&jobs->topups[i], service, node, i);
	/* Set before the threads start, because they wake each other; no other code does so yet. */
	service->wake_context = jobs;
	service->wake = wake;
	if (!result)
		result = start_threads(jobs, error);
	if (!result)
		result = watcher_start(&jobs->watcher, service, error);
	if (result) {
		jobs_stop(jobs);
		return result;
	}
	*ret_jobs = jobs;
	return OK;
}

static void each_thread(struct jobs *jobs, void (*call)(struct job_thread *thread))
{
	call(jobs->clock_thread);
	call(jobs->watch_components_thread);
	call(jobs->key_uses_thread);
	call(jobs->request_logger_thread);
	call(jobs->index_repairer_thread);
	call(jobs->digest_indexer_thread);
	call(jobs->log_publishing_thread);
	call(jobs->housekeeping_thread);
	call(jobs->mailer_thread);
	call(jobs->deliverer_thread);
	call(jobs->renewer_thread);
	call(jobs->list_signer_thread);
	call(jobs->sealer_thread);
	for (int i = 0; i < TOPUP_COUNT; i++)
		call(jobs->topup_threads[i]);
	for (int i = 0; i < ISSUER_COUNT; i++)
		call(jobs->issuer_threads[i]);
}

void jobs_stop(struct jobs *jobs)
{
	if (!jobs)
		return;
	assert(jobs->service->wake_context == jobs); /* set before any thread */
	each_thread(jobs, job_thread_request_stop);
	watcher_stop(&jobs->watcher);
	each_thread(jobs, job_thread_join); /* all threads first, because they wake each other */
	(void)write_key_uses(jobs, NULL);
	(void)request_logger_run(&jobs->request_logger, NULL);
	jobs->service->wake = NULL;
	jobs->service->wake_context = NULL;
	each_thread(jobs, job_thread_free);
	lease_renewer_stop(jobs->lease_renewer);
	sealer_free(&jobs->sealer);
	log_publishing_free(&jobs->log_publishing);
	deliverer_free(&jobs->deliverer);
	free(jobs);
}
