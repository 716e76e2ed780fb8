#include "service/watch.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "seal/authority.h"
#include "store/events/segments.h"

#define CONTENT_EVERY_US (30 * US_PER_SECOND)
/* A look at a large store takes at most this part of the time. */
#define REST_FOR_EACH 20
#define REST_MAX_US (60 * US_PER_SECOND)

struct watch {
	pthread_mutex_t mutex;
	struct observation seen;
	/* All monotonic. */
	int64_t made_us;
	int64_t whole_look_at_us; /* not before; of watch_look's thread alone */
	int64_t content_asked_us; /* of watch_look_around's */
	atomic_int_fast64_t looking_since_us, looking_around_since_us; /* 0: not now */
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

static void call_late(const atomic_int_fast64_t *asked_us, const char *what, int *result,
                      char cause[ERROR_CAUSE_MAX])
{
	if (since(asked_us) <= WATCH_ANSWER_LATE_US)
		return;
	*result = ERR_UNAVAILABLE;
	snprintf(cause, ERROR_CAUSE_MAX, "%s does not answer", what);
}

/* Of what was read too long ago nothing is told, rather than what may be wrong by now. */
static void forget_stale(const struct watch *watch, struct observation *seen)
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

struct observation watch_seen(const struct service *service)
{
	struct watch *watch = service->watch;
	pthread_mutex_lock(&watch->mutex);
	struct observation seen = watch->seen;
	pthread_mutex_unlock(&watch->mutex);
	forget_stale(watch, &seen);
	call_late(&watch->asking_store_since_us, "the store", &seen.store, seen.store_cause);
	call_late(&watch->asking_content_since_us, "the content store", &seen.content,
	          seen.content_cause);
	return seen;
}

/* What one of them answered to whether it is ready. */
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

bool watch_get_authority(const struct service *service, size_t index, struct watched_authority *ret)
{
	struct authority_health health;
	if (!service->authorities || !authorities_get_health(service->authorities, index, &health))
		return false;
	*ret = (struct watched_authority){
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

/* A node that is called not ready may be given no registration that would show it. */
static void try_space(struct service *service)
{
	if (atomic_load(&service->lacks_space) && store_confirm(service->store, NULL) == OK)
		atomic_store(&service->lacks_space, false);
}

/* ---- the store ---- */

void watch_ask_store(struct service *service)
{
	struct watch *watch = service->watch;
	struct error error = {0};
	atomic_store(&watch->asking_store_since_us, clock_monotonic_us());
	int result = store_ready(service->store, &error);
	note(watch, &watch->seen.store, watch->seen.store_cause, result, &error);
	atomic_store(&watch->asking_store_since_us, 0);
}

/* What they did not answer, because the store did not, stays as it was. */
void watch_ask_servers(struct service *service)
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

int watch_look_at_bounds(struct service *service, struct error *error)
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

static bool look_whole(struct service *service)
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

void watch_look(struct service *service)
{
	struct watch *watch = service->watch;
	int64_t began_us = clock_monotonic_us();
	atomic_store(&watch->looking_since_us, began_us);
	try_space(service);
	began_us = clock_monotonic_us();
	/* What failed is soon looked at again. */
	if (began_us >= watch->whole_look_at_us && look_whole(service)) {
		int64_t now_us = clock_monotonic_us(), rest_us = REST_FOR_EACH * (now_us - began_us);
		rest_us = rest_us < REST_MAX_US ? rest_us : REST_MAX_US;
		watch->whole_look_at_us = rest_us > WATCH_INTERVAL_US ? now_us + rest_us : 0;
	}
	atomic_store(&watch->looking_since_us, 0);
}

/* ---- disks ---- */

const char *place_text(enum place place)
{
	static const char *const texts[] = {"data", "store", "content", "signer"};
	return texts[place];
}

/* What an address of this scheme names; else NULL. */
static const char *path_of(const char *url, const char *scheme)
{
	size_t size = strlen(scheme);
	return strncmp(url, scheme, size) == 0 ? url + size : NULL;
}

/* The directory is asked: opening and closing the store's file would give up SQLite's locks. */
static bool directory_of(const struct settings *settings, enum place place, char path[PATH_MAX])
{
	const char *store = path_of(settings->store_url, "sqlite:");
	const char *const named[] = {
		[PLACE_DATA] = settings->service_data_dir,
		[PLACE_STORE] = store,
		[PLACE_CONTENT] = path_of(settings->content_url, "file:"),
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

static struct disk look_at_disk(const struct settings *settings, enum place place)
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
	/* What root alone may have is neither ours nor free. */
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

void watch_look_around(struct service *service)
{
	struct watch *watch = service->watch;
	struct error error = {0};
	int64_t now_us = clock_monotonic_us();
	bool ask = !watch->content_asked_us || now_us >= watch->content_asked_us + CONTENT_EVERY_US;
	atomic_store(&watch->looking_around_since_us, now_us);
	for (enum place place = 0; place < PLACE_COUNT; place++) {
		struct disk disk = look_at_disk(service->settings, place);
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
