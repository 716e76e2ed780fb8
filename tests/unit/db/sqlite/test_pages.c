/* The page size of the embedded store, what freed pages still contain, and that a transaction with
 * more changed pages than memory holds reads its own writes. */
#include <sqlite3.h>
#include <sys/stat.h>

#include "testing.h"
#include "db/db.h"
#include "scratch.h"

#define ROWS "400" /* each row fills most of a page */
#define PAGES 400
#define SMALL_PAGE 2048
#define SECRET "nobody is to find this again"

static struct fixture {
	char directory[SCRATCH_MAX];
	char path[256];
	struct db *db;
} fixture;

static void open_store(void)
{
	char url[300];
	snprintf(url, sizeof url, "sqlite:%s", fixture.path);
	assert_int_equal(
		db_open(&(struct db_options){.url = url, .create = true}, NULL, &fixture.db, NULL), OK);
}

static void close_store(void)
{
	db_close(fixture.db);
	fixture.db = NULL;
}

static int set_up(void **state)
{
	fixture = (struct fixture){0};
	scratch_make(fixture.directory);
	snprintf(fixture.path, sizeof fixture.path, "%s/pages.db", fixture.directory);
	return 0;
}

static int tear_down(void **state)
{
	if (fixture.db)
		db_close(fixture.db);
	scratch_remove(fixture.directory);
	return 0;
}

static void run(struct db_connection *connection, const char *sql)
{
	assert_int_equal(db_begin(connection, NULL), OK);
	assert_int_equal(db_run(connection, sql, NULL), OK);
	assert_int_equal(db_commit(connection, NULL), OK);
	db_give(connection);
}

static int64_t ask(const char *pragma)
{
	struct db_connection *connection = db_take_writer(fixture.db);
	struct db_query *query = db_query(connection, pragma);
	int64_t number = db_step(query) ? db_integer(query, 0) : -1;
	assert_int_equal(db_end(query, NULL), OK);
	db_give(connection);
	return number;
}

static void fill(void)
{
	run(db_take_writer(fixture.db),
	    "CREATE TABLE kept (n INTEGER PRIMARY KEY, text TEXT);"
	    "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c LIMIT " ROWS ") "
	    "INSERT INTO kept SELECT n, '" SECRET "' || printf('%.*c', 1700, 'x') FROM c");
}

/* Reads the file as any other program does. */
static int64_t number_in(const char *path, const char *sql)
{
	sqlite3 *sqlite;
	sqlite3_stmt *statement;
	assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(sqlite, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	int64_t number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(sqlite);
	return number;
}

static void check_page_size(int64_t expected)
{
	char copy[300];
	fill();
	snprintf(copy, sizeof copy, "%s/copy.db", fixture.directory);
	assert_int_equal(db_backup(fixture.db, copy, NULL), OK);
	close_store();
	open_store();
	run(db_take_writer(fixture.db), "DELETE FROM kept WHERE n > 7");
	close_store();
	assert_int_equal(number_in(fixture.path, "PRAGMA page_size"), expected);
	assert_int_equal(number_in(fixture.path, "SELECT count(*) FROM kept"), 7);
	assert_int_equal(number_in(copy, "PRAGMA page_size"), expected);
	assert_int_equal(number_in(copy, "SELECT count(*) FROM kept"), atoi(ROWS));
}

TEST_CASE(pages_of_a_new_file_are_small)
{
	open_store();
	assert_int_equal(ask("PRAGMA max_page_count"), INT64_C(4294967294)); /* no limit of its own */
	check_page_size(SMALL_PAGE);
}

TEST_CASE(a_file_of_before_keeps_its_pages)
{
	sqlite3 *sqlite;
	assert_int_equal(sqlite3_open(fixture.path, &sqlite), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(sqlite, "PRAGMA page_size = 4096; CREATE TABLE before (n)", NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(sqlite);
	open_store();
	check_page_size(4096);
}

static off_t log_size(void)
{
	char path[300];
	struct stat status;
	snprintf(path, sizeof path, "%s-wal", fixture.path);
	assert_int_equal(stat(path, &status), 0);
	return status.st_size;
}

/* Searches the closed store, which has no WAL any more. */
static bool holds_secret(void)
{
	char command[400];
	snprintf(command, sizeof command, "grep -q '" SECRET "' %s", fixture.path);
	int status = system(command);
	assert_true(status == 0 || status == 0x100);
	return status == 0;
}

TEST_CASE(what_a_registrar_frees_is_not_written)
{
	open_store();
	fill();
	off_t before = log_size();
	run(db_take_registrar(fixture.db, 0, 0), "DELETE FROM kept");
	assert_true(log_size() - before < PAGES * SMALL_PAGE / 10);
}

TEST_CASE(what_anybody_else_frees_is_overwritten)
{
	open_store();
	fill();
	run(db_take_registrar(fixture.db, 0, 0), "UPDATE kept SET n = n WHERE n = 1");
	run(db_take_writer(fixture.db), "DELETE FROM kept WHERE n > 1");
	close_store();
	assert_true(holds_secret());
	open_store();
	run(db_take_writer(fixture.db), "DELETE FROM kept");
	close_store();
	assert_false(holds_secret());
}

static void write_mark(struct db_connection *writer, int64_t row, int64_t mark)
{
	struct db_query *query =
		db_query(writer, "UPDATE kept SET text = printf('%08d%.*c', $2, 1700, 'x') WHERE n = $1");
	db_bind_integer(query, row);
	db_bind_integer(query, mark);
	assert_int_equal(db_execute(query, NULL, NULL), OK);
}

static int64_t read_mark(struct db_connection *connection, int64_t row)
{
	struct db_query *query =
		db_query(connection, "SELECT CAST(substr(text, 1, 8) AS INTEGER) FROM kept WHERE n = $1");
	db_bind_integer(query, row);
	assert_true(db_step(query));
	int64_t mark = db_integer(query, 0);
	assert_int_equal(db_end(query, NULL), OK);
	return mark;
}

/* Pages that do not fit into memory are in the WAL before the commit, the last of them in a buffer
 * that is not written out yet. */
TEST_CASE(a_large_transaction_reads_what_it_wrote)
{
	int64_t marks[PAGES + 1] = {0};
	uint32_t at = 1;
	open_store();
	fill();
	struct db_connection *writer = db_take_writer(fixture.db);
	assert_int_equal(db_run(writer, "PRAGMA cache_size = 10", NULL), OK);
	assert_int_equal(db_begin(writer, NULL), OK);
	for (int64_t row = 1; row <= PAGES; row++)
		write_mark(writer, row, marks[row] = row);
	for (int64_t mark = 1000; mark < 5000; mark++) {
		at = at * 1664525 + 1013904223;
		int64_t written = (at >> 16) % 40 + 1; /* few, so that they recur soon */
		int64_t read = (at >> 24) % 40 + 1;
		write_mark(writer, written, marks[written] = mark);
		assert_int_equal(read_mark(writer, read), marks[read]);
	}
	assert_int_equal(db_commit(writer, NULL), OK);
	for (int64_t row = 1; row <= PAGES; row++)
		assert_int_equal(read_mark(writer, row), marks[row]);
	db_give(writer);
}

TEST_MAIN_EACH(set_up, tear_down)
