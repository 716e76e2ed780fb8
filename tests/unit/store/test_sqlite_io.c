/* The embedded store on a disk whose reads, writes and syncs fail in turn, for lack of space or
 * permanently. The system calls of SQLite fail, not its functions. An unreadable page is not
 * reported as a corrupt store or a missing object. A failed write leaves nothing. A failed sync is
 * reported as an unknown outcome, and nothing more is written until the store is opened again. */
#include <errno.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "testing.h"
#include "registering.h"
#include "sample.h"
#include "store/certifications/certifications.h"
#include "store/store_internal.h"

#define MOVED_WITHIN_MS 20000

enum { READS = 1, WRITES = 2, SYNCS = 4 };

/* Also in the thread that checkpoints the WAL. */
static _Atomic unsigned armed;
static _Atomic int countdown, with;
static off_t end_of_room; /* 0: none */
static const char *_Atomic failed;

static struct sample sample;
static struct error error;

static bool fails(unsigned kind, const char *name)
{
	if (!(armed & kind) || failed || --countdown > 0)
		return false;
	failed = name;
	errno = with;
	return true;
}

static void arm(unsigned kinds, int at, int number)
{
	armed = kinds;
	countdown = at;
	with = number;
	failed = NULL;
}

static const char *disarm(void)
{
	armed = 0;
	return failed;
}

static ssize_t read_at(int file, void *data, size_t size, off_t offset)
{
	return fails(READS, "pread") ? -1 : pread(file, data, size, offset);
}

static ssize_t write_at(int file, const void *data, size_t size, off_t offset)
{
	if (end_of_room && offset + (off_t)size > end_of_room) {
		errno = ENOSPC;
		return -1;
	}
	return fails(WRITES, "pwrite") ? -1 : pwrite(file, data, size, offset);
}

/* SQLite calls these two by name and finds them here. */
int fsync(int file)
{
	return fails(SYNCS, "fsync") ? -1 : (int)syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
	return fails(SYNCS, "fdatasync") ? -1 : (int)syscall(SYS_fdatasync, file);
}

static void lead_calls_here(void)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	assert_int_equal(vfs->xSetSystemCall(vfs, "pread64", (sqlite3_syscall_ptr)read_at), SQLITE_OK);
	assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)write_at),
	                 SQLITE_OK);
}

static int open_store(void)
{
	error = (struct error){0};
	return store_open(&(struct db_options){.url = sample.url}, &sample.store, &error);
}

static void open_again(void)
{
	disarm();
	store_close(sample.store);
	assert_int_equal(open_store(), OK);
}

static int set_up(void **state)
{
	lead_calls_here();
	sample_open(&sample, MODALITY_CONTENT, 100000);
	sample_register(&sample, MODE_LIVE, 3);
	return 0;
}

static int tear_down(void **state)
{
	disarm();
	sample_close(&sample);
	return 0;
}

static void no_problem(void *context, const char *text)
{
	(void)context;
	fail_msg("%s", text);
}

static int64_t count_events(void)
{
	struct check_report report;
	struct check_listener listener = {.problem = no_problem};
	assert_int_equal(store_check(sample.store, &listener, &report, &error), OK);
	return report.events;
}

static bool is_read_fault(int result)
{
	return result == ERR_IO || result == ERR_UNAVAILABLE || result == ERR_NO_MEMORY;
}

/* Registers one event, whose reference is `number`. */
static int register_one(int64_t number, bool *ret_replayed)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct sha256 hash = sha256_of("{}", 2);
	struct registration item = {
		.account = sample.account,
		.channel = sample.channel,
		.chain = sample.live_chain,
		.key = 1,
		.declaration = {.modality = MODALITY_CONTENT,
	                    .client_ref = slice_of(arena_printf(&arena, "n-%lld", (long long)number)),
	                    .occurred_at_us = TIME_NONE},
		.content = slice_of("{}"),
		.content_bytes = 2,
		.arena = &arena};
	memcpy(item.declaration.hash, hash.bytes, sizeof hash.bytes);
	struct registration *items[] = {&item};
	error = (struct error){0};
	int result = register_items(sample.store, items, 1, ++sample.now_us, &error);
	*ret_replayed = item.replayed;
	return result ? result : item.result;
}

TEST_CASE(what_is_not_written_is_not_there)
{
	static const int numbers[] = {ENOSPC, EIO};
	int64_t events = 3;
	for (size_t i = 0; i < 2; i++)
		for (int at = 1;; at++, events++) {
			bool replayed = true;
			arm(WRITES, at, numbers[i]);
			int result = register_one(events, &replayed);
			if (!disarm()) {
				assert_int_equal(result, OK);
				events++;
				break;
			}
			assert_int_equal(result, ERR_NO_SPACE);
			assert_int_equal(count_events(), events);
			assert_int_equal(register_one(events, &replayed), OK);
			assert_false(replayed);
		}
	assert_int_equal(count_events(), events);
	assert_true(events >= 3 + 4);
}

/* Writes more than is written at once, or less. */
static int write_large(struct db_connection *writer, bool large)
{
	int result = db_begin(writer, &error);
	if (!result)
		result = db_run(writer,
		                large ? "INSERT INTO large VALUES (randomblob(300000))"
		                      : "INSERT INTO large VALUES (randomblob(10))",
		                &error);
	int ended = db_commit(writer, &error);
	return result ? result : ended;
}

static int64_t count_large(struct db_connection *connection)
{
	struct db_query *query =
		db_query(connection, "SELECT count(*) FROM large WHERE length(hex(bytes)) > 0");
	int64_t count = db_step(query) ? db_integer(query, 0) : -1;
	assert_int_equal(db_end(query, NULL), OK);
	return count;
}

TEST_CASE(what_is_written_in_pieces_is_whole)
{
	struct db *db = sample.store->db;
	struct db_connection *writer = db_take_writer(db);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(db_run(writer, "CREATE TABLE large (bytes BLOB)", NULL), OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	int64_t rows = 0;
	int failures = 0;
	for (int at = 1;; at++) {
		arm(WRITES, at, ENOSPC);
		int result = write_large(writer, true);
		bool hit = disarm();
		assert_int_equal(result, hit ? ERR_NO_SPACE : OK);
		rows += !hit;
		struct db_connection *reader = db_take_reader(db);
		assert_int_equal(count_large(reader), rows);
		db_give(reader);
		if (!hit)
			break;
		failures++;
		assert_int_equal(write_large(writer, false), OK);
		assert_int_equal(count_large(writer), ++rows);
	}
	assert_true(failures > 3);
	db_give(writer);
	open_again();
	struct db_connection *reader = db_take_reader(sample.store->db);
	assert_int_equal(count_large(reader), rows);
	db_give(reader);
	writer = db_take_writer(sample.store->db);
	assert_int_equal(db_run(writer, "DROP TABLE large", NULL), OK);
	db_give(writer);
}

static off_t log_end(void)
{
	char path[sizeof sample.url + 8];
	struct stat found;
	snprintf(path, sizeof path, "%s-wal", sample.url + strlen("sqlite:"));
	assert_int_equal(stat(path, &found), 0);
	return found.st_size;
}

/* A large transaction that does not fit leaves space for small ones. */
TEST_CASE(what_has_no_room_keeps_nobody_else_from_it)
{
	struct db_connection *writer = db_take_writer(sample.store->db);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(db_run(writer, "CREATE TABLE large (bytes BLOB)", NULL), OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	end_of_room = log_end() + 100000;
	assert_int_equal(write_large(writer, true), ERR_NO_SPACE);
	assert_int_equal(write_large(writer, false), OK);
	assert_int_equal(count_large(writer), 1);
	end_of_room = 0;
	db_give(writer);
	assert_int_equal(count_events(), 3);
}

/* Copies the files as they are when the process is killed now, and counts the events. */
static int64_t count_after_a_crash(void)
{
	char command[4 * sizeof sample.url + 64], url[sizeof sample.url + 8];
	const char *path = sample.url + strlen("sqlite:");
	struct store *running = sample.store;
	snprintf(url, sizeof url, "%s.copy", sample.url);
	snprintf(command, sizeof command, "cp '%s' '%s.copy' && cp '%s-wal' '%s.copy-wal'", path, path,
	         path, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(store_open(&(struct db_options){.url = url}, &sample.store, &error), OK);
	int64_t events = count_events();
	store_close(sample.store);
	sample.store = running;
	snprintf(command, sizeof command, "rm -f '%s.copy'*", path);
	assert_int_equal(system(command), 0);
	return events;
}

TEST_CASE(what_was_refused_does_not_come_back)
{
	bool replayed;
	end_of_room = log_end();
	assert_int_equal(register_one(3, &replayed), ERR_NO_SPACE);
	end_of_room = 0;
	/* A reader of the WAL. */
	struct db_connection *writer = db_take_writer(sample.store->db);
	assert_int_equal(db_run(writer, "PRAGMA shrink_memory; SELECT count(*) FROM accounts", NULL),
	                 OK);
	db_give(writer);
	assert_int_equal(count_after_a_crash(), 3);
	assert_int_equal(register_one(3, &replayed), OK);
	assert_false(replayed);
	assert_int_equal(count_after_a_crash(), 4);
}

TEST_CASE(what_is_not_synced_is_not_known)
{
	int64_t events = 3;
	for (int at = 1;; at++) {
		bool replayed;
		arm(SYNCS, at, EIO);
		int result = register_one(events, &replayed);
		if (!disarm()) {
			assert_int_equal(result, OK);
			break;
		}
		assert_int_equal(result, ERR_UNKNOWN_OUTCOME);
		assert_int_equal(error.code, ERR_UNKNOWN_OUTCOME);
		assert_int_equal(register_one(events + 1, &replayed), ERR_UNAVAILABLE);
		assert_int_equal(store_ready(sample.store, &error), ERR_UNAVAILABLE);
		open_again();
		assert_in_range(count_events(), events, events + 1);
		assert_int_equal(register_one(events, &replayed), OK);
		assert_int_equal(count_events(), ++events);
	}
	assert_true(events > 3);
}

TEST_CASE(opens_or_tells_why)
{
	store_close(sample.store);
	for (unsigned kind = READS; kind <= SYNCS; kind *= 2)
		for (int at = 1;; at++) {
			arm(kind, at, EIO);
			int result = open_store();
			if (!disarm()) {
				assert_int_equal(result, OK);
				store_close(sample.store);
				break;
			}
			if (result && !is_read_fault(result) && result != ERR_NO_SPACE)
				fail_msg("%s %d: %d %s", failed, at, result, error.cause);
			if (!result)
				store_close(sample.store);
			if (open_store())
				fail_msg("after %s %d: %s", failed, at, error.cause);
			assert_int_equal(count_events(), 3);
			store_close(sample.store);
		}
	assert_int_equal(open_store(), OK);
}

static int read_event(struct arena *arena, struct event *ret)
{
	error = (struct error){0};
	return store_get_event(sample.store, sample.account, sample.live_chain, 2, arena, ret, &error);
}

/* A store that was just opened has nothing in memory. */
TEST_CASE(what_cannot_be_read_is_neither_absent_nor_corrupt)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct event event;
	int failures = 0;
	for (int at = 1;; at++) {
		open_again();
		arm(READS, at, EIO);
		int result = read_event(&arena, &event);
		if (!disarm()) {
			assert_int_equal(result, OK);
			break;
		}
		failures++;
		if (!is_read_fault(result))
			fail_msg("read %d: %d %s", at, result, error.cause);
		assert_int_equal(read_event(&arena, &event), OK);
		assert_int_equal(event.sequence, 2);
	}
	assert_true(failures > 0);
}

static void write_a_long_log(struct db *db)
{
	struct db_connection *writer = db_take_writer(db);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(db_run(writer,
	                        "CREATE TABLE large (bytes BLOB);"
	                        "INSERT INTO large VALUES (zeroblob(40000000))",
	                        NULL),
	                 OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
}

static int maintain_until_it_fails(struct db *db)
{
	int result = db_maintain(db, &error);
	for (int i = 0; i < MOVED_WITHIN_MS && !result; i++) {
		usleep(1000); /* the checkpointer runs concurrently */
		result = db_maintain(db, &error);
	}
	assert_non_null(disarm());
	return result;
}

/* Data of the file that a failed sync lost is only in the WAL, which is then not removed at
 * closing. */
TEST_CASE(what_was_not_moved_for_sure_stays_in_the_log)
{
	struct db *db = sample.store->db;
	char path[600];
	struct stat status;
	snprintf(path, sizeof path, "%s-wal", sample.url + strlen("sqlite:"));
	write_a_long_log(db);
	arm(SYNCS, 1, EIO);
	assert_int_not_equal(maintain_until_it_fails(db), OK);
	assert_true(db_is_poisoned(db));
	store_close(sample.store);
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_size > 40000000);
	assert_int_equal(store_open(&(struct db_options){.url = sample.url}, &sample.store, &error),
	                 OK);
	assert_int_equal(count_events(), 3);
}

TEST_CASE(maintenance_tells)
{
	struct db *db = sample.store->db;
	write_a_long_log(db);
	arm(WRITES, 1, ENOSPC);
	assert_int_equal(maintain_until_it_fails(db), ERR_NO_SPACE);
	assert_int_equal(db_maintain(db, &error), OK);
	assert_int_equal(count_events(), 3);
	open_again();
	assert_int_equal(count_events(), 3);
}

TEST_MAIN_EACH(set_up, tear_down)
