/* Certifications leave the reserve of the disk to registration. The test sets the free space. */
#include <pthread.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "testing.h"
#include "office.h"

#define MEBIBYTE ((uint64_t)1 << 20)

static struct office office;
static _Atomic uint64_t total_mebibytes, available_mebibytes;
static _Atomic int content_looks; /* number of checks in which content has space; negative: all */

int __wrap_statvfs64(const char *path, struct statvfs *ret);
int __wrap_statvfs64(const char *path, struct statvfs *ret)
{
	*ret = (struct statvfs){
		.f_frsize = MEBIBYTE, .f_blocks = total_mebibytes, .f_bavail = available_mebibytes};
	/* The node's own check of its disks does not count as that of a certification. */
	char thread[16] = "";
	pthread_getname_np(pthread_self(), thread, sizeof thread);
	if (strcmp(thread, "issuer") != 0)
		return 0;
	if (strstr(path, "/content") && content_looks >= 0 && content_looks-- <= 0) {
		content_looks = 0;
		ret->f_bavail = 0;
	}
	return 0;
}

static int set_up(void **state)
{
	office_open(&office, MODALITY_CONTENT, 1000);
	office.settings.certification_disk_reserve = 10;
	content_looks = -1;
	sample_register(&office.sample, MODE_TEST, 20);
	return 0;
}

static void set_disk(uint64_t total, uint64_t available)
{
	total_mebibytes = total;
	available_mebibytes = available;
}

static struct certification look(const char *id, struct arena *arena)
{
	struct certification certification;
	assert_int_equal(store_find_certification(office.service.store, office.sample.account,
	                                          office.sample.test_chain, slice_of(id), arena,
	                                          &certification, NULL),
	                 OK);
	return certification;
}

static void await_failed_attempt(const char *id, struct arena *arena)
{
	struct certification certification;
	do {
		usleep(5000);
		certification = look(id, arena);
	} while (certification.status == CERTIFICATION_PROCESSING && !certification.last_error);
	assert_int_equal(certification.status, CERTIFICATION_PROCESSING);
}

/* Enough space for the documents, but not for the reserve: it waits until there is enough. */
TEST_CASE(what_does_not_fit_now_waits)
{
	set_disk(1000, 110);
	office_start_jobs(&office);
	char id[ID_SIZE];
	office_request(&office, MODE_TEST, 1, 20, id);
	ARENA_AUTO struct arena arena = {.limit = 4 << 20};
	await_failed_attempt(id, &arena);
	assert_non_null(strstr(look(id, &arena).last_error, "are not free on the disk"));
	set_disk(1000, 500);
	struct certification certification = office_await_certification(&office, MODE_TEST, id);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	assert_int_equal(office_verify(&office, &certification), 0);
	assert_int_equal(atomic_load(&office.service.issuing_bytes), 0);
}

/* Content has its own disk, which others fill while the documents are made. */
TEST_CASE(the_disk_of_content_is_watched_too)
{
	set_disk(1000, 500);
	content_looks = 1;
	office_start_jobs(&office);
	char id[ID_SIZE];
	office_request(&office, MODE_TEST, 1, 20, id);
	ARENA_AUTO struct arena arena = {.limit = 4 << 20};
	await_failed_attempt(id, &arena);
	assert_null(strstr(look(id, &arena).last_error, "are not free on the disk"));
	content_looks = -1;
	struct certification certification = office_await_certification(&office, MODE_TEST, id);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
}

TEST_CASE(what_never_fits_fails_with_its_cause)
{
	set_disk(10, 10);
	office_start_jobs(&office);
	char id[ID_SIZE];
	office_request(&office, MODE_TEST, 1, 20, id);
	struct certification certification = office_await_certification(&office, MODE_TEST, id);
	assert_int_equal(certification.status, CERTIFICATION_FAILED);
	assert_int_equal(certification.attempts, 1);
	ARENA_AUTO struct arena arena = {.limit = 4 << 20};
	assert_non_null(strstr(look(id, &arena).last_error, "more than the disk"));
	assert_int_equal(atomic_load(&office.service.issuing_bytes), 0);
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, office_tear_down);
}
