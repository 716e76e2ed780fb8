/* What opening the embedded store does before anything is read from it. */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include <sqlite3.h>

#include "db/db.h"
#include "scratch.h"

#define MOVED_WITHIN_MS 20000

#define LOG "killed.db-wal"

struct fixture {
	char directory[SCRATCH_MAX];
	struct db *running;
};

static const char *failing; /* that number of syncs fails, of files whose path contains this */
static int failures;

int __real_fsync(int descriptor);
int __wrap_fsync(int descriptor);
int __wrap_fsync(int descriptor)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	ssize_t size = readlink(link, path, sizeof path - 1);
	path[size < 0 ? 0 : size] = '\0';
	if (!failing || failures == 0 || !strstr(path, failing))
		return __real_fsync(descriptor);
	failures--;
	errno = EIO;
	return -1;
}

/* A file system that has given up but reports successful syncs. */
static _Atomic int gave_up; /* errno; 0: it works */
int __real_fremovexattr(int descriptor, const char *name);
int __wrap_fremovexattr(int descriptor, const char *name);
int __wrap_fremovexattr(int descriptor, const char *name)
{
	if (!gave_up)
		return __real_fremovexattr(descriptor, name);
	errno = gave_up;
	return -1;
}

/* A COMMIT that runs out of memory after it has written the WAL. */
static bool commit_lacks_memory;
int __real_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement);
int __real_sqlite3_errcode(sqlite3 *sqlite);
int __wrap_sqlite3_errcode(sqlite3 *sqlite);

int __wrap_sqlite3_step(sqlite3_stmt *statement)
{
	int result = __real_sqlite3_step(statement);
	return commit_lacks_memory && strcmp(sqlite3_sql(statement), "COMMIT") == 0 ? SQLITE_NOMEM
	                                                                            : result;
}

int __wrap_sqlite3_errcode(sqlite3 *sqlite)
{
	return commit_lacks_memory ? SQLITE_NOMEM : __real_sqlite3_errcode(sqlite);
}

static int open_named(const struct fixture *fixture, const char *name, bool create,
                      struct db **ret_db)
{
	char url[128];
	snprintf(url, sizeof url, "sqlite:%s/%s", fixture->directory, name);
	return db_open(&(struct db_options){.url = url, .create = create}, NULL, ret_db, NULL);
}

static off_t log_size(const struct fixture *fixture)
{
	char path[128];
	struct stat status;
	snprintf(path, sizeof path, "%s/" LOG, fixture->directory);
	assert_int_equal(stat(path, &status), 0);
	return status.st_size;
}

/* "killed.db" is a store whose process was killed: its WAL has all commits. */
static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	char command[256];
	scratch_make(fixture->directory);
	assert_int_equal(open_named(fixture, "running.db", true, &fixture->running), OK);
	struct db_connection *writer = db_take_writer(fixture->running);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(
		db_run(writer, "CREATE TABLE kept (n BIGINT); INSERT INTO kept VALUES (7)", NULL), OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
	snprintf(command, sizeof command, "cd %s && cp running.db killed.db && cp running.db-wal " LOG,
	         fixture->directory);
	assert_int_equal(system(command), 0);
	failing = NULL;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	db_close(fixture->running);
	scratch_remove(fixture->directory);
	free(fixture);
	return 0;
}

static void check_and_close(struct db *db)
{
	struct db_connection *reader = db_take_reader(db);
	struct db_query *query = db_query(reader, "SELECT n FROM kept");
	assert_true(db_step(query));
	assert_int_equal(db_integer(query, 0), 7);
	assert_int_equal(db_end(query, NULL), OK);
	db_give(reader);
	db_close(db);
}

/* So nothing that is read depends on whether the WAL was synced. */
TEST_CASE(test_the_log_is_moved_first)
{
	struct db *db;
	assert_true(log_size(*state) > 0);
	assert_int_equal(open_named(*state, "killed.db", false, &db), OK);
	assert_int_equal(log_size(*state), 0);
	check_and_close(db);
}

/* A sync may report an earlier error, once for each file; the result of a second sync after writing
 * again is believed. An error that persists is reported, whichever file it is of. */
TEST_CASE(test_failing_syncs)
{
	const struct fixture *fixture = *state;
	static const char *const of[] = {LOG, "killed.db", ""};
	struct db *db;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		failing = *of[i] ? of[i] : fixture->directory;
		failures = INT_MAX;
		assert_int_equal(open_named(fixture, "killed.db", false, &db), ERR_IO);
	}
	failing = LOG;
	failures = 1;
	assert_int_equal(open_named(fixture, "killed.db", false, &db), OK);
	assert_int_equal(failures, 0);
	check_and_close(db);
}

/* The commit may be stored nevertheless. */
TEST_CASE_ON(a_commit_without_memory_is_not_known, struct fixture *fixture)
{
	struct db_connection *writer = db_take_writer(fixture->running);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(db_run(writer, "INSERT INTO kept VALUES (8)", NULL), OK);
	commit_lacks_memory = true;
	assert_int_equal(db_commit(writer, NULL), ERR_UNKNOWN_OUTCOME);
	commit_lacks_memory = false;
	db_give(writer);
	assert_false(db_is_poisoned(fixture->running));
	writer = db_take_writer(fixture->running);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(db_run(writer, "INSERT INTO kept VALUES (9)", NULL), OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
}

static void insert(struct fixture *fixture, int wanted)
{
	struct db_connection *writer = db_take_writer(fixture->running);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(db_run(writer, "INSERT INTO kept VALUES (8)", NULL), OK);
	assert_int_equal(db_commit(writer, NULL), wanted);
	db_give(writer);
}

/* SQLite does not notice: its syncs succeeded. */
TEST_CASE_ON(a_commit_on_what_gave_up_is_not_known, struct fixture *fixture)
{
	insert(fixture, OK);
	gave_up = EROFS;
	insert(fixture, ERR_UNKNOWN_OUTCOME);
	gave_up = 0;
	assert_true(db_is_poisoned(fixture->running));
	struct db_connection *writer = db_take_writer(fixture->running);
	assert_int_equal(db_begin(writer, NULL), ERR_UNAVAILABLE);
	db_give(writer);
}

/* Otherwise the WAL would be reset and overwrite what the file does not contain. */
TEST_CASE_ON(a_log_moved_on_what_gave_up_is_kept, struct fixture *fixture)
{
	struct db_connection *writer = db_take_writer(fixture->running);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(
		db_run(writer,
	           "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c LIMIT 40) "
	           "INSERT INTO kept SELECT zeroblob(1000000) FROM c",
	           NULL),
		OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
	gave_up = EIO;
	int result = db_maintain(fixture->running, NULL);
	for (int i = 0; i < MOVED_WITHIN_MS && !result; i++) {
		usleep(1000); /* the checkpointer runs concurrently */
		result = db_maintain(fixture->running, NULL);
	}
	assert_int_equal(result, ERR_IO);
	gave_up = 0;
	assert_true(db_is_poisoned(fixture->running));
}

TEST_CASE_ON(it_cannot_be_asked_everywhere, struct fixture *fixture)
{
	static const int numbers[] = {ENODATA, ENOTSUP, ENOSYS, EPERM, EACCES};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		gave_up = numbers[i];
		insert(fixture, OK);
	}
	gave_up = 0;
}

TEST_MAIN_EACH(set_up, tear_down)
