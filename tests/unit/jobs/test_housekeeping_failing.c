/* Housekeeping, with each call failing in turn: no referenced object is ever marked or deleted, and
 * orphans are removed in the end. */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "testing.h"
#include "failing.h"
#include "jobs/internal.h"
#include "office.h"

#define KINDS (FAILING_MEMORY | FAILING_FILES | FAILING_SQLITE | FAILING_PARTS | FAILING_ARENAS)

static const atomic_bool stopping;
static struct office office;
static struct housekeeping housekeeping;
static struct error error;

static char *path_of(const char *prefix, const char *object)
{
	static char path[400];
	snprintf(path, sizeof path, "%s/content/%s%s", office.sample.directory, prefix, object);
	return path;
}

static bool exists(const char *prefix, const char *object)
{
	return access(path_of(prefix, object), F_OK) == 0;
}

/* By the clock of the file system, which is not that of this process when tests/clock moves it. */
static void make_old(const char *prefix, const char *object)
{
	struct stat status;
	assert_int_equal(stat(path_of(prefix, object), &status), 0);
	struct timespec old = {.tv_sec = status.st_mtim.tv_sec - 90000};
	struct timespec times[2] = {old, old};
	assert_int_equal(utimensat(AT_FDCWD, path_of(prefix, object), times, 0), 0);
}

static void write_orphan(char name[CONTENT_NAME_MAX])
{
	struct content_writer *writer;
	content_fresh_name("event", name);
	assert_int_equal(content_write_begin(office.service.content, &writer, &error), OK);
	assert_int_equal(content_write_commit(writer, name, &error), OK);
	make_old("", name);
}

/* The place has belonged to the installation for a long time. */
static void claim_long_ago(void)
{
	FILE *file = fopen(path_of("", CONTENT_MARKER), "w");
	assert_non_null(file);
	fprintf(file, "constancia content 1\ninstallation %s\nsince 2020-01-01T00:00:00.000000Z\n",
	        office.service.installation);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	office_open(&office, MODALITY_CONTENT, 1000);
	office.settings.content_keep_swept = US_PER_DAY;
	housekeeping = (struct housekeeping){.service = &office.service, .holder = "this node"};
	assert_int_equal(lease_renewer_start(&housekeeping.lease_renewer, &error), OK);
	claim_long_ago();
	return 0;
}

static int tear_down(void **state)
{
	lease_renewer_stop(housekeeping.lease_renewer);
	office_close(&office);
	return 0;
}

/* Runs it after its interval. */
static void run(void)
{
	housekeeping.next_us = 0;
	assert_true(housekeeping_run(&housekeeping, &stopping) > 0);
}

/* A second node finds the lease held. */
TEST_CASE(one_node_sweeps_at_a_time)
{
	char orphan[CONTENT_NAME_MAX];
	bool taken = false;
	struct store *store = office.service.store;
	write_orphan(orphan);
	assert_int_equal(store_take_lease(store, LEASE_SWEEP, "another", store_now_us(store),
	                                  60 * US_PER_SECOND, &taken, &error),
	                 OK);
	assert_true(taken);
	run();
	assert_false(exists("swept/", orphan));
	assert_int_equal(store_end_lease(store, LEASE_SWEEP, "another", &error), OK);
	run();
	assert_true(exists("swept/", orphan));
}

TEST_CASE(what_has_a_name_is_never_swept)
{
	char named[CONTENT_NAME_MAX], orphan[CONTENT_NAME_MAX];
	office_register_object(&office, slice_of("kept"), "kept.bin", named);
	make_old("", named);
	for (int at = 1;; at += 1 + at / 8) { /* every kind of call fails, but not every call */
		write_orphan(orphan);
		failing_arm(KINDS, at);
		run();
		const char *failed = failing_disarm();
		assert_true(exists("", named) && !exists("swept/", named));
		assert_true(exists("", orphan));
		if (!exists("swept/", orphan))
			assert_non_null(failed);
		run();
		assert_true(exists("swept/", orphan));
		make_old("swept/", orphan);
		failing_arm(KINDS, at);
		run();
		const char *again = failing_disarm();
		assert_true(exists("", named) && !exists("swept/", named));
		run();
		if (exists("", orphan) || exists("swept/", orphan))
			fail_msg("call %d, %s: it stays", at, again ? again : "none");
		if (!failed && !again)
			break;
	}
	assert_int_equal(atomic_load(&office.service.counters.unbalanced_accounts), 0);
}

/* An account is not disabled because the store cannot be read; an idle one is disabled in the
 * end. */
TEST_CASE(idle_accounts_are_disabled_once)
{
	struct account_record given = {.name = "Idle", .unpaid_limit = 1}, found;
	char idle[ID_SIZE];
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct store *store = office.service.store;
	int64_t now_us = clock_now_us();
	sample_register(&office.sample, MODE_LIVE, 1);
	office_start_jobs(&office);
	office_await_seal(&office, 1);
	office_stop_jobs(&office);
	assert_int_equal(
		store_create_account(store, &given, 0, now_us - 400 * US_PER_DAY, idle, &error), OK);
	for (int at = 1;; at += 1 + at / 4) {
		failing_arm(KINDS, at);
		run();
		const char *failed = failing_disarm();
		struct slice own = slice_of(office.sample.account_id);
		assert_int_equal(store_find_account(store, own, now_us, &arena, &found, &error), OK);
		assert_false(found.disabled);
		if (!failed)
			break;
	}
	assert_int_equal(store_find_account(store, slice_of(idle), now_us, &arena, &found, &error), OK);
	assert_true(found.disabled);
}

/* An orphan in a read-only copy may belong to the original. */
TEST_CASE(a_quiet_store_deletes_nothing)
{
	char orphan[CONTENT_NAME_MAX];
	write_orphan(orphan);
	atomic_store(&office.service.read_only_since_us, 1);
	run();
	assert_true(exists("", orphan) && !exists("swept/", orphan));
	atomic_store(&office.service.read_only_since_us, 0);
	run();
	assert_true(exists("swept/", orphan));
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, tear_down);
}
