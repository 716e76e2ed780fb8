/* Findings that a node reports about what it checks repeatedly, and that a state is unknown when it
 * can no longer be checked. The clock and all answers come from the test. */
#include <errno.h>
#include <sys/statvfs.h>

#include "testing.h"
#include "admin/readiness.h"
#include "base/clock.h"
#include "evidence/signers.h"
#include "seal/authority.h"
#include "service/watch.h"

#define START (INT64_C(1000) * US_PER_SECOND)
#define PENDING (INT64_C(20000) * US_PER_DAY)

static struct {
	int64_t now_us;
	int store;   /* its answer */
	int statvfs; /* errno */
	int64_t failed_boot_us;
	int64_t writing_us;
} world;
static struct settings settings;
static struct service service;

int64_t __wrap_clock_monotonic_us(void);
int64_t __wrap_clock_boot_us(void);
int64_t __wrap_store_now_us(const struct store *store);
int __wrap_store_oldest_pending(struct store *store, int64_t *ret_us, struct error *error);
int __wrap_store_last_seal_time(struct store *store, int64_t *ret_us, struct error *error);
int __wrap_store_last_backup(struct store *store, int64_t *ret_us, struct error *error);
int __wrap_store_count_replicas(struct store *store, struct store_replicas *ret,
                                struct error *error);
int __wrap_content_ready(struct content_store *content, struct error *error);
int __wrap_statvfs64(const char *path, struct statvfs *ret);
bool __wrap_authorities_get_health(struct authorities *authorities, size_t index,
                                   struct authority_health *ret);
bool __wrap_authorities_get_certificates(struct authorities *authorities, size_t index,
                                         struct authority_certificates *ret_seen,
                                         struct buf *path_pem);
void __wrap_registrar_read_gauges(struct registrar *registrar, struct gauges *ret);
int __wrap_service_clock_ready(const struct service *service, struct error *error);
int64_t __wrap_service_clock_ahead_us(const struct service *service);
int __wrap_service_signer_ready(const struct service *service, struct error *error);

int64_t __wrap_clock_monotonic_us(void)
{
	return world.now_us;
}

int64_t __wrap_clock_boot_us(void)
{
	return world.now_us;
}

int64_t __wrap_store_now_us(const struct store *store)
{
	return PENDING + world.now_us;
}

int __wrap_store_oldest_pending(struct store *store, int64_t *ret_us, struct error *error)
{
	*ret_us = PENDING;
	return world.store ? error_cause(error, world.store, "a page cannot be read") : OK;
}

int __wrap_store_last_seal_time(struct store *store, int64_t *ret_us, struct error *error)
{
	*ret_us = PENDING - 1;
	return OK;
}

int __wrap_store_last_backup(struct store *store, int64_t *ret_us, struct error *error)
{
	*ret_us = PENDING - 2;
	return OK;
}

int __wrap_store_count_replicas(struct store *store, struct store_replicas *ret,
                                struct error *error)
{
	*ret = (struct store_replicas){.required = 1};
	return OK;
}

int __wrap_content_ready(struct content_store *content, struct error *error)
{
	return OK;
}

int __wrap_statvfs64(const char *path, struct statvfs *ret)
{
	*ret = (struct statvfs){.f_frsize = 4096, .f_blocks = 1000, .f_bfree = 900, .f_bavail = 900};
	if (!world.statvfs || strcmp(path, "/content") != 0)
		return 0;
	errno = world.statvfs;
	return -1;
}

bool __wrap_authorities_get_certificates(struct authorities *authorities, size_t index,
                                         struct authority_certificates *ret_seen,
                                         struct buf *path_pem)
{
	return false;
}

bool __wrap_authorities_get_health(struct authorities *authorities, size_t index,
                                   struct authority_health *ret)
{
	*ret = (struct authority_health){.host = "tsa.example",
	                                 .reason = "HTTP 503",
	                                 .kind = AUTHORITY_QUALIFIED,
	                                 .fails = true,
	                                 .failed_boot_us = world.failed_boot_us};
	return index == 0;
}

void __wrap_registrar_read_gauges(struct registrar *registrar, struct gauges *ret)
{
	ret->writing_us = world.writing_us;
}

int __wrap_service_clock_ready(const struct service *asked, struct error *error)
{
	return OK;
}

int64_t __wrap_service_clock_ahead_us(const struct service *asked)
{
	return 0;
}

int __wrap_service_signer_ready(const struct service *asked, struct error *error)
{
	return OK;
}

static int set_up(void **state)
{
	memset(&world, 0, sizeof world);
	world.now_us = world.failed_boot_us = START;
	settings = (struct settings){.store_url = "sqlite:/store/constancia.db",
	                             .content_url = "file:/content",
	                             .service_data_dir = "/data",
	                             .signer_directory = "/data/signer",
	                             .seal_interval = US_PER_SECOND,
	                             .store_backup_warn = US_PER_SECOND,
	                             .store_disk_warn = 10};
	memset(&service, 0, sizeof service);
	service.settings = &settings;
	service.development = true;
	service.watch = watch_make();
	return service.watch ? 0 : -1;
}

static int tear_down(void **state)
{
	watch_free(service.watch);
	return 0;
}

/* Returns the text of a finding that contains `about`; NULL if there is none. */
static const char *found(enum concern concern, const char *about)
{
	static struct readiness readiness;
	struct stores_state stores = {0};
	readiness_read(&service, &stores, &readiness);
	for (size_t i = 0; i < readiness.count; i++)
		if (readiness.items[i].concern == concern && strcmp(readiness.items[i].about, about) == 0)
			return readiness.items[i].text;
	return NULL;
}

static struct gauges gauges_now(void)
{
	struct gauges gauges = {0};
	service_read_gauges(&service, &gauges);
	return gauges;
}

static void look_for(int64_t time_us)
{
	for (int64_t until_us = world.now_us + time_us; world.now_us < until_us;) {
		world.now_us += WATCH_INTERVAL_US;
		watch_check_store(&service);
	}
}

TEST_CASE(a_store_that_cannot_be_read_is_not_told_as_it_was)
{
	watch_check_store(&service);
	world.now_us += 20 * US_PER_SECOND;
	assert_non_null(found(CONCERN_SEALING, ""));
	assert_non_null(found(CONCERN_REPLICAS, ""));
	assert_non_null(found(CONCERN_BACKUP, ""));
	assert_int_equal(gauges_now().oldest_pending_us, PENDING);
	world.store = ERR_IO;
	look_for(WATCH_STALE_US - 30 * US_PER_SECOND);
	assert_null(found(CONCERN_WATCH, "store"));
	assert_int_equal(gauges_now().oldest_pending_us, PENDING);
	look_for(60 * US_PER_SECOND);
	const char *text = found(CONCERN_WATCH, "store");
	assert_non_null(text);
	assert_non_null(strstr(text, "a page cannot be read"));
	assert_null(found(CONCERN_SEALING, ""));
	assert_null(found(CONCERN_REPLICAS, ""));
	assert_null(found(CONCERN_BACKUP, ""));
	struct gauges gauges = gauges_now();
	assert_int_equal(gauges.oldest_pending_us, GAUGE_UNKNOWN);
	assert_int_equal(gauges.last_seal_us, GAUGE_UNKNOWN);
	assert_int_equal(gauges.last_backup_us, GAUGE_UNKNOWN);
	assert_int_equal(gauges.replicas, GAUGE_UNKNOWN);
	world.store = OK;
	look_for(WATCH_INTERVAL_US);
	assert_null(found(CONCERN_WATCH, "store"));
	assert_int_equal(gauges_now().oldest_pending_us, PENDING);
}

TEST_CASE(a_store_that_never_could_be_read_is_told)
{
	world.store = ERR_IO;
	look_for(WATCH_STALE_US);
	assert_null(found(CONCERN_WATCH, "store"));
	look_for(WATCH_INTERVAL_US);
	assert_non_null(found(CONCERN_WATCH, "store"));
}

TEST_CASE(a_disk_that_cannot_be_looked_at_is_told)
{
	watch_check_store(&service);
	watch_check_disks(&service);
	assert_true(watch_get_observation(&service).disks[PLACE_CONTENT].known);
	assert_null(found(CONCERN_WATCH, place_text(PLACE_CONTENT)));
	world.statvfs = EIO;
	watch_check_disks(&service);
	assert_false(watch_get_observation(&service).disks[PLACE_CONTENT].known);
	const char *text = found(CONCERN_WATCH, place_text(PLACE_CONTENT));
	assert_non_null(text);
	assert_non_null(strstr(text, strerror(EIO)));
	assert_null(found(CONCERN_WATCH, place_text(PLACE_DATA)));
	settings.content_url = "s3://evidence/mine"; /* there is no such disk */
	watch_check_disks(&service);
	assert_null(found(CONCERN_WATCH, place_text(PLACE_CONTENT)));
}

/* The metric has the value of watch_get_authority. */
TEST_CASE(an_authority_that_is_not_asked_any_more_does_not_fail_for_ever)
{
	struct authority_status watched;
	service.authorities = (struct authorities *)&world; /* used by wrapped functions only */
	world.now_us += WATCH_AUTHORITY_FAILS_US - 1;
	assert_true(watch_get_authority(&service, 0, &watched));
	assert_true(watched.fails);
	assert_non_null(found(CONCERN_AUTHORITY, "tsa.example"));
	world.now_us++;
	assert_true(watch_get_authority(&service, 0, &watched));
	assert_false(watched.fails);
	assert_null(found(CONCERN_AUTHORITY, "tsa.example"));
	service.authorities = NULL;
}

TEST_CASE(a_batch_that_is_not_written_is_reported)
{
	settings.store_commit_timeout = 5 * US_PER_SECOND;
	world.writing_us = 15 * US_PER_SECOND;
	assert_null(found(CONCERN_REGISTRATION, ""));
	world.writing_us++;
	const char *text = found(CONCERN_REGISTRATION, "");
	assert_non_null(text);
	assert_non_null(strstr(text, "for 15 s"));
	static struct readiness readiness;
	struct stores_state stores = {0};
	readiness_read(&service, &stores, &readiness);
	assert_true(readiness.ready);
	stores.store = ERR_UNAVAILABLE; /* reported as such */
	readiness_read(&service, &stores, &readiness);
	assert_int_equal(readiness_count(&readiness, CONCERN_REGISTRATION), 0);
}

TEST_MAIN_EACH(set_up, tear_down)
