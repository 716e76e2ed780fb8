/* The store alone: events registered per second by one caller, without HTTP.
 *
 * usage: bench-store DIRECTORY CHAINS BATCH BATCHES [STEPS]
 *        bench-store --fill FILE EVENTS
 *        bench-store --chains FILE CHAINS
 * Registers BATCHES batches of BATCH events with 200-byte payloads and random client_refs over
 * CHAINS live chains, each batch durable, and repeats that STEPS times to show how the rate holds
 * as the store grows. One line per step. With --fill the store is one that a service made, which is
 * stopped, and the events are spread over the live keys that registered there before. With --chains
 * copies of its last channel are added, ten of an account, and each gets one event. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "chains.h"
#include "sample.h"
#include "store/store_internal.h"

#define BATCH_MAX 1024
#define CHAINS_MAX 131072
#define CHAINS_EACH 10 /* account */
#define FILL_BATCH 256
#define PAYLOAD_SIZE (sizeof payload - 1)

static const char payload[] =
	"{\"amount\":129.95,\"express\":true,\"lines\":[1,2,3],\"note\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\",\"order\":\"01234567\","
	"\"type\":\"order.delivered\"}";
_Static_assert(PAYLOAD_SIZE == 200, "as bench-load's");

/* What registers. */
static struct holder {
	int64_t account, channel, key;
} holders[CHAINS_MAX];
static size_t holder_count;

static void check(int result, const struct error *error)
{
	if (!result)
		return;
	fprintf(stderr, "bench-store: %s (%s)\n", error_message(error, LANGUAGE_ENGLISH), error->cause);
	exit(2);
}

static void make_holders(struct store *store, size_t chains)
{
	struct sample sample = {.now_us = clock_now_us()};
	sample_fill(&sample, store, MODALITY_CONTENT, INT64_C(1) << 40);
	for (size_t i = 0; i < chains; i++) {
		if (i)
			sample_add_channel(&sample, MODALITY_CONTENT);
		holders[i] = (struct holder){sample.account, sample.channel, sample.channel};
	}
	holder_count = chains;
}

static void find_holders(struct store *store)
{
	struct error error;
	error_clear(&error);
	struct db_connection *reader = db_take_reader(store->db);
	struct db_query *query =
		db_query(reader, "SELECT DISTINCT account, chain / 2, key FROM daily_usage"
	                     " WHERE chain % 2 = 0"); /* of live chains */
	while (holder_count < CHAINS_MAX && db_step(query))
		holders[holder_count++] =
			(struct holder){db_integer(query, 0), db_integer(query, 1), db_integer(query, 2)};
	check(db_end(query, &error), &error);
	db_give(reader);
}

static const struct holder *random_holder(const uint8_t random[4])
{
	uint32_t number;
	memcpy(&number, random, sizeof number);
	return &holders[number % holder_count];
}

/* From the holders behind `first`, or from any. */
static void register_batch(struct store *store, const struct holder *first, size_t batch)
{
	static struct registration items[BATCH_MAX];
	static struct registration *pointers[BATCH_MAX];
	static char refs[BATCH_MAX][40];
	ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
	struct error error;
	error_clear(&error);
	for (size_t i = 0; i < batch; i++) {
		uint8_t random[16];
		random_bytes(random, sizeof random);
		hex_encode(random, sizeof random, refs[i]);
		const struct holder *holder = first ? first + i : random_holder(random);
		items[i] = (struct registration){
			.account = holder->account,
			.channel = holder->channel,
			.chain = chain_number(holder->channel, MODE_LIVE),
			.key = holder->key,
			.declaration = {.client_ref = slice_of(refs[i]), .occurred_at_us = TIME_NONE},
			.content = slice_make(payload, PAYLOAD_SIZE),
			.content_bytes = PAYLOAD_SIZE,
			.arena = &arena,
		};
		struct sha256 hash = sha256_of(payload, PAYLOAD_SIZE);
		memcpy(items[i].declaration.hash, hash.bytes, SHA256_SIZE);
		pointers[i] = &items[i];
	}
	struct registration_batch given = {
		.items = pointers,
		.count = batch,
		.clock = {.now_us = clock_now_us(), .bound_us = INT64_MAX},
	};
	check(store_register_batch(store, 0, &given, &error), &error);
	for (size_t i = 0; i < batch; i++)
		check(items[i].result, items[i].error);
	check(store_maintain(store, &error), &error);
}

static int64_t register_batches(struct store *store, size_t batch, long batches)
{
	int64_t start_us = clock_monotonic_us();
	for (long i = 0; i < batches; i++)
		register_batch(store, NULL, batch);
	return clock_monotonic_us() - start_us;
}

static struct store *open_store(const char *file, bool create)
{
	char url[4096];
	snprintf(url, sizeof url, "sqlite:%s", file);
	struct store *store;
	struct error error;
	error_clear(&error);
	check(store_open(&(struct db_options){.url = url, .create = create}, &store, &error), &error);
	return store;
}

static int fill(const char *file, long events)
{
	struct store *store = open_store(file, false);
	find_holders(store);
	if (holder_count == 0) {
		fprintf(stderr, "bench-store: no live key was used in %s\n", file);
		return 2;
	}
	long batches = (events + FILL_BATCH - 1) / FILL_BATCH;
	int64_t spent_us = register_batches(store, FILL_BATCH, batches);
	printf("{\"events\": %ld, \"seconds\": %.3f}\n", batches * FILL_BATCH, (double)spent_us / 1e6);
	store_close(store);
	return 0;
}

static void copy_last_channel(struct store *store, long chains)
{
	struct error error;
	error_clear(&error);
	struct db_connection *reader = db_take_reader(store->db);
	struct db_query *query = db_query(
		reader,
		"SELECT account, channel FROM channels ORDER BY account DESC, channel DESC LIMIT 1");
	int64_t account = db_step(query) ? db_integer(query, 0) : 0;
	int64_t channel = account ? db_integer(query, 1) : 0;
	check(db_end(query, &error), &error);
	db_give(reader);
	long accounts = chains / CHAINS_EACH + 1;
	chains_copy(store, account, channel, chains + 1, accounts);
	for (long n = 1; n <= chains; n++)
		holders[holder_count++] = (struct holder){account + n % accounts, channel + n, channel + n};
}

static int add_chains(const char *file, long chains)
{
	struct store *store = open_store(file, false);
	copy_last_channel(store, chains);
	for (size_t i = 0; i < holder_count; i += FILL_BATCH)
		register_batch(store, &holders[i],
		               holder_count - i < FILL_BATCH ? holder_count - i : FILL_BATCH);
	printf("{\"chains\": %zu}\n", holder_count);
	store_close(store);
	return 0;
}

static int measure(const char *directory, size_t chains, size_t batch, long batches, long steps)
{
	char file[2048];
	snprintf(file, sizeof file, "%s/bench.db", directory);
	struct store *store = open_store(file, true);
	make_holders(store, chains);
	int64_t total = 0;
	for (long step = 0; step < steps; step++) {
		int64_t spent_us = register_batches(store, batch, batches);
		total += (int64_t)batch * batches;
		printf("%zu chains, batches of %zu: %.0f events/s (%lld in the store)\n", chains, batch,
		       (double)batch * (double)batches * 1e6 / (double)spent_us, (long long)total);
	}
	store_close(store);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--fill") == 0)
		return fill(argv[2], atol(argv[3]));
	if (argc == 4 && strcmp(argv[1], "--chains") == 0 && atol(argv[3]) <= CHAINS_MAX)
		return add_chains(argv[2], atol(argv[3]));
	if (argc < 5) {
		fprintf(stderr, "usage: bench-store DIRECTORY CHAINS BATCH BATCHES [STEPS]\n"
		                "       bench-store --fill FILE EVENTS\n"
		                "       bench-store --chains FILE CHAINS\n");
		return 2;
	}
	size_t chains = (size_t)atol(argv[2]);
	size_t batch = (size_t)atol(argv[3]);
	if (chains < 1 || chains > CHAINS_MAX || batch < 1 || batch > BATCH_MAX)
		return 2;
	return measure(argv[1], chains, batch, atol(argv[4]), argc > 5 ? atol(argv[5]) : 1);
}
