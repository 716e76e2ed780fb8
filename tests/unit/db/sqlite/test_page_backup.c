/* Backups by pages: a chain of increments restores exactly the database that a complete copy at the
 * same moment has, whatever was written in between, and damage is found. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include "base/file.h"
#include "db/db.h"
#include "db/sqlite/page_chain.h"
#include "scratch.h"

#define ROUNDS 6
#define SEEDS 10

static struct fixture {
	char directory[SCRATCH_MAX], url[400];
	char paths[ROUNDS + 1][4][400]; /* of a round: file, list, complete copy, its list */
	struct db_pages pages[ROUNDS + 1];
	struct db *db;
} fixture;

static void open_store(void)
{
	assert_int_equal(
		db_open(&(struct db_options){.url = fixture.url, .create = true}, NULL, &fixture.db, NULL),
		OK);
}

static int set_up(void **state)
{
	static const char *const names[] = {"file", "list", "complete", "complete-list"};
	fixture = (struct fixture){0};
	scratch_make(fixture.directory);
	snprintf(fixture.url, sizeof fixture.url, "sqlite:%s/pages.db", fixture.directory);
	for (int round = 0; round <= ROUNDS; round++)
		for (int i = 0; i < 4; i++)
			snprintf(fixture.paths[round][i], sizeof fixture.paths[round][i], "%s/%s-%d",
			         fixture.directory, names[i], round);
	open_store();
	return 0;
}

static int tear_down(void **state)
{
	db_close(fixture.db);
	scratch_remove(fixture.directory);
	return 0;
}

static void run(const char *sql)
{
	struct db_connection *connection = db_take_writer(fixture.db);
	assert_int_equal(db_begin(connection, NULL), OK);
	assert_int_equal(db_run(connection, sql, NULL), OK);
	assert_int_equal(db_commit(connection, NULL), OK);
	db_give(connection);
}

/* Runs a statement as an operator does while no service runs. */
static void run_outside(const char *sql)
{
	sqlite3 *sqlite;
	db_close(fixture.db);
	assert_int_equal(sqlite3_open(fixture.url + strlen("sqlite:"), &sqlite), SQLITE_OK);
	assert_int_equal(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(sqlite), SQLITE_OK);
	open_store();
}

/* Changes the database in one of several ways. */
static void change(unsigned *seed)
{
	char sql[300];
	unsigned size = (unsigned)rand_r(seed) % 3000 + 1, n = (unsigned)rand_r(seed) % 400;
	switch (rand_r(seed) % 7) {
	case 0:
	case 1:
		snprintf(sql, sizeof sql,
		         "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c LIMIT %u) "
		         "INSERT INTO kept (text) SELECT randomblob(%u) FROM c",
		         n + 1, size);
		break;
	case 2: snprintf(sql, sizeof sql, "DELETE FROM kept WHERE n %% 7 = %u", n % 7); break;
	case 3:
		snprintf(sql, sizeof sql, "UPDATE kept SET text = randomblob(%u) WHERE n %% 50 = %u", size,
		         n % 50);
		break;
	case 4: snprintf(sql, sizeof sql, "DELETE FROM kept WHERE n > %u", n); break;
	case 5: run_outside("VACUUM"); return;
	default:
		snprintf(sql, sizeof sql,
		         "CREATE TABLE t%u%u AS SELECT * FROM kept LIMIT 20; CREATE INDEX i%u%u ON "
		         "t%u%u (text)",
		         n, size, n, size, n, size);
	}
	run(sql);
}

static struct db_page_chain chain_of(const char *increments[ROUNDS], int full, int last)
{
	for (int i = full + 1; i <= last; i++)
		increments[i - full - 1] = fixture.paths[i][0];
	return (struct db_page_chain){fixture.paths[full][0], increments, (size_t)(last - full),
	                              fixture.paths[last][1], fixture.pages[last]};
}

static int back_up(int round, bool increment, struct error *error)
{
	struct db_page_target target = {fixture.paths[round][0],
	                                fixture.paths[round][1],
	                                increment ? fixture.paths[round - 1][1] : NULL,
	                                {0}};
	if (increment)
		target.base = fixture.pages[round - 1];
	return db_backup_pages(fixture.db, &target, &fixture.pages[round], error);
}

static struct sha256 digest_of(const char *path)
{
	uint64_t size;
	struct sha256 digest;
	DESCRIPTOR_AUTO int file = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(file_digest(file, path, &size, &digest, NULL), OK);
	return digest;
}

/* Compares the database that the chain builds with a complete copy. */
static void assert_chain(int full, int last)
{
	const char *increments[ROUNDS];
	char built[400];
	struct error error = {0};
	struct db_pages pages;
	struct db_page_target complete = {fixture.paths[last][2], fixture.paths[last][3], NULL, {0}};
	struct db_page_chain chain = chain_of(increments, full, last);
	assert_int_equal(db_backup_pages(fixture.db, &complete, &pages, &error), OK);
	int result = page_chain_check(&chain, &error);
	if (result)
		fail_msg("round %d: %s", last, error_reason(&error, result));
	snprintf(built, sizeof built, "%s/built-%d", fixture.directory, last);
	result = page_chain_build(&chain, built, &error);
	if (result)
		fail_msg("round %d: %s", last, error_reason(&error, result));
	struct sha256 one = digest_of(built), other = digest_of(complete.path);
	assert_memory_equal(one.bytes, other.bytes, SHA256_SIZE);
	sqlite3 *sqlite;
	sqlite3_stmt *query;
	assert_int_equal(sqlite3_open_v2(built, &sqlite, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(sqlite, "PRAGMA integrity_check", -1, &query, NULL), 0);
	assert_int_equal(sqlite3_step(query), SQLITE_ROW);
	assert_string_equal(sqlite3_column_text(query, 0), "ok");
	sqlite3_finalize(query);
	sqlite3_close(sqlite);
	unlink(built);
	unlink(complete.path);
	unlink(complete.list_path);
}

TEST_CASE(a_chain_is_the_database_whatever_was_written)
{
	for (unsigned number = 1; number <= SEEDS; number++) {
		unsigned seed = number;
		int full = 0;
		if (number > 1) {
			tear_down(NULL);
			set_up(NULL);
		}
		run("CREATE TABLE kept (n INTEGER PRIMARY KEY, text BLOB)");
		for (int round = 0; round <= ROUNDS; round++) {
			for (int i = rand_r(&seed) % 4; i > 0; i--)
				change(&seed);
			assert_int_equal(back_up(round, round > full, NULL), OK);
			assert_chain(full, round);
		}
	}
}

TEST_CASE(an_increment_has_only_what_changed)
{
	run("CREATE TABLE kept (n INTEGER PRIMARY KEY, text BLOB);"
	    "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c LIMIT 3000) "
	    "INSERT INTO kept (text) SELECT randomblob(1500) FROM c");
	assert_int_equal(back_up(0, false, NULL), OK);
	assert_int_equal(back_up(1, true, NULL), OK);
	assert_true(fixture.pages[1].changed_pages <= 1);
	run("UPDATE kept SET text = randomblob(1500) WHERE n = 1234");
	assert_int_equal(back_up(2, true, NULL), OK);
	assert_in_range(fixture.pages[2].changed_pages, 1, 3);
	assert_chain(0, 2);
}

/* Readers of the copy see one moment, and the writer is not kept from writing. */
TEST_CASE(the_copy_is_of_one_moment)
{
	run("CREATE TABLE kept (n INTEGER PRIMARY KEY, text BLOB); INSERT INTO kept VALUES (1, 'a')");
	struct db_connection *reader = db_take_reader(fixture.db);
	assert_int_equal(back_up(0, false, NULL), OK);
	run("INSERT INTO kept VALUES (2, 'b')");
	db_give(reader);
	assert_int_equal(back_up(1, true, NULL), OK);
	assert_chain(0, 1);
}

TEST_CASE(another_page_size_needs_a_complete_copy)
{
	struct error error = {0};
	run("CREATE TABLE kept (n INTEGER PRIMARY KEY, text BLOB)");
	assert_int_equal(back_up(0, false, NULL), OK);
	run_outside("PRAGMA journal_mode = DELETE; PRAGMA page_size = 8192; VACUUM");
	assert_int_equal(back_up(1, true, &error), ERR_REFUSED);
	assert_int_equal(access(fixture.paths[1][0], F_OK), -1);
	assert_int_equal(back_up(1, false, NULL), OK);
	assert_chain(1, 1);
}

static void flip(const char *path, off_t at)
{
	char byte;
	DESCRIPTOR_AUTO int file = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(file, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(file, &byte, 1, at), 1);
}

TEST_CASE(damage_of_any_file_of_a_chain_is_found)
{
	const char *increments[ROUNDS];
	struct stat facts;
	run("CREATE TABLE kept (n INTEGER PRIMARY KEY, text BLOB);"
	    "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c LIMIT 300) "
	    "INSERT INTO kept (text) SELECT randomblob(1500) FROM c");
	assert_int_equal(back_up(0, false, NULL), OK);
	run("UPDATE kept SET text = randomblob(1500) WHERE n % 9 = 1");
	assert_int_equal(back_up(1, true, NULL), OK);
	struct db_page_chain chain = chain_of(increments, 0, 1);
	const char *files[] = {fixture.paths[1][0], fixture.paths[1][1]};
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(stat(files[i], &facts), 0);
		for (off_t at = 0; at < facts.st_size; at += facts.st_size / 7) {
			flip(files[i], at);
			assert_int_equal(page_chain_check(&chain, NULL), ERR_CORRUPT);
			flip(files[i], at);
		}
	}
	flip(fixture.paths[0][0], 250 * 2048);
	assert_int_equal(page_chain_check(&chain, NULL), ERR_CORRUPT);
	flip(fixture.paths[0][0], 250 * 2048);
	assert_int_equal(page_chain_check(&chain, NULL), OK);
	assert_int_equal(stat(files[0], &facts), 0);
	assert_int_equal(truncate(files[0], facts.st_size - 2052), 0); /* a whole record */
	assert_int_equal(page_chain_check(&chain, NULL), ERR_CORRUPT);
	/* A damaged list is no base. */
	flip(files[1], 5);
	assert_int_equal(back_up(2, true, NULL), ERR_CORRUPT);
}

TEST_MAIN_EACH(set_up, tear_down)
