#include "testing.h"
#include "scratch.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "witness/witness_store.h"

#define ORIGIN "log.example/segments"

static char directory[SCRATCH_MAX];

static int set_up(void **state)
{
	(void)state;
	scratch_make(directory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(directory);
	return 0;
}

static struct witness_store *open_store(void)
{
	struct witness_store *store;
	assert_int_equal(witness_store_open(directory, &store, NULL), OK);
	return store;
}

static void put(struct witness_store *store, const char *origin, uint64_t size)
{
	BUF_AUTO struct buf text = {.limit = 4096};
	struct witness_record record = {.checkpoint = {.size = size, .root = sha256_of(&size, 8)},
	                                .signatures = slice_of("of the log\n"),
	                                .cosignature = slice_of("of the witness\n"),
	                                .cosigned_at_s = (int64_t)size * 10};
	snprintf(record.checkpoint.origin, sizeof record.checkpoint.origin, "%s", origin);
	checkpoint_write(&record.checkpoint, &text);
	record.text = buf_slice(&text);
	assert_int_equal(witness_store_put(store, &record, NULL), OK);
}

static int find(struct witness_store *store, const char *origin, uint64_t expected)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct witness_record record;
	const struct sha256 hash = sha256_of(origin, strlen(origin)), root = sha256_of(&expected, 8);
	int result = witness_store_find(store, &hash, &arena, &record, NULL);
	if (result)
		return result;
	assert_string_equal(record.checkpoint.origin, origin);
	assert_int_equal(record.checkpoint.size, expected);
	assert_true(sha256_equal(&record.checkpoint.root, &root));
	assert_true(slice_is(record.signatures, "of the log\n"));
	assert_true(slice_is(record.cosignature, "of the witness\n"));
	assert_int_equal(record.cosigned_at_s, expected * 10);
	return OK;
}

static void write_one(struct witness_store *store, const char *origin, uint64_t size)
{
	assert_int_equal(witness_store_begin(store, NULL), OK);
	put(store, origin, size);
	assert_int_equal(witness_store_commit(store, NULL), OK);
}

/* Changes the database as nothing here does. */
static void damage(const char *sql)
{
	char path[80];
	sqlite3 *sqlite;
	snprintf(path, sizeof path, "%s/" WITNESS_STORE_FILE, directory);
	assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
	assert_int_equal(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(sqlite), SQLITE_OK);
}

TEST_CASE(test_records_survive)
{
	struct witness_store *store = open_store();
	assert_int_equal(find(store, ORIGIN, 0), ERR_NOT_FOUND);
	write_one(store, ORIGIN, 3);
	write_one(store, "other.example", UINT64_C(1) << 53);
	write_one(store, ORIGIN, 4);
	assert_int_equal(find(store, ORIGIN, 4), OK);
	witness_store_close(store);
	store = open_store();
	assert_int_equal(find(store, ORIGIN, 4), OK);
	assert_int_equal(find(store, "other.example", UINT64_C(1) << 53), OK);
	witness_store_close(store);
}

TEST_CASE(test_a_transaction_that_is_not_committed_changes_nothing)
{
	struct witness_store *store = open_store();
	write_one(store, ORIGIN, 3);
	assert_int_equal(witness_store_begin(store, NULL), OK);
	put(store, ORIGIN, 4);
	assert_int_equal(find(store, ORIGIN, 4), OK);
	witness_store_rollback(store);
	assert_int_equal(find(store, ORIGIN, 3), OK);
	assert_int_equal(witness_store_begin(store, NULL), OK);
	put(store, ORIGIN, 5);
	witness_store_close(store);
	store = open_store();
	assert_int_equal(find(store, ORIGIN, 3), OK);
	witness_store_close(store);
}

/* The process ends without closing anything: what was committed is there, and no more. */
TEST_CASE(test_a_killed_process)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct witness_store *store;
		if (witness_store_open(directory, &store, NULL))
			_exit(1);
		write_one(store, ORIGIN, 3);
		if (witness_store_begin(store, NULL))
			_exit(1);
		put(store, ORIGIN, 4);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	struct witness_store *store = open_store();
	assert_int_equal(find(store, ORIGIN, 3), OK);
	witness_store_close(store);
}

TEST_CASE(test_one_process_opens_it_for_changes)
{
	struct witness_store *store = open_store(), *second;
	write_one(store, ORIGIN, 3);
	assert_int_equal(witness_store_open(directory, &second, NULL), ERR_UNAVAILABLE);
	assert_int_equal(witness_store_open_to_read(directory, &second, NULL), OK);
	assert_int_equal(find(second, ORIGIN, 3), OK);
	witness_store_close(second);
	witness_store_close(store);
	store = open_store();
	witness_store_close(store);
}

TEST_CASE(test_the_identity_is_set_once)
{
	struct witness_store *store = open_store();
	char name[NOTE_NAME_MAX + 1];
	uint8_t public[NOTE_KEY_SIZE] = {7}, found[NOTE_KEY_SIZE];
	const struct note_key key = note_key_make("witness.example", NOTE_COSIGNATURE, public);
	assert_int_equal(witness_store_get_identity(store, name, found, NULL), ERR_NOT_FOUND);
	assert_int_equal(witness_store_set_identity(store, &key, NULL), OK);
	assert_int_equal(witness_store_set_identity(store, &key, NULL), ERR_REFUSED);
	witness_store_close(store);
	store = open_store();
	assert_int_equal(witness_store_get_identity(store, name, found, NULL), OK);
	assert_string_equal(name, "witness.example");
	assert_memory_equal(found, public, NOTE_KEY_SIZE);
	witness_store_close(store);
}

TEST_CASE(test_damaged_records)
{
	static const char *const changes[] = {
		"UPDATE logs SET size = 4", "UPDATE logs SET root = x'00'",
		"UPDATE logs SET text = CAST(replace(CAST(text AS TEXT), 'log', 'lag') AS BLOB)",
		"UPDATE logs SET text = x''"};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct witness_store *store = open_store();
		write_one(store, ORIGIN, 3);
		witness_store_close(store);
		damage(changes[i]);
		store = open_store();
		assert_int_equal(find(store, ORIGIN, 3), ERR_CORRUPT);
		witness_store_close(store);
	}
}

TEST_CASE(test_other_databases)
{
	struct witness_store *store = open_store();
	char path[80];
	witness_store_close(store);
	damage("PRAGMA user_version = 2");
	assert_int_equal(witness_store_open(directory, &store, NULL), ERR_REFUSED);
	snprintf(path, sizeof path, "%s/" WITNESS_STORE_FILE, directory);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; i < 4096; i++)
		fputs("no database", file);
	fclose(file);
	assert_int_equal(witness_store_open(directory, &store, NULL), ERR_CORRUPT);
	assert_int_equal(witness_store_open("/nonexistent", &store, NULL), ERR_IO);
}

TEST_MAIN_EACH(set_up, tear_down)
