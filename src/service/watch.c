#include "service/watch.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "base/tuned.h"
#include "seal/authority.h"
#include "store/events/segments.h"

#define CONTENT_EVERY_US (30 * US_PER_SECOND)
/* Reading a large store takes at most this fraction of the time. */
#define REST_FOR_EACH 20
#define REST_MAX_US (60 * US_PER_SECOND)

struct watch {
	pthread_mutex_t mutex;
	struct observation seen;
	/* All times are monotonic. */
	int64_t made_us;
	int64_t full_check_at_us; /* earliest next full check; used by watch_check_store only */
	int64_t content_asked_us; /* used by watch_check_disks only */
	atomic_int_fast64_t looking_since_us, looking_around_since_us; /* 0: not running */
	atomic_int_fast64_t asking_store_since_us, asking_content_since_us;
};

struct watch *watch_make(void)
{
	struct watch *watch = calloc(1, sizeof *watch);
	if (!watch)
		return NULL;
	pthread_mutex_init(&watch->mutex, NULL);
	watch->made_us = clock_monotonic_us();
	watch->seen.oldest_pending_us = watch->seen.last_seal_us = watch->seen.last_backup_us =
		TIME_NONE;
	return watch;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	pthread_mutex_destroy(&watch->mutex);
	free(watch);
}

static int64_t since(const atomic_int_fast64_t *began_us)
{
	int64_t us = atomic_load(began_us);
	return us ? clock_monotonic_us() - us : 0;
}

static void report_late(const atomic_int_fast64_t *asked_us, const char *what, int *result,
                        char cause[ERROR_CAUSE_MAX])
{
	if (since(asked_us) <= WATCH_ANSWER_LATE_US)
		return;
	*result = ERR_UNAVAILABLE;
	snprintf(cause, ERROR_CAUSE_MAX, "%s does not respond", what);
}

/* Clears values that are too old, because they may be wrong by now. */
static void clear_stale(const struct watch *watch, struct observation *seen)
{
	int64_t read_us = seen->at_us ? seen->at_us : watch->made_us;
	int64_t age_us = clock_monotonic_us() - read_us;
	if (age_us <= WATCH_STALE_US)
		return;
	seen->stale_us = age_us;
	seen->at_us = 0;
	seen->oldest_pending_us = seen->last_seal_us = seen->last_backup_us = TIME_NONE;
	seen->replicas = (struct store_replicas){0};
}

struct observation watch_get_observation(const struct service *service)
{
	struct watch *watch = service->watch;
	pthread_mutex_lock(&watch->mutex);
	struct observation seen = watch->seen;
	pthread_mutex_unlock(&watch->mutex);
	clear_stale(watch, &seen);
	report_late(&watch->asking_store_since_us, "the store", &seen.store, seen.store_cause);
	report_late(&watch->asking_content_since_us, "the content store", &seen.content,
	            seen.content_cause);
	return seen;
}

/* Stores the result of a readiness check of the store or the content store. */
static void note(struct watch *watch, int *kept, char kept_cause[ERROR_CAUSE_MAX], int result,
                 const struct error *error)
{
	pthread_mutex_lock(&watch->mutex);
	*kept = result;
	snprintf(kept_cause, ERROR_CAUSE_MAX, "%s", result ? error_reason(error, result) : "");
	pthread_mutex_unlock(&watch->mutex);
}

int64_t watch_hangs_us(const struct service *service)
{
	int64_t look_us = since(&service->watch->looking_since_us);
	int64_t around_us = since(&service->watch->looking_around_since_us);
	return look_us > around_us ? look_us : around_us;
}

bool watch_get_authority(const struct service *service, size_t index, struct authority_status *ret)
{
	struct authority_health health;
	if (!service->authorities || !authorities_get_health(service->authorities, index, &health))
		return false;
	*ret = (struct authority_status){
		.development = health.kind == AUTHORITY_DEVELOPMENT,
		.successes = health.successes,
		.failures = health.failures,
		.last_success_us = health.last_success_us,
		.fails = health.fails && clock_boot_us() - health.failed_boot_us < WATCH_AUTHORITY_FAILS_US,
		.failed_boot_us = health.failed_boot_us,
	};
	snprintf(ret->host, sizeof ret->host, "%s", health.host);
	snprintf(ret->reason, sizeof ret->reason, "%s", health.reason);
	return true;
}

/* ---- space ---- */

/* Retries after a full disk. A node that is not ready may get no registrations that would show that
 * there is space again. */
static void retry_space(struct service *service)
{
	if (atomic_load(&service->lacks_space) && store_confirm(service->store, NULL) == OK)
		atomic_store(&service->lacks_space, false);
}

/* ---- the store ---- */

void watch_check_ready(struct service *service)
{
	struct watch *watch = service->watch;
	struct error error = {0};
	atomic_store(&watch->asking_store_since_us, clock_monotonic_us());
	int result = store_ready(service->store, &error);
	note(watch, &watch->seen.store, watch->seen.store_cause, result, &error);
	atomic_store(&watch->asking_store_since_us, 0);
}

/* If the store does not respond, the old results are kept. */
void watch_check_servers(struct service *service)
{
	struct db_shard_server servers[DB_SHARD_SERVERS_MAX];
	struct watch *watch = service->watch;
	size_t count = 0, failing = 0;
	if (store_ask_shard_servers(service->store, servers, DB_SHARD_SERVERS_MAX, &count, NULL))
		return;
	pthread_mutex_lock(&watch->mutex);
	for (size_t i = 0; i < count && failing < FAILING_SERVERS_MAX; i++) {
		if (!servers[i].result)
			continue;
		struct failing_server *one = &watch->seen.failing[failing++];
		snprintf(one->name, sizeof one->name, "%.63s", servers[i].name);
		snprintf(one->cause, sizeof one->cause, "%s", servers[i].cause);
	}
	watch->seen.failing_count = failing;
	pthread_mutex_unlock(&watch->mutex);
}

int watch_read_limits(struct service *service, struct error *error)
{
	struct watch *watch = service->watch;
	struct bound_use bounds[BOUND_COUNT];
	int result = store_read_bounds(service->store, store_now_us(service->store),
	                               service->settings->account_stored_bytes, bounds, error);
	if (result)
		return result;
	pthread_mutex_lock(&watch->mutex);
	memcpy(watch->seen.bounds, bounds, sizeof bounds);
	watch->seen.bounds_known = true;
	pthread_mutex_unlock(&watch->mutex);
	return OK;
}

static bool check_whole_store(struct service *service)
{
	struct watch *watch = service->watch;
	struct store *store = service->store;
	int64_t pending_us, sealed_us, backup_us;
	struct store_replicas replicas;
	struct error error = {0};
	int result = store_oldest_pending(store, &pending_us, &error);
	if (!result)
		result = store_last_seal_time(store, &sealed_us, &error);
	if (!result)
		result = store_last_backup(store, &backup_us, &error);
	if (!result)
		result = store_count_replicas(store, &replicas, &error);
	pthread_mutex_lock(&watch->mutex);
	if (result) {
		snprintf(watch->seen.stale_cause, ERROR_CAUSE_MAX, "%s", error_reason(&error, result));
	} else {
		watch->seen.at_us = clock_monotonic_us();
		watch->seen.oldest_pending_us = pending_us;
		watch->seen.last_seal_us = sealed_us;
		watch->seen.last_backup_us = backup_us;
		watch->seen.replicas = replicas;
	}
	pthread_mutex_unlock(&watch->mutex);
	return !result;
}

void watch_check_store(struct service *service)
{
	struct watch *watch = service->watch;
	int64_t began_us = clock_monotonic_us();
	atomic_store(&watch->looking_since_us, began_us);
	retry_space(service);
	began_us = clock_monotonic_us();
	/* A failed check is repeated soon. */
	if (began_us >= watch->full_check_at_us && check_whole_store(service)) {
		int64_t now_us = clock_monotonic_us(), rest_us = REST_FOR_EACH * (now_us - began_us);
		rest_us = rest_us < REST_MAX_US ? rest_us : REST_MAX_US;
		watch->full_check_at_us = rest_us > WATCH_INTERVAL_US ? now_us + rest_us : 0;
	}
	atomic_store(&watch->looking_since_us, 0);
}

/* ---- disks ---- */

const char *place_text(enum place place)
{
	static const char *const texts[] = {"data", "store", "content", "signer"};
	return texts[place];
}

/* Uses the directory, because opening and closing the store's file would release the engine's
 * locks. */
static bool directory_of(const struct settings *settings, enum place place, char path[PATH_MAX])
{
	const char *const named[] = {
		[PLACE_DATA] = settings->service_data_dir,
		[PLACE_STORE] = db_url_path(settings->store_url),
		[PLACE_CONTENT] = settings_content_directory(settings),
		[PLACE_SIGNER] = settings->signer_directory,
	};
	if (!named[place] || strlen(named[place]) >= PATH_MAX)
		return false;
	snprintf(path, PATH_MAX, "%s", named[place]);
	char *end = place == PLACE_STORE ? strrchr(path, '/') : NULL;
	if (end)
		end[end == path] = '\0';
	else if (place == PLACE_STORE)
		snprintf(path, PATH_MAX, ".");
	return *path;
}

static struct disk check_disk(const struct settings *settings, enum place place)
{
	char path[PATH_MAX];
	struct statvfs found;
	struct disk disk = {0};
	if (!directory_of(settings, place, path))
		return disk;
	if (statvfs(path, &found) != 0) {
		disk.failed = errno;
		return disk;
	}
	if (!found.f_blocks)
		return disk;
	/* Space reserved for root is neither available nor counted as total. */
	uint64_t ours = found.f_blocks - found.f_bfree + found.f_bavail;
	uint64_t files = found.f_files - found.f_ffree + found.f_favail;
	disk.known = true;
	disk.size_bytes = (int64_t)(found.f_blocks * found.f_frsize);
	disk.free_bytes = (int64_t)(found.f_bavail * found.f_frsize);
	disk.free_permille = ours ? (int64_t)((double)found.f_bavail * 1000 / (double)ours) : 0;
	if (found.f_files && (double)found.f_favail * 1000 < (double)disk.free_permille * (double)files)
		disk.free_permille = (int64_t)((double)found.f_favail * 1000 / (double)files);
	return disk;
}

void watch_check_disks(struct service *service)
{
	struct watch *watch = service->watch;
	struct error error = {0};
	int64_t now_us = clock_monotonic_us();
	bool ask = !watch->content_asked_us ||
	           now_us >= watch->content_asked_us + tuned_up_to("content_us", CONTENT_EVERY_US);
	atomic_store(&watch->looking_around_since_us, now_us);
	for (enum place place = 0; place < PLACE_COUNT; place++) {
		struct disk disk = check_disk(service->settings, place);
		pthread_mutex_lock(&watch->mutex);
		watch->seen.disks[place] = disk;
		pthread_mutex_unlock(&watch->mutex);
	}
	if (ask) {
		watch->content_asked_us = now_us;
		atomic_store(&watch->asking_content_since_us, clock_monotonic_us());
		int result = content_ready(service->content, &error);
		note(watch, &watch->seen.content, watch->seen.content_cause, result, &error);
		atomic_store(&watch->asking_content_since_us, 0);
	}
	atomic_store(&watch->looking_around_since_us, 0);
}
