/* The store alone: events registered per second by one caller, without HTTP.
 *
 * usage: bench-store DIRECTORY CHAINS BATCH BATCHES [STEPS]
 * Registers BATCHES batches of BATCH events with 200-byte payloads and random client_refs over
 * CHAINS live chains, each batch durable, and repeats that STEPS times to show how the rate holds
 * as the store grows. One line per step. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sample.h"

#define BATCH_MAX 1024
#define CHAINS_MAX 16384

static int64_t channels[CHAINS_MAX];
static int64_t account_number;

static void check(int result, const struct error *error)
{
	if (!result)
		return;
	fprintf(stderr, "bench-store: %s (%s)\n", error_message(error, LANGUAGE_ENGLISH), error->cause);
	exit(2);
}

static void prepare(struct store *store, size_t chains)
{
	struct sample sample = {.now_us = clock_now_us()};
	sample_fill(&sample, store, MODALITY_CONTENT, INT64_C(1) << 40);
	account_number = sample.account;
	for (size_t i = 0; i < chains; i++) {
		if (i)
			sample_add_channel(&sample, MODALITY_CONTENT);
		channels[i] = sample.channel;
	}
}

static void register_batch(struct store *store, size_t chains, size_t batch)
{
	static struct registration items[BATCH_MAX];
	static struct registration *pointers[BATCH_MAX];
	static char refs[BATCH_MAX][40];
	static const char payload[200] = "{\"payload\":\"";
	ARENA_AUTO struct arena arena;
	arena_init(&arena, (size_t)16 << 20);
	struct error error;
	error_clear(&error);
	for (size_t i = 0; i < batch; i++) {
		uint8_t random[16];
		random_bytes(random, sizeof random);
		hex_encode(random, sizeof random, refs[i]);
		int64_t channel = channels[(size_t)(random[0] << 8 | random[1]) % chains];
		items[i] = (struct registration){
			.account = account_number,
			.channel = channel,
			.chain = channel * 2,
			.key = channel,
			.declaration = {.client_ref = slice_of(refs[i]), .occurred_at_us = TIME_NONE},
			.content = slice_make(payload, sizeof payload),
			.content_bytes = sizeof payload,
			.arena = &arena,
		};
		struct sha256 hash = sha256_of(payload, sizeof payload);
		memcpy(items[i].declaration.hash, hash.bytes, SHA256_SIZE);
		pointers[i] = &items[i];
	}
	struct registration_batch given = {
		.items = pointers,
		.count = batch,
		.clock = {.now_us = clock_now_us(), .bound_us = INT64_MAX},
	};
	check(store_register_batch(store, 0, &given, &error), &error);
	check(store_maintain(store, &error), &error);
}

int main(int argc, char **argv)
{
	if (argc < 5) {
		fprintf(stderr, "usage: bench-store DIRECTORY CHAINS BATCH BATCHES [STEPS]\n");
		return 2;
	}
	size_t chains = (size_t)atol(argv[2]);
	size_t batch = (size_t)atol(argv[3]);
	long batches = atol(argv[4]);
	long steps = argc > 5 ? atol(argv[5]) : 1;
	if (chains < 1 || chains > CHAINS_MAX || batch < 1 || batch > BATCH_MAX)
		return 2;
	char url[4096];
	snprintf(url, sizeof url, "sqlite:%s/bench.db", argv[1]);
	struct store *store;
	struct error error;
	error_clear(&error);
	check(store_open(&(struct db_options){.url = url, .create = true}, &store, &error), &error);
	prepare(store, chains);
	int64_t total = 0;
	for (long step = 0; step < steps; step++) {
		int64_t start_us = clock_monotonic_us();
		for (long i = 0; i < batches; i++)
			register_batch(store, chains, batch);
		int64_t spent_us = clock_monotonic_us() - start_us;
		total += (int64_t)batch * batches;
		printf("%zu chains, batches of %zu: %.0f events/s (%lld in the store)\n", chains, batch,
		       (double)batch * (double)batches * 1e6 / (double)spent_us, (long long)total);
	}
	store_close(store);
	return 0;
}
