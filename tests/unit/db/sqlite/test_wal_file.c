/* What reaches the write-ahead log, in which order, and what of a transaction that has no room. */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "testing.h"
#include "db/sqlite/sqlite_internal.h"
#include "scratch.h"

#define KIB 1024
#define LOG_HEAD_SIZE 32

static struct fixture {
	char directory[SCRATCH_MAX];
	struct db *db;
	int64_t rows;
} fixture;

/* ---- the calls that replace those of the C library, for SQLite too ---- */

static off64_t room = INT64_MAX; /* writes to the log beyond this fail */
static off64_t unsynced_from;    /* of the log's unsynced bytes; -1: none */
static off64_t unsynced_to;
static bool head_unsynced; /* a new head, which no sync has covered yet */
static int heads, writes;

static bool is_log(int descriptor)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	ssize_t size = readlink(link, path, sizeof path - 1);
	path[size < 0 ? 0 : size] = '\0';
	const size_t ending = strlen(SQLITE_LOG_SUFFIX);
	return (size_t)size >= ending && strcmp(path + size - ending, SQLITE_LOG_SUFFIX) == 0;
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset)
{
	if (is_log(file)) {
		if (offset + (off64_t)size > room) {
			errno = ENOSPC;
			return -1;
		}
		assert_false(head_unsynced); /* a head is written alone, and synced */
		head_unsynced = offset == 0 && fixture.db;
		heads += offset == 0;
		writes++;
		if (head_unsynced)
			assert_int_equal(size, LOG_HEAD_SIZE);
		unsynced_from = unsynced_from < 0 || offset < unsynced_from ? offset : unsynced_from;
		unsynced_to = offset + (off64_t)size > unsynced_to ? offset + (off64_t)size : unsynced_to;
	}
	return syscall(SYS_pwrite64, file, bytes, size, offset);
}

static int sync_by(long number, int file)
{
	if (is_log(file)) {
		unsynced_from = -1;
		unsynced_to = 0;
		head_unsynced = false;
	}
	return (int)syscall(number, file);
}

int fsync(int file)
{
	return sync_by(SYS_fsync, file);
}

int fdatasync(int file)
{
	return sync_by(SYS_fdatasync, file);
}

/* ---- a store ---- */

static int insert(int64_t bytes)
{
	struct db_connection *writer = db_take_writer(fixture.db);
	int result = db_begin(writer, NULL);
	struct db_query *query = db_query(writer, "INSERT INTO kept VALUES (zeroblob($1))");
	db_bind_integer(query, bytes);
	if (!result)
		result = db_execute(query, NULL, NULL);
	if (result)
		sqlite_rollback(writer);
	else
		result = db_commit(writer, NULL);
	db_give(writer);
	fixture.rows += !result;
	return result;
}

static int open_store(bool create)
{
	char url[300];
	snprintf(url, sizeof url, "sqlite:%s/logged.db", fixture.directory);
	return db_open(&(struct db_options){.url = url, .create = create}, NULL, &fixture.db, NULL);
}

static int set_up(void **state)
{
	fixture = (struct fixture){0};
	room = INT64_MAX;
	unsynced_from = -1;
	scratch_make(fixture.directory);
	assert_int_equal(open_store(true), OK);
	struct db_connection *writer = db_take_writer(fixture.db);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(db_run(writer, "CREATE TABLE kept (bytes BLOB)", NULL), OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
	return 0;
}

static int tear_down(void **state)
{
	if (fixture.db)
		db_close(fixture.db);
	scratch_remove(fixture.directory);
	return 0;
}

static off64_t log_size(void)
{
	sqlite3_file *log = NULL;
	sqlite3_int64 size = 0;
	sqlite3_file_control(sqlite_db(fixture.db)->writer.sqlite, NULL, SQLITE_FCNTL_JOURNAL_POINTER,
	                     &log);
	assert_int_equal(log->pMethods->xFileSize(log, &size), SQLITE_OK);
	return size;
}

static void check_rows(void)
{
	struct db_connection *reader = db_take_reader(fixture.db);
	struct db_query *query = db_query(reader, "SELECT count(*) FROM kept");
	assert_true(db_step(query));
	assert_int_equal(db_integer(query, 0), fixture.rows);
	assert_int_equal(db_end(query, NULL), OK);
	db_give(reader);
}

/* Small ones, and one larger than the memory of the writer, whose first pages are written before
 * its commit. */
static void a_commit_is_written_and_synced(void **state)
{
	static const int64_t sizes[] = {10, 50 * KIB, 200 * KIB, 9000 * KIB, 10};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		off64_t before = log_size();
		assert_int_equal(insert(sizes[i]), OK);
		assert_true(log_size() > before);
		assert_int_equal(unsynced_from, -1);
	}
	check_rows();
}

static void check_filled(const char *with)
{
	struct db_connection *reader = db_take_reader(fixture.db);
	struct db_query *query =
		db_query(reader, "SELECT count(*) FROM kept WHERE length(bytes) = 3000 AND"
	                     " CAST(bytes AS TEXT) = replace(hex(zeroblob(1500)), '0', $1)");
	db_bind_string(query, with);
	assert_true(db_step(query));
	assert_int_equal(db_integer(query, 0), 3000);
	assert_int_equal(db_end(query, NULL), OK);
	query = db_query(reader, "PRAGMA integrity_check");
	assert_true(db_step(query));
	assert_true(slice_is(db_text(query, 0), "ok"));
	assert_int_equal(db_end(query, NULL), OK);
	db_give(reader);
}

/* Their frames are written again, where they are, and the following ones get other checksums. */
static void pages_may_change_again_after_they_were_written(void **state)
{
	struct db_connection *writer = db_take_writer(fixture.db);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(
		db_run(
			writer,
			"WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c LIMIT 3000) "
			"INSERT INTO kept SELECT CAST(replace(hex(zeroblob(1500)), '0', 'a') AS BLOB) FROM c",
			NULL),
		OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			db_run(writer,
		           "UPDATE kept SET bytes = CAST(replace(CAST(bytes AS TEXT), 'a', 'b') AS BLOB);"
		           "UPDATE kept SET bytes = CAST(replace(CAST(bytes AS TEXT), 'b', 'a') AS BLOB)"
		           " WHERE rowid % 7 = 0;"
		           "UPDATE kept SET bytes = CAST(replace(CAST(bytes AS TEXT), 'a', 'b') AS BLOB)",
		           NULL),
			OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
	check_filled("b");
	/* As a kill leaves it. */
	char command[SCRATCH_MAX + 100];
	snprintf(command, sizeof command, "cd %s && mkdir k && cp logged.db logged.db-wal k",
	         fixture.directory);
	assert_int_equal(system(command), 0);
	db_close(fixture.db);
	fixture.db = NULL;
	snprintf(command, sizeof command, "cd %s && mv k/* .", fixture.directory);
	assert_int_equal(system(command), 0);
	assert_int_equal(open_store(false), OK);
	check_filled("b");
}

/* A disk may write out of order: what follows the head of the former turn must not be overwritten
 * while that head could still be found. */
static void the_head_of_a_turn_is_synced_before_anything_follows(void **state)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(insert(100 * KIB), OK);
		int before = heads;
		assert_int_equal(sqlite3_wal_checkpoint_v2(sqlite_db(fixture.db)->writer.sqlite, NULL,
		                                           SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
		                 SQLITE_OK);
		assert_int_equal(insert(200 * KIB), OK);
		assert_int_equal(heads, before + 1);
	}
	check_rows();
}

/* Also while there is no more room, and after a failure in the middle of a buffer. */
static void what_has_no_room_is_reported_and_forgotten(void **state)
{
	assert_int_equal(insert(10), OK);
	room = log_size() + 100 * KIB;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(insert(150 * KIB), ERR_NO_SPACE);
		assert_int_equal(insert(9000 * KIB), ERR_NO_SPACE);
		assert_int_equal(insert(10), OK);
	}
	room = 0;
	assert_int_equal(insert(10), ERR_NO_SPACE);
	room = INT64_MAX;
	writes = 0;
	assert_true(log_size() > 0);
	check_rows();
	assert_int_equal(writes, 0);
	assert_int_equal(insert(200 * KIB), OK);
	assert_false(db_is_poisoned(fixture.db));
	db_close(fixture.db);
	fixture.db = NULL;
	assert_int_equal(open_store(false), OK);
	check_rows();
}

/* After a failed sync it may be the only good copy of pages of an earlier, partial checkpoint. */
static void a_poisoned_store_keeps_its_log(void **state)
{
	char path[SCRATCH_MAX + 32];
	snprintf(path, sizeof path, "%s/logged.db" SQLITE_LOG_SUFFIX, fixture.directory);
	for (int poisoned = 0; poisoned < 2; poisoned++) {
		assert_int_equal(insert(100 * KIB), OK);
		atomic_store(&fixture.db->poisoned, poisoned);
		db_close(fixture.db);
		fixture.db = NULL;
		assert_int_equal(access(path, F_OK), poisoned ? 0 : -1);
		assert_int_equal(open_store(false), OK);
		check_rows();
	}
}

static sqlite3_mem_methods memory;
static bool out_of_memory;

static void *allocate(int size)
{
	return out_of_memory ? NULL : memory.xMalloc(size);
}

static void *reallocate(void *bytes, int size)
{
	return out_of_memory ? NULL : memory.xRealloc(bytes, size);
}

static void limit_memory(void)
{
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory), SQLITE_OK);
	sqlite3_mem_methods limited = memory;
	limited.xMalloc = allocate;
	limited.xRealloc = reallocate;
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &limited), SQLITE_OK);
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
}

static void a_rollback_needs_no_memory(void **state)
{
	struct db_connection *writer = db_take_writer(fixture.db);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(db_run(writer, "INSERT INTO kept VALUES (zeroblob(1000))", NULL), OK);
	out_of_memory = true;
	assert_int_equal(db_run(writer, "SELECT 1", NULL), ERR_NO_MEMORY);
	db_give(writer);
	out_of_memory = false;
	assert_int_equal(insert(10), OK);
	check_rows();
}

int main(void)
{
	limit_memory();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_rollback_needs_no_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_commit_is_written_and_synced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pages_may_change_again_after_they_were_written, set_up,
	                                    tear_down),
		cmocka_unit_test_setup_teardown(the_head_of_a_turn_is_synced_before_anything_follows,
	                                    set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_has_no_room_is_reported_and_forgotten, set_up,
	                                    tear_down),
		cmocka_unit_test_setup_teardown(a_poisoned_store_keeps_its_log, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
