/* The index of client_refs against a plain list, through turns, moves, failures and restarts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "db/driver.h"
#include "scratch.h"
#include "store/events/client_refs.h"
#include "store/internal.h"
#include "store/store.h"

#define GATHERED 50
#define CHAINS 5
#define EVENTS_MAX 4000

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

static void assert_found(struct client_refs *refs, struct db_connection *connection, int64_t chain,
                         int64_t hash)
{
	int64_t found[64];
	size_t count;
	assert_int_equal(
		client_refs_find(refs, connection, account_of(chain), chain, hash, found, 64, &count, NULL),
		OK);
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

static void one_batch(struct client_refs *refs, struct db_connection *connection, bool fail)
{
	size_t before = known_count;
	int64_t sequences_before[CHAINS];
	memcpy(sequences_before, sequences, sizeof sequences);
	assert_int_equal(db_begin(connection, NULL), OK);
	uint32_t count = random_below(30);
	for (uint32_t i = 0; i < count; i++) {
		struct known *one = &known[known_count++];
		one->chain = random_below(CHAINS);
		one->hash = (int64_t)random_below(400) - 200;
		one->sequence = ++sequences[one->chain];
		assert_int_equal(
			client_refs_add(refs, account_of(one->chain), one->chain, one->hash, one->sequence),
			OK);
	}
	assert_int_equal(client_refs_write(refs, connection, NULL), OK);
	if (fail) {
		connection->db->driver->rollback(connection);
		client_refs_rolled_back(refs);
		known_count = before;
		memcpy(sequences, sequences_before, sizeof sequences);
		return;
	}
	assert_int_equal(db_commit(connection, NULL), OK);
	client_refs_committed(refs);
}

static void finds_what_was_committed(void **state)
{
	const char *given = getenv("CONSTANCIA_TEST_SEED");
	random_state = given ? strtoull(given, NULL, 10) : (uint64_t)clock_now_us();
	printf("seed %llu\n", (unsigned long long)random_state);
	char directory[SCRATCH_MAX];
	scratch_make(directory);
	char url[128];
	snprintf(url, sizeof url, "sqlite:%s/store.db", directory);
	struct store *store;
	assert_int_equal(store_open(&(struct db_options){.url = url, .create = true}, &store, NULL),
	                 OK);
	struct db_connection *connection = db_take_writer(store->db);
	struct client_refs *refs;
	assert_int_equal(client_refs_open(connection, GATHERED, &refs, NULL), OK);
	for (int batch = 0; batch < 250 && known_count + 30 < EVENTS_MAX; batch++) {
		one_batch(refs, connection, random_below(6) == 0);
		for (int i = 0; i < 20; i++)
			assert_found(refs, connection, random_below(CHAINS), (int64_t)random_below(400) - 200);
		if (random_below(10) == 0) {
			client_refs_close(refs);
			assert_int_equal(client_refs_open(connection, GATHERED, &refs, NULL), OK);
		}
	}
	/* Most entries have reached the tree by now: the turns really happened. */
	struct db_query *query = db_query(connection, "SELECT count(*) FROM client_refs");
	assert_true(db_step(query));
	assert_true(db_integer(query, 0) > (int64_t)known_count - 4 * GATHERED);
	assert_int_equal(db_end(query, NULL), OK);
	for (size_t i = 0; i < known_count; i++)
		assert_found(refs, connection, known[i].chain, known[i].hash);
	int64_t count;
	assert_int_equal(client_refs_count(connection, &count, NULL), OK);
	assert_int_equal(count, known_count);
	client_refs_close(refs);
	db_give(connection);
	store_close(store);
	scratch_remove(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_was_committed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
