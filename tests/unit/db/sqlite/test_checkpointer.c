/* The WAL is checkpointed while a writer continues, and is reset. */
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "testing.h"
#include "base/file.h"
#include "db/sqlite/sqlite_internal.h"
#include "scratch.h"

#define MOVED_WITHIN_US (20 * INT64_C(1000000))
#define MIB (1024 * 1024)
#define LOG_HEAD_SIZE 32

static struct fixture {
	char directory[SCRATCH_MAX];
	char path[256];
	struct db *db;
	int64_t rows;
} fixture;

/* ---- a file that accepts no write for a while, or takes a while for each page ---- */

static atomic_bool held;
static atomic_bool met;
static atomic_int slow_us;
static ino_t held_inode; /* the file's */

/* Replaces the function of the C library, for SQLite too. */
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset)
{
	struct stat status;
	while (atomic_load(&held) && fstat(file, &status) == 0 && status.st_ino == held_inode) {
		atomic_store(&met, true);
		usleep(1000);
	}
	int us = atomic_load(&slow_us);
	if (us && fstat(file, &status) == 0 && status.st_ino == held_inode)
		usleep((useconds_t)us);
	return syscall(SYS_pwrite64, file, bytes, size, offset);
}

static void find_file(void)
{
	struct stat status;
	assert_int_equal(stat(fixture.path, &status), 0);
	held_inode = status.st_ino;
}

static void hold_file(void)
{
	find_file();
	atomic_store(&met, false);
	atomic_store(&held, true);
}

static int set_up(void **state)
{
	fixture = (struct fixture){0};
	scratch_make(fixture.directory);
	snprintf(fixture.path, sizeof fixture.path, "%s/moved.db", fixture.directory);
	char url[300];
	snprintf(url, sizeof url, "sqlite:%s", fixture.path);
	assert_int_equal(
		db_open(&(struct db_options){.url = url, .create = true}, NULL, &fixture.db, NULL), OK);
	struct db_connection *writer = db_take_writer(fixture.db);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(db_run(writer, "CREATE TABLE kept (bytes BLOB)", NULL), OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
	return 0;
}

static void write_row(int64_t bytes)
{
	struct db_connection *writer = db_take_writer(fixture.db);
	assert_int_equal(db_begin(writer, NULL), OK);
	struct db_query *query = db_query(writer, "INSERT INTO kept VALUES (zeroblob($1))");
	db_bind_integer(query, bytes);
	assert_int_equal(db_execute(query, NULL, NULL), OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
	assert_int_equal(db_maintain(fixture.db, NULL), OK);
	fixture.rows++;
}

static void open_log(int *ret_file, struct stat *ret_status)
{
	char path[300];
	snprintf(path, sizeof path, "%s-wal", fixture.path);
	*ret_file = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(*ret_file >= 0);
	assert_int_equal(fstat(*ret_file, ret_status), 0);
}

static off_t log_size(void)
{
	struct stat status;
	DESCRIPTOR_AUTO int file = -1;
	open_log(&file, &status);
	return status.st_size;
}

/* Returns the number in the WAL header that each reset increments. */
static uint32_t log_turn(void)
{
	uint8_t head[LOG_HEAD_SIZE];
	struct stat status;
	DESCRIPTOR_AUTO int file = -1;
	open_log(&file, &status);
	assert_true(file_read_at(file, head, sizeof head, 0));
	return (uint32_t)head[12] << 24 | (uint32_t)head[13] << 16 | (uint32_t)head[14] << 8 | head[15];
}

/* Writes small rows until the WAL is reset; returns its size before that. */
static off_t write_until_anew(uint32_t turn)
{
	off_t before = 0;
	for (int64_t us = 0; log_turn() == turn; us += 100) {
		assert_true(us < MOVED_WITHIN_US);
		before = log_size();
		write_row(10);
		usleep(100);
	}
	return before;
}

/* Checks the file as any other program reads it. */
static void check_whole(void)
{
	db_close(fixture.db);
	fixture.db = NULL;
	sqlite3 *sqlite;
	sqlite3_stmt *statement;
	assert_int_equal(sqlite3_open(fixture.path, &sqlite), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(sqlite, "PRAGMA integrity_check", -1, &statement, NULL), 0);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(statement, 0), "ok");
	sqlite3_finalize(statement);
	assert_int_equal(sqlite3_prepare_v2(sqlite, "SELECT count(*) FROM kept", -1, &statement, NULL),
	                 0);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int64(statement, 0), fixture.rows);
	sqlite3_finalize(statement);
	sqlite3_close(sqlite);
}

/* A database with larger pages, as earlier versions created it. */
static int set_up_large(void **state)
{
	sqlite3 *sqlite;
	set_up(state);
	db_close(fixture.db);
	char url[300];
	snprintf(url, sizeof url, "sqlite:%s", fixture.path);
	assert_int_equal(sqlite3_open(fixture.path, &sqlite), SQLITE_OK);
	assert_int_equal(sqlite3_exec(sqlite,
	                              "PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM",
	                              NULL, NULL, NULL),
	                 SQLITE_OK);
	sqlite3_close(sqlite);
	assert_int_equal(db_open(&(struct db_options){.url = url}, NULL, &fixture.db, NULL), OK);
	assert_int_equal(sqlite_db(fixture.db)->page_size, 4096);
	write_row(10);
	return 0;
}

static int tear_down(void **state)
{
	if (fixture.db)
		db_close(fixture.db);
	scratch_remove(fixture.directory);
	return 0;
}

static void it_begins_anew_under_a_writer(void **state)
{
	for (int i = 0; i < 3; i++) {
		uint32_t turn = log_turn();
		write_row(40 * MIB);
		/* At most at its start, when the whole WAL is already checkpointed. */
		assert_true(log_turn() - turn <= 1);
		write_until_anew(log_turn());
	}
	assert_true(log_size() < 64 * MIB);
	check_whole();
}

/* Begins a read transaction on the empty table. */
static struct db_connection *begin_to_read(void)
{
	struct db_connection *reader = db_take_reader(fixture.db);
	assert_int_equal(db_begin(reader, NULL), OK);
	struct db_query *query = db_query(reader, "SELECT count(*) FROM kept");
	assert_true(db_step(query));
	assert_int_equal(db_integer(query, 0), 0);
	assert_int_equal(db_end(query, NULL), OK);
	return reader;
}

/* The WAL does not shrink by all of its growth at once, either. */
static void what_a_reader_needs_is_moved_afterwards(void **state)
{
	uint32_t turn = log_turn();
	struct db_connection *reader = begin_to_read();
	write_row(80 * MIB);
	for (int i = 0; i < 200; i++)
		write_row(10);
	assert_int_equal(log_turn(), turn);
	db_give(reader);
	off_t before = write_until_anew(turn);
	assert_true(before > 80 * MIB);
	assert_true(log_size() < before && log_size() >= before - 4 * MIB);
	check_whole();
}

/* The pages that were added meanwhile are few in comparison. */
static void while_a_long_log_is_moved_nobody_waits(void **state)
{
	uint32_t turn = log_turn();
	struct db_connection *reader = begin_to_read();
	for (int i = 0; i < 4; i++)
		write_row(40 * MIB);
	assert_true(log_size() > 128 * MIB);
	hold_file();
	db_give(reader);
	write_row(5 * MIB);
	while (!atomic_load(&met))
		usleep(1000);
	for (int i = 0; i < 100; i++)
		write_row(10);
	assert_int_equal(log_turn(), turn);
	atomic_store(&held, false);
	write_until_anew(turn);
	check_whole();
}

/* When pages are added faster than they are checkpointed, writers block until the checkpoint is
 * complete. */
static void a_slow_file_does_not_let_the_log_grow(void **state)
{
	const uint32_t turn = log_turn();
	find_file();
	atomic_store(&slow_us, 1);
	for (int rows = 0; log_turn() == turn; rows++) {
		assert_true(rows < 400);
		write_row(MIB);
	}
	atomic_store(&slow_us, 0);
	check_whole();
}

static void one_failure_does_not_end_it(void **state)
{
	sqlite_db(fixture.db)->mover.guard.base.failure = ERR_IO;
	uint32_t turn = log_turn();
	write_row(40 * MIB);
	write_until_anew(turn);
	check_whole();
}

static atomic_bool written;

/* Counts the rows repeatedly; -1 if the count ever decreases. */
static void *read_on(void *argument)
{
	int64_t *least = argument;
	while (!atomic_load(&written)) {
		struct db_connection *reader = db_take_reader(fixture.db);
		bool good = db_begin(reader, NULL) == OK;
		for (int i = 0; i < 3 && good; i++) {
			struct db_query *query = db_query(reader, "SELECT count(*) FROM kept");
			int64_t found = db_step(query) ? db_integer(query, 0) : -1;
			good = db_end(query, NULL) == OK && found >= *least;
			*least = found;
		}
		db_give(reader);
		if (!good) {
			*least = -1;
			break;
		}
	}
	return NULL;
}

static void *back_up(void *argument)
{
	int *result = argument;
	char path[300];
	for (int i = 0; !*result && !atomic_load(&written); i++) {
		snprintf(path, sizeof path, "%s/copy-%d.db", fixture.directory, i);
		*result = db_backup(fixture.db, path, NULL);
		unlink(path);
	}
	return NULL;
}

static void readers_and_a_backup_go_on(void **state)
{
	enum { READERS = 10 };
	pthread_t threads[READERS], backup;
	int64_t least[READERS] = {0};
	int backed_up = OK;
	atomic_store(&written, false);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, &least[i]), 0);
	assert_int_equal(pthread_create(&backup, NULL, back_up, &backed_up), 0);
	for (int i = 0; i < 6; i++) {
		for (int k = 0; k < 10; k++)
			write_row(4 * MIB);
		for (int k = 0; k < 100; k++)
			write_row(10);
	}
	atomic_store(&written, true);
	for (int i = 0; i < READERS; i++) {
		pthread_join(threads[i], NULL);
		assert_true(least[i] >= 0);
	}
	pthread_join(backup, NULL);
	assert_int_equal(backed_up, OK);
	check_whole();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_begins_anew_under_a_writer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_begins_anew_under_a_writer, set_up_large, tear_down),
		cmocka_unit_test_setup_teardown(what_a_reader_needs_is_moved_afterwards, set_up, tear_down),
		cmocka_unit_test_setup_teardown(while_a_long_log_is_moved_nobody_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_slow_file_does_not_let_the_log_grow, set_up_large,
	                                    tear_down),
		cmocka_unit_test_setup_teardown(one_failure_does_not_end_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(readers_and_a_backup_go_on, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
