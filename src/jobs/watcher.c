/* Monitoring threads: update the state for readiness, and log its changes. */
#include "jobs/internal.h"
#include "service/watch.h"

#define LOG_INTERVAL_US US_PER_SECOND

static int64_t ask(void *context, const atomic_bool *stopping)
{
	struct watcher *watcher = context;
	(void)stopping;
	watch_check_ready(watcher->service);
	return WATCH_INTERVAL_US;
}

static int64_t ask_servers(void *context, const atomic_bool *stopping)
{
	struct watcher *watcher = context;
	(void)stopping;
	watch_check_servers(watcher->service);
	return WATCH_INTERVAL_US;
}

static int64_t check_store(void *context, const atomic_bool *stopping)
{
	struct watcher *watcher = context;
	(void)stopping;
	watch_check_store(watcher->service);
	return WATCH_INTERVAL_US;
}

/* Logs on a separate thread, because the others may hang in their checks. */
static int64_t log_readiness(void *context, const atomic_bool *stopping)
{
	struct watcher *watcher = context;
	if (!atomic_load(stopping))
		readiness_log(watcher->service, &watcher->logged);
	return LOG_INTERVAL_US;
}

static int64_t watch_components(void *context, const atomic_bool *stopping)
{
	struct watcher *watcher = context;
	(void)stopping;
	watch_check_disks(watcher->service);
	return WATCH_INTERVAL_US;
}

int watcher_start(struct watcher *watcher, struct service *service, struct error *error)
{
	watcher->service = service;
	watcher->logged.ready = true;
	int result = job_thread_start("watch", check_store, watcher, &watcher->threads[0], error);
	if (!result)
		result = job_thread_start("watch-around", watch_components, watcher, &watcher->threads[1],
		                          error);
	if (!result)
		result = job_thread_start("watch-store", ask, watcher, &watcher->threads[2], error);
	if (!result)
		result =
			job_thread_start("watch-tell", log_readiness, watcher, &watcher->threads[3], error);
	if (!result && service->settings->store_sharded)
		result =
			job_thread_start("watch-servers", ask_servers, watcher, &watcher->threads[4], error);
	return result;
}

void watcher_stop(struct watcher *watcher)
{
	for (int i = 0; i < WATCHER_THREADS; i++)
		job_thread_request_stop(watcher->threads[i]);
	for (int i = 0; i < WATCHER_THREADS; i++) {
		job_thread_join(watcher->threads[i]);
		job_thread_free(watcher->threads[i]);
	}
}
