/* The cost of signed receipts: batches are registered in turn without and with them, by one caller,
 * without HTTP; each answer is written as the interface does.
 *
 * usage: bench-receipts DIRECTORY BATCH BATCHES
 * Registers BATCHES batches of BATCH events of each kind, every batch durable, in a store in
 * DIRECTORY, and prints microseconds per event of both kinds: elapsed, and of this process's
 * processor time (the signing process has its own), and their ratio. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "sample.h"
#include "seal/receipt_signer.h"
#include "service/batch_receipts.h"

#define BATCH_MAX 1024
#define ANSWER_MAX 8192

static const char payload[] = "{\"order\":1001,\"total\":\"49.90\"}";

static struct service service;
static struct settings settings = {.seal_promise = 600 * US_PER_SECOND};
static struct batch_receipts receipts;
static struct sample sample;
static struct buf answer;
static uint64_t answer_bytes[2]; /* without and with receipts */

struct spent {
	int64_t elapsed_us, processor_us;
};

static void check(int result, const struct error *error)
{
	if (!result)
		return;
	fprintf(stderr, "bench-receipts: %s (%s)\n", error_message(error, LANGUAGE_ENGLISH),
	        error->cause);
	exit(2);
}

static struct spent now(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return (struct spent){clock_monotonic_us(),
	                      (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * US_PER_SECOND +
	                          used.ru_utime.tv_usec + used.ru_stime.tv_usec};
}

static void request_receipts(struct registration_batch *batch)
{
	batch_receipts_begin(&receipts, batch);
}

static void fill(struct registration *item, char ref[40], struct arena *arena)
{
	uint8_t random[16];
	const struct sha256 hash = sha256_of(payload, sizeof payload - 1);
	random_bytes(random, sizeof random);
	hex_encode(random, sizeof random, ref);
	*item = (struct registration){
		.account = sample.account,
		.channel = sample.channel,
		.chain = sample.live_chain,
		.key = sample.channel,
		.declaration = {.client_ref = slice_of(ref), .occurred_at_us = TIME_NONE},
		.content = slice_make(payload, sizeof payload - 1),
		.content_bytes = sizeof payload - 1,
		.arena = arena,
	};
	memcpy(item->declaration.hash, hash.bytes, SHA256_SIZE);
}

static void register_batch(size_t count, bool is_signed)
{
	static struct registration items[BATCH_MAX], *pointers[BATCH_MAX];
	static char refs[BATCH_MAX][40];
	ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
	struct error error = {0};
	for (size_t i = 0; i < count; i++) {
		fill(&items[i], refs[i], &arena);
		pointers[i] = &items[i];
	}
	struct registration_batch batch = {
		.items = pointers,
		.count = count,
		.clock = {.now_us = clock_now_us(), .bound_us = INT64_MAX},
		.decided = is_signed ? request_receipts : NULL,
	};
	check(store_register_batch(sample.store, 0, &batch, &error), &error);
	if (is_signed)
		batch_receipts_end(&receipts, &batch);
	for (size_t i = 0; i < count; i++) {
		check(items[i].result, items[i].error);
		buf_clear(&answer);
		registered_event_json(items[i].event, items[i].receipt, &answer);
		answer_bytes[is_signed] += answer.size;
	}
	check(store_maintain(sample.store, &error), &error);
}

static void measure(size_t count, bool is_signed, struct spent *sum)
{
	struct spent begun = now();
	register_batch(count, is_signed);
	struct spent ended = now();
	sum->elapsed_us += ended.elapsed_us - begun.elapsed_us;
	sum->processor_us += ended.processor_us - begun.processor_us;
}

static void report(size_t count, long batches, const struct spent spent[2])
{
	double events = (double)count * (double)batches;
	double elapsed[2], processor[2];
	for (int i = 0; i < 2; i++) {
		elapsed[i] = (double)spent[i].elapsed_us / events;
		processor[i] = (double)spent[i].processor_us / events;
	}
	printf("{\"batch\": %zu, \"events\": %.0f, \"unsigned_us\": %.2f, \"signed_us\": %.2f, "
	       "\"ratio\": %.3f, \"unsigned_cpu_us\": %.2f, \"signed_cpu_us\": %.2f, "
	       "\"cpu_ratio\": %.3f, \"unsigned_bytes\": %.0f, \"signed_bytes\": %.0f, "
	       "\"missing\": %lld}\n",
	       count, events, elapsed[0], elapsed[1], elapsed[1] / elapsed[0], processor[0],
	       processor[1], processor[1] / processor[0], (double)answer_bytes[0] / events,
	       (double)answer_bytes[1] / events, (long long)service.counters.receipts_unsigned);
}

int main(int argc, char **argv)
{
	size_t count = argc == 4 ? (size_t)atol(argv[2]) : 0;
	long batches = argc == 4 ? atol(argv[3]) : 0;
	struct error error = {0};
	struct spent spent[2] = {0};
	char url[4096];
	if (count < 1 || count > BATCH_MAX || batches < 1) {
		fprintf(stderr, "usage: bench-receipts DIRECTORY BATCH BATCHES\n");
		return 2;
	}
	/* The child is forked before the store has threads. */
	check(receipt_signer_start(argv[1], 0, &service.receipt_signer, &error), &error);
	snprintf(url, sizeof url, "sqlite:%s/bench.db", argv[1]);
	check(store_open(&(struct db_options){.url = url, .create = true}, &sample.store, &error),
	      &error);
	sample.now_us = clock_now_us();
	sample_fill(&sample, sample.store, MODALITY_CONTENT, INT64_C(1) << 40);
	service.settings = &settings;
	strcpy(service.log_origin, "records.example/log");
	batch_receipts_init(&receipts, &service, 0);
	buf_init(&answer, ANSWER_MAX);
	for (long i = -2; i < 2 * batches; i++) { /* the first two warm up */
		struct spent ignored = {0};
		measure(count, i % 2 != 0, i < 0 ? &ignored : &spent[i % 2]);
		if (i < 0)
			memset(answer_bytes, 0, sizeof answer_bytes);
	}
	report(count, batches, spent);
	buf_free(&answer);
	batch_receipts_free(&receipts);
	store_close(sample.store);
	receipt_signer_stop(service.receipt_signer);
	return 0;
}
