/* The index of client_refs compared with a plain list, over flushes, merges, failures and
 * restarts. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "testing.h"
#include "base/clock.h"
#include "db/db_driver.h"
#include "scratch.h"
#include "store/events/client_refs.h"
#include "store/store.h"
#include "store/store_internal.h"

#define GATHERED 50
#define CHAINS 5
static const struct client_refs_shape shape = {
	.gathered = GATHERED,
	.runs = {.bucket_entries = 4, .group_buckets = 3, .moved_per_new = 2, .moved_at_least = 64}};
#define EVENTS_MAX 30000
#define EVENTS 9000
#define HASHES 1200

static uint64_t random_state;
static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % bound;
}

struct known {
	int64_t chain, hash, sequence;
};
static struct known known[EVENTS_MAX];
static size_t known_count;
static int64_t sequences[CHAINS];

static int64_t account_of(int64_t chain)
{
	return chain % 2;
}

static void assert_is_known(int64_t chain, int64_t hash, const int64_t *found, size_t count)
{
	size_t expected = 0;
	for (size_t i = 0; i < known_count; i++) {
		if (known[i].chain != chain || known[i].hash != hash)
			continue;
		expected++;
		size_t at = 0;
		while (at < count && found[at] != known[i].sequence)
			at++;
		assert_true(at < count);
	}
	for (size_t i = 0; i < count; i++) {
		bool real = false;
		for (size_t j = 0; j < known_count && !real; j++)
			real =
				known[j].chain == chain && known[j].hash == hash && known[j].sequence == found[i];
		assert_true(real);
	}
	assert_true(expected == 0 ? count == 0 : count >= expected);
}

static void assert_found(struct client_refs *refs, struct db_connection *connection, int64_t chain,
                         int64_t hash)
{
	int64_t sequences_found[64];
	size_t count;
	assert_int_equal(client_refs_find(refs, connection, account_of(chain), chain, hash,
	                                  sequences_found, 64, &count, NULL),
	                 OK);
	assert_is_known(chain, hash, sequences_found, count);
}

static int64_t random_hash(void)
{
	return (int64_t)random_below(HASHES) - HASHES / 2;
}

/* As any other thread sees it, even while a transaction has moved some and not ended. */
static void assert_looked_up(struct client_refs *refs, struct store *store)
{
	struct db_connection *reader = db_take_reader(store->db);
	for (int i = 0; i < 10; i++) {
		int64_t chain = random_below(CHAINS), hash = random_hash();
		int64_t found[64];
		size_t count;
		assert_int_equal(client_refs_lookup(refs, reader, account_of(chain), chain, hash, found, 64,
		                                    &count, NULL),
		                 OK);
		assert_is_known(chain, hash, found, count);
	}
	db_give(reader);
}

static void one_batch(struct client_refs *refs, struct store *store,
                      struct db_connection *connection, bool fail, bool look)
{
	size_t before = known_count;
	int64_t sequences_before[CHAINS];
	memcpy(sequences_before, sequences, sizeof sequences);
	assert_int_equal(db_begin(connection, NULL), OK);
	uint32_t count = random_below(30);
	for (uint32_t i = 0; i < count; i++) {
		struct known *one = &known[known_count++];
		one->chain = random_below(CHAINS);
		one->hash = random_hash();
		one->sequence = ++sequences[one->chain];
		assert_int_equal(
			client_refs_add(refs, account_of(one->chain), one->chain, one->hash, one->sequence),
			OK);
	}
	assert_int_equal(client_refs_write(refs, connection, NULL), OK);
	size_t after = known_count;
	known_count = before;
	if (look)
		assert_looked_up(refs, store);
	known_count = after;
	if (fail) {
		connection->db->driver->rollback(connection);
		client_refs_rolled_back(refs);
		known_count = before;
		memcpy(sequences, sequences_before, sizeof sequences);
		return;
	}
	assert_int_equal(db_commit(connection, NULL), OK);
	known_count = before;
	if (look) /* moved entries are noticed, but not yet where they are */
		assert_looked_up(refs, store);
	known_count = after;
	client_refs_committed(refs);
}

static struct fixture {
	char directory[SCRATCH_MAX];
	struct store *store;
	struct db_connection *writer;
} fixture;

static int set_up(void **state)
{
	random_state = test_seed();
	known_count = 0;
	memset(sequences, 0, sizeof sequences);
	fixture = (struct fixture){0};
	scratch_make(fixture.directory);
	char url[128];
	snprintf(url, sizeof url, "sqlite:%s/store.db", fixture.directory);
	assert_int_equal(
		store_open(&(struct db_options){.url = url, .create = true}, &fixture.store, NULL), OK);
	fixture.writer = db_take_writer(fixture.store->db);
	return 0;
}

static int tear_down(void **state)
{
	db_give(fixture.writer);
	store_close(fixture.store);
	scratch_remove(fixture.directory);
	return 0;
}

static int64_t number_of(struct db_connection *connection, const char *literal)
{
	struct db_query *query = db_query(connection, literal);
	int64_t number = db_step(query) ? db_integer(query, 0) : -1;
	assert_int_equal(db_end(query, NULL), OK);
	return number;
}

static int count_all(struct db_connection *connection, int64_t *ret_count)
{
	struct client_refs *refs;
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	int result = client_refs_count(refs, connection, ret_count, NULL);
	client_refs_close(refs);
	return result;
}

static void assert_counted(struct db_connection *connection)
{
	int64_t count;
	assert_int_equal(count_all(connection, &count), OK);
	assert_int_equal(count, known_count);
}

static void start_again(struct client_refs **refs, struct db_connection *connection)
{
	client_refs_close(*refs);
	assert_counted(connection);
	assert_int_equal(client_refs_open(connection, &shape, refs, NULL), OK);
}

TEST_CASE(finds_what_was_committed)
{
	struct db_connection *connection = fixture.writer;
	struct client_refs *refs;
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	while (known_count < EVENTS) {
		one_batch(refs, fixture.store, connection, random_below(6) == 0, random_below(3) == 0);
		for (int i = 0; i < 5; i++)
			assert_found(refs, connection, random_below(CHAINS), random_hash());
		if (random_below(15) == 0)
			start_again(&refs, connection);
	}
	/* They were merged repeatedly. */
	assert_true(number_of(connection, "SELECT MAX(level) FROM client_ref_runs") >= 3);
	assert_true(number_of(connection, "SELECT SUM(entries) FROM client_ref_runs") >
	            (int64_t)known_count - 8 * GATHERED);
	for (size_t i = 0; i < known_count; i++)
		assert_found(refs, connection, known[i].chain, known[i].hash);
	assert_counted(connection);
	client_refs_close(refs);
}

/* ---- a store of earlier versions ---- */

#define TREE 600
#define STALE 80 /* collected, half of them in the tree */

static void plant(struct db_connection *connection)
{
	int64_t stale[STALE][3];
	assert_int_equal(db_begin(connection, NULL), OK);
	for (size_t i = 0; i < TREE + STALE / 2; i++) {
		struct known *one = &known[known_count++];
		one->chain = random_below(CHAINS);
		one->hash = random_hash();
		one->sequence = ++sequences[one->chain];
		if (i < STALE) {
			stale[i][0] = account_of(one->chain);
			stale[i][1] = event_number(one->chain, one->sequence);
			stale[i][2] = one->hash;
		}
		if (i < STALE / 2)
			continue;
		struct db_query *query =
			db_query(connection, "INSERT INTO client_refs(account, chain, ref_hash, sequence)"
		                         " VALUES ($1, $2, $3, $4)");
		db_bind_integer(query, account_of(one->chain));
		db_bind_integer(query, one->chain);
		db_bind_integer(query, one->hash);
		db_bind_integer(query, one->sequence);
		assert_int_equal(db_execute(query, NULL, NULL), OK);
	}
	struct db_query *query =
		db_query(connection, "INSERT INTO fresh_client_refs_1(entries) VALUES ($1)");
	db_bind_blob(query, stale, sizeof stale);
	assert_int_equal(db_execute(query, NULL, NULL), OK);
	assert_int_equal(db_commit(connection, NULL), OK);
}

TEST_CASE(takes_a_tree_over)
{
	struct db_connection *connection = fixture.writer;
	plant(connection);
	assert_counted(connection);
	struct client_refs *refs;
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	while (number_of(connection, "SELECT count(*) FROM client_refs") > 0) {
		assert_true(known_count + 30 < EVENTS_MAX);
		for (int i = 0; i < 50; i++)
			assert_found(refs, connection, random_below(CHAINS), random_hash());
		assert_looked_up(refs, fixture.store);
		one_batch(refs, fixture.store, connection, random_below(4) == 0, false);
		if (random_below(4) == 0)
			start_again(&refs, connection);
	}
	for (size_t i = 0; i < known_count; i++)
		assert_found(refs, connection, known[i].chain, known[i].hash);
	client_refs_close(refs);
	assert_counted(connection);
}

/* ---- concurrent look-ups ---- */

struct looker {
	struct client_refs *refs;
	struct store *store;
	atomic_size_t committed; /* of `known` */
	atomic_bool over;
	size_t looked, missed;
};

static void *look_on(void *argument)
{
	struct looker *looker = argument;
	struct db_connection *reader = db_take_reader(looker->store->db);
	uint64_t state = 1;
	while (!atomic_load(&looker->over)) {
		state = state * UINT64_C(6364136223846793005) + 1;
		const struct known *one = &known[(state >> 33) % atomic_load(&looker->committed)];
		int64_t found[64];
		size_t count = 0, at = 0;
		int result = client_refs_lookup(looker->refs, reader, account_of(one->chain), one->chain,
		                                one->hash, found, 64, &count, NULL);
		while (at < count && found[at] != one->sequence)
			at++;
		looker->looked++;
		looker->missed += result || at == count;
	}
	db_give(reader);
	return NULL;
}

TEST_CASE(is_looked_up_meanwhile)
{
	struct db_connection *connection = fixture.writer;
	plant(connection);
	struct looker looker = {.store = fixture.store};
	assert_int_equal(client_refs_open(connection, &shape, &looker.refs, NULL), OK);
	atomic_store(&looker.committed, known_count);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, look_on, &looker), 0);
	while (known_count < EVENTS) {
		one_batch(looker.refs, fixture.store, connection, false, false);
		atomic_store(&looker.committed, known_count);
	}
	atomic_store(&looker.over, true);
	pthread_join(thread, NULL);
	assert_true(looker.looked > 100);
	assert_int_equal(looker.missed, 0);
	client_refs_close(looker.refs);
}

/* No look-up runs between the commit that removes an entry from the tree and the update in
 * memory. */
TEST_CASE(nobody_looks_while_some_is_taken)
{
	struct db_connection *connection = fixture.writer;
	plant(connection);
	struct looker looker = {.store = fixture.store};
	assert_int_equal(client_refs_open(connection, &shape, &looker.refs, NULL), OK);
	for (int i = 0; i < 4; i++) /* stale entries are removed */
		one_batch(looker.refs, fixture.store, connection, false, false);
	atomic_store(&looker.committed, known_count);
	assert_int_equal(db_begin(connection, NULL), OK);
	assert_int_equal(client_refs_write(looker.refs, connection, NULL), OK);
	assert_int_equal(db_commit(connection, NULL), OK);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, look_on, &looker), 0);
	usleep(50000);
	atomic_store(&looker.over, true);
	client_refs_committed(looker.refs);
	pthread_join(thread, NULL);
	assert_true(looker.looked <= 1);
	assert_int_equal(looker.missed, 0);
	client_refs_close(looker.refs);
}

/* ---- runs on their own ---- */

#define FLUSHED 60
static const struct ref_key key = {{1, 2}};

static void commit_runs(struct ref_runs *runs, struct db_connection *connection)
{
	assert_int_equal(db_commit(connection, NULL), OK);
	ref_runs_committed(runs);
}

/* Writes the next events of the chain, each with its sequence as its hash. */
static void flush(struct ref_runs *runs, struct db_connection *connection, size_t count)
{
	struct ref_entry *entries = reallocarray(NULL, count, sizeof *entries);
	bool done = false;
	assert_non_null(entries);
	for (size_t i = 0; i < count; i++) {
		int64_t sequence = ++sequences[1];
		entries[i] = (struct ref_entry){ref_place(&key, 1, sequence), event_number(1, sequence)};
	}
	qsort(entries, count, sizeof *entries, ref_compare);
	assert_int_equal(db_begin(connection, NULL), OK);
	assert_int_equal(ref_runs_begin_flush(runs, connection, count, NULL), OK);
	commit_runs(runs, connection);
	while (!done) {
		assert_int_equal(db_begin(connection, NULL), OK);
		assert_int_equal(ref_runs_flush(runs, connection, entries, count, 0, &done, NULL), OK);
		assert_int_equal(ref_runs_merge(runs, connection, 0, NULL), OK);
		commit_runs(runs, connection);
	}
	free(entries);
}

/* A look-up that waited after it got the buckets finds its entry there, or that the runs have
 * changed. */
TEST_CASE(who_waits_is_told_of_new_runs)
{
	struct db_connection *connection = fixture.writer;
	struct ref_runs *runs;
	size_t gone = 0;
	assert_int_equal(ref_runs_open(connection, shape.runs, &runs, NULL), OK);
	while (sequences[1] + 20 * FLUSHED < EVENTS_MAX) {
		flush(runs, connection, FLUSHED);
		/* Of the newest run, which is merged soon. */
		const uint64_t place = ref_place(&key, 1, sequences[1] - random_below(FLUSHED));
		struct ref_row rows[CLIENT_REF_RUNS_MAX];
		int64_t found[1];
		size_t count = ref_runs_rows(runs, place, true, rows), seen = 0;
		uint64_t generation = ref_runs_generation(runs);
		for (uint32_t i = random_below(2) ? 19 : random_below(20); i > 0; i--)
			flush(runs, connection, FLUSHED);
		for (size_t i = 0; i < count && !seen; i++)
			assert_int_equal(
				ref_runs_read(runs, connection, &rows[i], place, 1, found, 1, &seen, NULL), OK);
		gone += !seen;
		assert_true(seen || ref_runs_generation(runs) != generation);
	}
	assert_true(gone > 0);
	ref_runs_close(runs);
}

/* A half-finished merge has freed the memory of its filters in whole pages, even of 64 KiB: the
 * system frees the rest of a page, too. */
#define PAGE_MAX ((size_t)1 << 16)
static size_t given_back;
int __real_madvise(void *address, size_t size, int advice);
int __wrap_madvise(void *address, size_t size, int advice);
int __wrap_madvise(void *address, size_t size, int advice)
{
	assert_int_equal(size % PAGE_MAX, 0);
	given_back += size;
	return __real_madvise(address, size, advice);
}

TEST_CASE(finds_what_is_half_merged)
{
	const size_t large = 100000;
	struct db_connection *connection = fixture.writer;
	struct ref_runs *runs;
	assert_int_equal(ref_runs_open(connection, client_refs_usual_shape().runs, &runs, NULL), OK);
	for (size_t i = 0; i < CLIENT_REF_MERGED; i++)
		flush(runs, connection, large);
	given_back = 0;
	while (number_of(connection,
	                 "SELECT filled > buckets / 2 FROM client_ref_runs WHERE level = 1") < 1) {
		assert_int_equal(db_begin(connection, NULL), OK);
		assert_int_equal(ref_runs_merge(runs, connection, large / 10, NULL), OK);
		commit_runs(runs, connection);
	}
	assert_int_equal(number_of(connection, "SELECT count(*) FROM client_ref_runs"),
	                 CLIENT_REF_MERGED + 1);
	assert_int_equal(given_back, CLIENT_REF_MERGED * PAGE_MAX);
	for (int64_t sequence = 1; sequence <= sequences[1]; sequence += 7) {
		const uint64_t place = ref_place(&key, 1, sequence);
		struct ref_row rows[CLIENT_REF_RUNS_MAX];
		int64_t found[1] = {0};
		size_t seen = 0, count = ref_runs_rows(runs, place, false, rows);
		for (size_t i = 0; i < count && !seen; i++)
			assert_int_equal(
				ref_runs_read(runs, connection, &rows[i], place, 1, found, 1, &seen, NULL), OK);
		assert_int_equal(found[0], sequence);
	}
	ref_runs_close(runs);
}

static bool no_memory;
void *__real_mmap64(void *address, size_t size, int access, int flags, int file, off_t offset);
void *__wrap_mmap64(void *address, size_t size, int access, int flags, int file, off_t offset);
void *__wrap_mmap64(void *address, size_t size, int access, int flags, int file, off_t offset)
{
	return no_memory ? MAP_FAILED : __real_mmap64(address, size, access, flags, file, offset);
}

static void merge_once(struct ref_runs *runs, struct db_connection *connection)
{
	assert_int_equal(db_begin(connection, NULL), OK);
	assert_int_equal(ref_runs_merge(runs, connection, 0, NULL), OK);
	commit_runs(runs, connection);
}

/* A run in use reports that; the merge begins later. */
TEST_CASE(filters_may_find_no_memory)
{
	struct db_connection *connection = fixture.writer;
	struct ref_runs *runs;
	assert_int_equal(ref_runs_open(connection, shape.runs, &runs, NULL), OK);
	for (size_t i = 0; i < CLIENT_REF_MERGED; i++)
		flush(runs, connection, FLUSHED);
	no_memory = true;
	merge_once(runs, connection);
	assert_int_equal(number_of(connection, "SELECT MAX(level) FROM client_ref_runs"), 0);
	assert_int_equal(db_begin(connection, NULL), OK);
	assert_int_equal(ref_runs_begin_flush(runs, connection, FLUSHED, NULL), ERR_NO_MEMORY);
	connection->db->driver->rollback(connection);
	ref_runs_rolled_back(runs);
	no_memory = false;
	merge_once(runs, connection);
	assert_int_equal(number_of(connection, "SELECT MAX(level) FROM client_ref_runs"), 1);
	ref_runs_close(runs);
}

/* ---- bounds ---- */

#define LAST_RUN "2147483646" /* so that the row after its last one is also a valid number */

/* After the last number, free numbers are used again. A run with other numbers has wrong checksums,
 * like older ones. */
TEST_CASE(numbers_of_runs_begin_again)
{
	struct db_connection *connection = fixture.writer;
	struct client_refs *refs;
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	while (number_of(connection, "SELECT count(*) FROM client_ref_runs WHERE filled = buckets"
	                             " AND goes_into = 0") == 0)
		one_batch(refs, fixture.store, connection, false, false);
	client_refs_close(refs);
	assert_int_equal(
		db_run(connection,
	           "UPDATE client_ref_buckets SET place = (" LAST_RUN " << 32) + (place & 4294967295)"
	           " WHERE place >> 32 = (SELECT MAX(run) FROM client_ref_runs);"
	           "UPDATE client_ref_filters SET place = (" LAST_RUN " << 32) + (place & 4294967295)"
	           " WHERE place >> 32 = (SELECT MAX(run) FROM client_ref_runs);"
	           "UPDATE client_ref_runs SET run = " LAST_RUN ", checked = 0, checksum = NULL"
	           " WHERE run = (SELECT MAX(run) FROM client_ref_runs)",
	           NULL),
		OK);
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	while (number_of(connection, "SELECT MAX(level) FROM client_ref_runs") < 2 ||
	       number_of(connection, "SELECT count(*) FROM client_ref_runs WHERE run = " LAST_RUN)) {
		assert_true(known_count + 30 < EVENTS_MAX);
		one_batch(refs, fixture.store, connection, random_below(6) == 0, random_below(3) == 0);
		assert_true(number_of(connection, "SELECT MAX(run) FROM client_ref_runs"
		                                  " WHERE run < " LAST_RUN) < 1000);
		if (random_below(15) == 0)
			start_again(&refs, connection);
	}
	for (size_t i = 0; i < known_count; i++)
		assert_found(refs, connection, known[i].chain, known[i].hash);
	assert_counted(connection);
	client_refs_close(refs);
}

/* ---- runs of earlier versions ---- */

#define SMALL 40 /* bytes of their filters */

static void small_filter_add(unsigned char *filter, uint64_t place)
{
	uint64_t mixed = place * UINT64_C(0xd6e8feb86659fd93);
	for (int i = 0; i < 5; i++) {
		size_t bit = (mixed >> (4 + i * 12) & 0xfff) * 8 * SMALL >> 12;
		filter[bit / 8] |= (unsigned char)(1 << bit % 8);
	}
}

/* Writes the filters of the group of buckets as an earlier version did. */
static void write_small_filters(struct db_connection *connection, int64_t place, int64_t buckets)
{
	const int64_t group = shape.runs.group_buckets;
	const int64_t first = (place & UINT32_MAX) * group;
	unsigned char filters[3][SMALL] = {0};
	assert_true(group == 3);
	struct db_query *query = db_query(connection, "SELECT place, entries FROM client_ref_buckets"
	                                              " WHERE place >= $1 AND place < $2");
	db_bind_integer(query, (place >> 32 << 32) + first);
	db_bind_integer(query, (place >> 32 << 32) + first + group);
	while (db_step(query)) {
		struct slice entries = db_blob(query, 1);
		for (size_t at = 0; at < entries.size; at += sizeof(struct ref_entry)) {
			struct ref_entry entry;
			memcpy(&entry, entries.data + at, sizeof entry);
			small_filter_add(filters[(db_integer(query, 0) & UINT32_MAX) - first], entry.place);
		}
	}
	assert_int_equal(db_end(query, NULL), OK);
	query = db_query(connection, "UPDATE client_ref_filters SET filter = $2 WHERE place = $1");
	db_bind_integer(query, place);
	db_bind_blob(query, filters,
	             SMALL * (size_t)(buckets - first < group ? buckets - first : group));
	assert_int_equal(db_execute(query, NULL, NULL), OK);
}

static void make_filters_small(struct db_connection *connection)
{
	int64_t places[4096], buckets[4096];
	size_t count = 0;
	assert_int_equal(db_begin(connection, NULL), OK);
	struct db_query *query = db_query(connection, "SELECT place, buckets FROM client_ref_filters"
	                                              " JOIN client_ref_runs ON run = place >> 32");
	for (; db_step(query); count++) {
		assert_true(count < 4096);
		places[count] = db_integer(query, 0);
		buckets[count] = db_integer(query, 1);
	}
	assert_int_equal(db_end(query, NULL), OK);
	for (size_t i = 0; i < count; i++)
		write_small_filters(connection, places[i], buckets[i]);
	assert_int_equal(db_run(connection,
	                        "UPDATE client_ref_runs SET filter_size = 40, checked = 0,"
	                        " checksum = NULL;"
	                        "UPDATE client_ref_buckets SET checksum = NULL;"
	                        "UPDATE client_ref_filters SET checksum = NULL",
	                        NULL),
	                 OK);
	assert_int_equal(db_commit(connection, NULL), OK);
}

/* Their filters work as before, and the merged run has larger ones. */
TEST_CASE(runs_of_before_are_read_and_merged)
{
	struct db_connection *connection = fixture.writer;
	struct client_refs *refs;
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	while (known_count < 2000 ||
	       number_of(connection, "SELECT count(*) FROM client_ref_runs WHERE goes_into > 0") == 0)
		one_batch(refs, fixture.store, connection, false, false);
	client_refs_close(refs);
	make_filters_small(connection);
	assert_counted(connection);
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	for (size_t i = 0; i < known_count; i++)
		assert_found(refs, connection, known[i].chain, known[i].hash);
	while (number_of(connection, "SELECT count(*) FROM client_ref_runs"
	                             " WHERE filter_size = 40") > 0) {
		assert_true(known_count + 30 < EVENTS_MAX);
		one_batch(refs, fixture.store, connection, random_below(6) == 0, random_below(3) == 0);
	}
	for (size_t i = 0; i < known_count; i++)
		assert_found(refs, connection, known[i].chain, known[i].hash);
	client_refs_close(refs);
	assert_counted(connection);
}

/* ---- damage ---- */

static int count_damaged(struct db_connection *connection, const char *literal)
{
	int64_t count;
	assert_int_equal(db_begin(connection, NULL), OK);
	assert_int_equal(db_run(connection, literal, NULL), OK);
	int result = count_all(connection, &count);
	connection->db->driver->rollback(connection);
	return !result && count != (int64_t)known_count ? ERR_NOT_FOUND : result;
}

TEST_CASE(finds_damage)
{
	struct db_connection *connection = fixture.writer;
	struct client_refs *refs;
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	while (number_of(connection, "SELECT count(*) FROM client_ref_runs WHERE filled = buckets") <
	           3 ||
	       number_of(connection, "SELECT (SELECT count(*) FROM fresh_client_refs_0)"
	                             " + (SELECT count(*) FROM fresh_client_refs_1)") == 0)
		one_batch(refs, fixture.store, connection, false, false);
	client_refs_close(refs);
	assert_counted(connection);
#define FIRST " WHERE place = (SELECT MIN(place) FROM client_ref_buckets)"
	static const char *const damages[] = {
		"UPDATE client_ref_buckets SET entries = zeroblob(length(entries))" FIRST,
		"UPDATE client_ref_buckets SET entries = substr(entries, 2)" FIRST,
		"DELETE FROM client_ref_buckets" FIRST,
		"UPDATE client_ref_buckets SET place = place + 1000000" FIRST,
		"UPDATE client_ref_filters SET filter = zeroblob(length(filter))",
		"DELETE FROM client_ref_filters WHERE place = (SELECT MAX(place) FROM client_ref_filters)",
		"UPDATE client_ref_filters SET filter = substr(filter, 2)",
		"UPDATE client_ref_runs SET filled = filled - 1 WHERE filled = buckets",
		"UPDATE client_ref_runs SET buckets = 0",
		"UPDATE client_ref_runs SET filled = buckets + 1",
		"UPDATE client_ref_runs SET level = 1000000",
		"UPDATE client_ref_runs SET goes_into = 1000000",
		"UPDATE client_ref_runs SET filter_size = 0",
		"UPDATE client_ref_runs SET filter_size = 40",
		"UPDATE client_ref_runs SET filter_size = 1 << 40",
		"UPDATE fresh_client_refs_0 SET entries = substr(entries, 2);"
		"UPDATE fresh_client_refs_1 SET entries = substr(entries, 2)",
		"DELETE FROM settings WHERE name = 'client_ref_key'",
		"DELETE FROM client_ref_runs",
	};
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
		if (count_damaged(connection, damages[i]) == OK)
			fail_msg("not found: %s", damages[i]);
	/* It is reported, and no memory is allocated. */
	assert_int_equal(
		count_damaged(connection, "UPDATE client_ref_runs SET buckets = (1 << 32) - 1"),
		ERR_CORRUPT);
	assert_counted(connection);
}

/* Each with its own hash, which no other test uses. */
static int add_some(struct client_refs *refs, struct db_connection *connection, int count)
{
	assert_int_equal(db_begin(connection, NULL), OK);
	for (int i = 0; i < count; i++) {
		int64_t sequence = ++sequences[1];
		assert_int_equal(client_refs_add(refs, 0, 1, -HASHES - sequence, sequence), OK);
	}
	int result = client_refs_write(refs, connection, NULL);
	if (!result)
		result = db_commit(connection, NULL);
	else
		connection->db->driver->rollback(connection);
	if (!result)
		client_refs_committed(refs);
	else
		client_refs_rolled_back(refs);
	return result;
}

/* Look-ups use what can be read, and later calls are served. */
TEST_CASE(a_merge_that_cannot_go_on_rests)
{
	struct db_connection *connection = fixture.writer;
	struct client_refs *refs;
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	while (number_of(connection, "SELECT count(*) FROM client_ref_runs WHERE goes_into > 0") == 0)
		one_batch(refs, fixture.store, connection, false, false);
	assert_int_equal(db_begin(connection, NULL), OK);
	assert_int_equal(
		db_run(connection,
	           "UPDATE client_ref_buckets SET entries = substr(entries, 2) WHERE place ="
	           " (SELECT MAX(place) FROM client_ref_buckets WHERE place >> 32 ="
	           " (SELECT MIN(run) FROM client_ref_runs WHERE goes_into > 0))",
	           NULL),
		OK);
	assert_int_equal(db_commit(connection, NULL), OK);
	size_t refused = 0, written = 0;
	for (int i = 0; i < 200; i++)
		*(add_some(refs, connection, 1) ? &refused : &written) += 1;
	assert_int_equal(refused, 0);
	assert_int_equal(written, 200);
	/* The same while very many runs wait for it: entries without a run stay in memory. */
	for (int i = 0; i < 400; i++)
		assert_int_equal(add_some(refs, connection, GATHERED), OK);
	assert_in_range(number_of(connection, "SELECT count(*) FROM client_ref_runs"), 100,
	                CLIENT_REF_RUNS_MAX - 1);
	client_refs_close(refs);
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	int64_t found[64], looked_for = sequences[1];
	size_t count = 0, unknown = 0;
	for (; looked_for > sequences[1] - 20 * GATHERED; looked_for--) {
		int result =
			client_refs_find(refs, connection, 0, 1, -HASHES - looked_for, found, 64, &count, NULL);
		unknown += result == ERR_UNAVAILABLE; /* the filter leads to the damaged bucket */
		if (result == ERR_UNAVAILABLE)
			continue;
		assert_int_equal(result, OK);
		assert_int_equal(count, 1);
		assert_int_equal(found[0], looked_for);
	}
	assert_true(unknown < 20);
	client_refs_close(refs);
}

/* The buckets contain the data of their filters, too. */
TEST_CASE(filters_are_made_anew)
{
	struct db_connection *connection = fixture.writer;
	struct client_refs *refs;
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	while (known_count < 2000)
		one_batch(refs, fixture.store, connection, false, false);
	client_refs_close(refs);
	assert_int_equal(db_begin(connection, NULL), OK);
	assert_int_equal(db_run(connection, "DELETE FROM client_ref_filters WHERE place % 3 = 1", NULL),
	                 OK);
	assert_int_equal(db_commit(connection, NULL), OK);
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	for (size_t i = 0; i < known_count; i++)
		assert_found(refs, connection, known[i].chain, known[i].hash);
	while (known_count < 6000)
		one_batch(refs, fixture.store, connection, false, false);
	for (size_t i = 0; i < known_count; i++)
		assert_found(refs, connection, known[i].chain, known[i].hash);
	client_refs_close(refs);
}

/* ---- repairing ---- */

#define REGISTERED 3000
#define OLD 500 /* of them ordered by number */

/* Event `number` of chain 1, with its own client_ref. */
static int64_t hash_of(int number, char text[24])
{
	snprintf(text, 24, "ref-%d", number);
	return client_ref_hash(slice_of(text));
}

static void write_event(struct db_connection *connection, int number)
{
	char text[24];
	hash_of(number, text);
	struct db_query *query =
		number <= OLD ? db_query(connection, "INSERT INTO events_before(event, account, key,"
	                                         " client_ref, received_at, hash, config_version,"
	                                         " chain_hash) VALUES ($1, 1, 1, $2, 1, x'', 1, x'')")
					  : db_query(connection, "INSERT INTO events_arrived(event, account, key,"
	                                         " client_ref, received_at, hash, config_version,"
	                                         " chain_hash) VALUES ($1, 1, 1, $2, 1, x'', 1, x'')");
	db_bind_integer(query, event_number(1, number));
	db_bind_string(query, text);
	assert_int_equal(db_execute(query, NULL, NULL), OK);
}

static void register_some(struct client_refs *refs, struct db_connection *connection, int from,
                          int to)
{
	char text[24];
	assert_int_equal(db_begin(connection, NULL), OK);
	for (int number = from; number <= to; number++) {
		write_event(connection, number);
		assert_int_equal(client_refs_add(refs, 1, 1, hash_of(number, text), number), OK);
	}
	assert_int_equal(client_refs_write(refs, connection, NULL), OK);
	assert_int_equal(db_commit(connection, NULL), OK);
	client_refs_committed(refs);
}

static struct client_refs *open_refs(struct db_connection *connection)
{
	struct client_refs *refs;
	assert_int_equal(client_refs_open(connection, &shape, &refs, NULL), OK);
	return refs;
}

/* Each is found, and nothing else, or is unknown. Returns the number of unknown ones. */
static int look_up_registered(struct client_refs *refs, struct db_connection *connection, int count)
{
	int unknown = 0;
	for (int number = 1; number <= count; number++) {
		char text[24];
		int64_t found[4];
		size_t found_count = 0;
		int result = client_refs_find(refs, connection, 1, 1, hash_of(number, text), found, 4,
		                              &found_count, NULL);
		if (result == ERR_UNAVAILABLE) {
			unknown++;
			continue;
		}
		assert_int_equal(result, OK);
		assert_true(found_count > 0);
		for (size_t i = 0; i < found_count; i++)
			assert_int_equal(found[i], number);
	}
	return unknown;
}

static void damage(struct db_connection *connection, const char *literal)
{
	assert_int_equal(db_begin(connection, NULL), OK);
	assert_int_equal(db_run(connection, literal, NULL), OK);
	assert_int_equal(db_commit(connection, NULL), OK);
}

static int64_t repair(struct client_refs *refs)
{
	static const atomic_bool running = false;
	int64_t repaired = 0;
	db_give(fixture.writer);
	assert_int_equal(client_refs_repair(refs, fixture.store->db, &running, &repaired, NULL), OK);
	fixture.writer = db_take_writer(fixture.store->db);
	return repaired;
}

static void assert_whole(struct client_refs *refs, int64_t count)
{
	struct client_refs *again = open_refs(fixture.writer);
	int64_t counted;
	assert_int_equal(client_refs_damaged(refs, NULL), 0);
	assert_int_equal(client_refs_damaged(again, NULL), 0);
	assert_int_equal(look_up_registered(refs, fixture.writer, (int)count), 0);
	assert_int_equal(look_up_registered(again, fixture.writer, (int)count), 0);
	assert_int_equal(client_refs_count(again, fixture.writer, &counted, NULL), OK);
	assert_int_equal(counted, count);
	client_refs_close(again);
}

/* Makes a store in which some runs are being merged. */
static struct client_refs *register_all(struct db_connection *connection)
{
	struct client_refs *refs = open_refs(connection);
	for (int number = 1; number <= REGISTERED; number += 10)
		register_some(refs, connection, number, number + 9);
	return refs;
}

/* Registers more until the runs being merged have many buckets left; returns their number. */
static int64_t register_until_merging(struct client_refs *refs, int64_t count)
{
	while (number_of(fixture.writer,
	                 "SELECT count(*) FROM client_ref_buckets WHERE place >> 32 IN"
	                 " (SELECT run FROM client_ref_runs WHERE goes_into > 0)") < 20) {
		register_some(refs, fixture.writer, (int)count + 1, (int)count + 10);
		count += 10;
	}
	return count;
}

#define A_BUCKET(which) " WHERE place = (SELECT " which "(place) FROM client_ref_buckets)"
#define A_SOURCE                                                                                   \
	" WHERE place = (SELECT MAX(place) FROM client_ref_buckets WHERE place >> 32 ="                \
	" (SELECT MIN(run) FROM client_ref_runs WHERE goes_into > 0))"
/* Flips one bit of the place of the first entry, of its event, or all of it. */
#define FLIPPED(at, with)                                                                          \
	"UPDATE client_ref_buckets SET entries = CAST(substr(entries, 1, " at ") AS BLOB) || " with    \
	" || substr(entries, " at " + 2)"

TEST_CASE(buckets_are_repaired)
{
	static const char *const damages[] = {
		FLIPPED("3", "CASE substr(entries, 4, 1) WHEN x'55' THEN x'54' ELSE x'55' END")
			A_BUCKET("MIN"),
		FLIPPED("8", "CASE substr(entries, 9, 1) WHEN x'55' THEN x'54' ELSE x'55' END")
			A_BUCKET("MAX"),
		"DELETE FROM client_ref_buckets" A_BUCKET("MIN"),
		"DELETE FROM client_ref_buckets" A_SOURCE,
		"UPDATE client_ref_buckets SET entries = substr(entries, 2)" A_SOURCE,
		"UPDATE client_ref_buckets SET checksum = checksum + 1 WHERE place % 7 = 3",
		("UPDATE client_ref_buckets SET entries = (SELECT entries FROM client_ref_buckets LIMIT 1)"
	     " WHERE place % 11 = 3"),
	};
	struct client_refs *refs = register_all(fixture.writer);
	int64_t count = REGISTERED;
	assert_int_equal(look_up_registered(refs, fixture.writer, (int)count), 0);
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		count = register_until_merging(refs, count);
		damage(fixture.writer, damages[i]);
		if (look_up_registered(refs, fixture.writer, (int)count) == 0)
			fail_msg("not noticed: %s", damages[i]);
		assert_true(client_refs_damaged(refs, NULL) > 0);
		while (client_refs_damaged(refs, NULL) > 0) {
			assert_true(repair(refs) > 0);
			look_up_registered(refs, fixture.writer, (int)count);
		}
		assert_whole(refs, count);
	}
	client_refs_close(refs);
}

/* A merge that reads one is suspended, and registration continues; after the repair the merge does,
 * too. */
TEST_CASE(a_merge_goes_on_behind_a_repair)
{
	struct client_refs *refs = register_all(fixture.writer);
	int count = (int)register_until_merging(refs, REGISTERED);
	damage(fixture.writer, "UPDATE client_ref_buckets SET checksum = checksum + 1" A_SOURCE);
	const int64_t source =
		number_of(fixture.writer, "SELECT MIN(run) FROM client_ref_runs WHERE goes_into > 0");
	for (int i = 0; i < 100; i++, count += 10)
		register_some(refs, fixture.writer, count + 1, count + 10);
	assert_true(client_refs_damaged(refs, NULL) > 0);
	assert_true(number_of(fixture.writer, "SELECT MIN(run) FROM client_ref_runs") <= source);
	assert_true(repair(refs) > 0);
	for (int i = 0; i < 100; i++, count += 10)
		register_some(refs, fixture.writer, count + 1, count + 10);
	assert_true(number_of(fixture.writer, "SELECT MIN(run) FROM client_ref_runs") > source);
	assert_whole(refs, count);
	client_refs_close(refs);
}

/* A table without buckets is detected when the index is opened. */
TEST_CASE(all_is_made_of_events)
{
	static const char *const damages[] = {
		"UPDATE client_ref_runs SET filled = filled - 1 WHERE filled > 0",
		"UPDATE client_ref_runs SET checked = 0",
		"DELETE FROM client_ref_runs WHERE run = (SELECT MIN(run) FROM client_ref_runs)",
		("UPDATE fresh_client_refs_0 SET entries = CAST(replace(hex(entries), '0', '1') AS BLOB);"
	     "UPDATE fresh_client_refs_1 SET entries = CAST(replace(hex(entries), '0', '1') AS BLOB)"),
		"DELETE FROM settings WHERE name = 'client_ref_key'",
		"UPDATE settings SET value = lower(hex(randomblob(16))) WHERE name = 'client_ref_key'",
	};
	int64_t count = REGISTERED;
	client_refs_close(register_all(fixture.writer));
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		struct client_refs *refs = open_refs(fixture.writer);
		count = register_until_merging(refs, count);
		client_refs_close(refs);
		damage(fixture.writer, damages[i]);
		refs = open_refs(fixture.writer);
		if (look_up_registered(refs, fixture.writer, (int)count) != count)
			fail_msg("not noticed: %s", damages[i]);
		assert_true(client_refs_damaged(refs, NULL) > 0);
		assert_int_equal(repair(refs), 1);
		assert_whole(refs, count);
		client_refs_close(refs);
	}
}

static void *stop_soon(void *stopping)
{
	usleep(20000);
	atomic_store((atomic_bool *)stopping, true);
	return NULL;
}

/* A start continues where the one before ended, at any point. */
TEST_CASE(making_all_goes_on_after_a_start)
{
	client_refs_close(register_all(fixture.writer));
	damage(fixture.writer, "UPDATE client_ref_runs SET filled = filled - 1 WHERE filled > 0");
	setenv("TORTURE_SIZES", "refs_read=100", 1);
	struct client_refs *refs = open_refs(fixture.writer);
	/* The index is emptied, then rebuilt in steps, each by a new process. */
	int starts = 0;
	while (client_refs_is_lost(refs)) {
		atomic_bool stopping = false;
		int64_t repaired = 0;
		db_give(fixture.writer);
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stopping), 0);
		assert_int_equal(client_refs_repair(refs, fixture.store->db, &stopping, &repaired, NULL),
		                 OK);
		pthread_join(thread, NULL);
		fixture.writer = db_take_writer(fixture.store->db);
		starts++;
		client_refs_close(refs);
		refs = open_refs(fixture.writer);
	}
	unsetenv("TORTURE_SIZES");
	assert_true(starts > 0);
	assert_whole(refs, REGISTERED);
	client_refs_close(refs);
}

static int64_t run_count(void)
{
	return number_of(fixture.writer, "SELECT count(*) FROM client_ref_runs");
}

/* ---- pages ---- */

static bool unreadable; /* each page */

static ssize_t read_page(int file, void *data, size_t size, off_t offset)
{
	errno = EIO;
	return unreadable ? -1 : pread(file, data, size, offset);
}

static void open_again(void)
{
	char url[128];
	snprintf(url, sizeof url, "sqlite:%s/store.db", fixture.directory);
	db_give(fixture.writer);
	store_close(fixture.store);
	assert_int_equal(store_open(&(struct db_options){.url = url}, &fixture.store, NULL), OK);
	fixture.writer = db_take_writer(fixture.store->db);
}

static void assert_key(const char expected[33], bool same)
{
	struct db_query *query =
		db_query(fixture.writer, "SELECT value FROM settings WHERE name = 'client_ref_key'");
	assert_true(db_step(query));
	assert_true(slice_is(db_text(query, 0), expected) == same);
	assert_int_equal(db_end(query, NULL), OK);
}

static void copy_key(char key_text[33])
{
	struct db_query *query =
		db_query(fixture.writer, "SELECT value FROM settings WHERE name = 'client_ref_key'");
	assert_true(db_step(query));
	struct slice value = db_text(query, 0);
	snprintf(key_text, 33, "%.*s", (int)value.size, value.data);
	assert_int_equal(db_end(query, NULL), OK);
}

/* Its entries are unknown and nothing is written; no registration is quarantined for it. */
static void assert_lost(struct client_refs *refs, int count)
{
	char text[24];
	struct error what = {0};
	assert_true(client_refs_is_lost(refs));
	assert_int_equal(client_refs_damaged(refs, &what), 1);
	assert_true(strlen(what.cause) > 0);
	assert_int_equal(look_up_registered(refs, fixture.writer, count), count);
	assert_int_equal(db_begin(fixture.writer, NULL), OK);
	assert_int_equal(client_refs_add(refs, 1, 1, hash_of(count + 1, text), count + 1), OK);
	assert_int_equal(client_refs_write(refs, fixture.writer, NULL), ERR_UNAVAILABLE);
	assert_int_equal(db_failure(fixture.writer), OK);
	fixture.writer->db->driver->rollback(fixture.writer);
	client_refs_rolled_back(refs);
}

/* Fills a page of the file with data that SQLite cannot read. */
static void spoil_page(int64_t page)
{
	char path[SCRATCH_MAX + 16];
	unsigned char garbage[512];
	const int64_t size = number_of(fixture.writer, "PRAGMA page_size");
	db_give(fixture.writer);
	store_close(fixture.store);
	snprintf(path, sizeof path, "%s/store.db", fixture.directory);
	memset(garbage, 0xff, sizeof garbage);
	int file = open(path, O_WRONLY);
	assert_int_equal(pwrite(file, garbage, sizeof garbage, (off_t)((page - 1) * size)),
	                 sizeof garbage);
	assert_int_equal(close(file), 0);
	snprintf(path, sizeof path, "sqlite:%s/store.db", fixture.directory);
	assert_int_equal(store_open(&(struct db_options){.url = path}, &fixture.store, NULL), OK);
	fixture.writer = db_take_writer(fixture.store->db);
}

/* Filters that were made of buckets are written again. */
TEST_CASE(filters_are_written_again)
{
	client_refs_close(register_all(fixture.writer));
	damage(fixture.writer, "UPDATE client_ref_filters SET filter = zeroblob(length(filter))"
	                       " WHERE place % 3 = 1");
	struct client_refs *refs = open_refs(fixture.writer);
	assert_int_equal(look_up_registered(refs, fixture.writer, REGISTERED), 0);
	assert_true(client_refs_damaged(refs, NULL) > 0);
	assert_true(repair(refs) > 0);
	assert_whole(refs, REGISTERED);
	client_refs_close(refs);
}

/* An unreadable bucket stops only the merges of its level: new entries wait in runs, then in
 * memory. After the repair they are merged. */
TEST_CASE(one_bucket_stops_nothing)
{
	struct client_refs *refs = register_all(fixture.writer);
	int count = (int)register_until_merging(refs, REGISTERED);
	damage(fixture.writer, "UPDATE client_ref_buckets SET entries = substr(entries, 2)" A_SOURCE);
	const int until = count + (CLIENT_REF_RUNS_MAX + 100) * GATHERED;
	for (; count < until; count += 10)
		register_some(refs, fixture.writer, count + 1, count + 10);
	assert_in_range(run_count(), 100, CLIENT_REF_RUNS_MAX - 1);
	assert_true(look_up_registered(refs, fixture.writer, count) < 20);
	assert_true(repair(refs) > 0);
	assert_whole(refs, count);
	for (int i = 0; i < 400; i++, count += 10)
		register_some(refs, fixture.writer, count + 1, count + 10);
	assert_in_range(run_count(), 1, 30);
	assert_whole(refs, count);
	client_refs_close(refs);
}

/* A temporary error: the page is read again, and nothing is rebuilt. */
TEST_CASE(a_page_that_could_not_be_read_once)
{
	char key_text[33];
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	sqlite3_syscall_ptr before = vfs->xGetSystemCall(vfs, "pread64");
	assert_int_equal(vfs->xSetSystemCall(vfs, "pread64", (sqlite3_syscall_ptr)read_page),
	                 SQLITE_OK);
	client_refs_close(register_all(fixture.writer));
	copy_key(key_text);
	open_again();
	struct client_refs *refs = open_refs(fixture.writer);
	assert_int_equal(db_begin(fixture.writer, NULL), OK);
	unreadable = true;
	int64_t found[4];
	size_t found_count;
	int result = OK;
	char text[24];
	for (int number = 1; number <= REGISTERED && !result; number++)
		result = client_refs_find(refs, fixture.writer, 1, 1, hash_of(number, text), found, 4,
		                          &found_count, NULL);
	unreadable = false;
	assert_int_equal(result, ERR_UNAVAILABLE);
	assert_int_equal(db_failure(fixture.writer), ERR_IO);
	fixture.writer->db->driver->rollback(fixture.writer);
	client_refs_rolled_back(refs);
	db_give(fixture.writer);
	fixture.writer = db_take_writer(fixture.store->db);
	assert_lost(refs, REGISTERED);
	assert_int_equal(repair(refs), 1);
	assert_key(key_text, true);
	assert_whole(refs, REGISTERED);
	client_refs_close(refs);
	vfs->xSetSystemCall(vfs, "pread64", before);
}

/* A permanent error: its table is abandoned, and a new one is made from the events. */
TEST_CASE(pages_that_cannot_be_read_are_replaced)
{
	static const char *const pages[] = {
		"SELECT rootpage FROM sqlite_schema WHERE name = 'client_ref_buckets'",
		"SELECT rootpage FROM sqlite_schema WHERE name = 'client_ref_filters'",
		"SELECT rootpage FROM sqlite_schema WHERE name = 'client_ref_runs'",
		"SELECT rootpage FROM sqlite_schema WHERE name = 'fresh_client_refs_0'",
		"SELECT rootpage FROM sqlite_schema WHERE name = 'fresh_client_refs_1'",
		"SELECT rootpage FROM sqlite_schema WHERE name = 'client_refs'",
		"SELECT MAX(pageno) FROM dbstat WHERE name = 'client_ref_buckets' AND pagetype = 'leaf'",
		"SELECT MIN(pageno) FROM dbstat WHERE name = 'client_ref_buckets' AND pagetype = 'leaf'",
	};
	char key_text[33];
	int64_t count = REGISTERED;
	client_refs_close(register_all(fixture.writer));
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		struct client_refs *refs = open_refs(fixture.writer);
		count = register_until_merging(refs, count);
		client_refs_close(refs);
		copy_key(key_text);
		spoil_page(number_of(fixture.writer, pages[i]));
		refs = open_refs(fixture.writer);
		while (!client_refs_is_lost(refs)) {
			/* A look-up or a move reads the page. */
			char text[24];
			int64_t found[4];
			size_t found_count;
			int result = db_begin(fixture.writer, NULL);
			for (int number = 1; number <= count && !result; number++)
				result = client_refs_find(refs, fixture.writer, 1, 1, hash_of(number, text), found,
				                          4, &found_count, NULL);
			if (!result)
				result = client_refs_write(refs, fixture.writer, NULL);
			assert_int_equal(result, ERR_UNAVAILABLE);
			fixture.writer->db->driver->rollback(fixture.writer);
			client_refs_rolled_back(refs);
		}
		db_give(fixture.writer);
		fixture.writer = db_take_writer(fixture.store->db);
		assert_lost(refs, (int)count);
		assert_int_equal(repair(refs), 1);
		assert_key(key_text, false);
		assert_whole(refs, count);
		client_refs_close(refs);
	}
	assert_int_equal(
		number_of(
			fixture.writer,
			"SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name LIKE 'unreadable%'"),
		sizeof pages / sizeof *pages);
}

TEST_MAIN_EACH(set_up, tear_down)
