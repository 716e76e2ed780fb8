/* Sealing alone: what a round over many chains costs.
 *
 * usage: CONSTANCIA_RENDERER=PROGRAM bench-rounds CHAINS [ACCOUNTS]
 * Makes a store below /tmp with CHAINS live chains of one event each, of ACCOUNTS accounts (one for
 * ten chains), and seals and counts them as the sealer does. Prints the timestamps taken, the
 * seconds, the longest transactions, and the resident memory before and at most while it sealed. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "chains.h"
#include "office.h"
#include "evidence/seal_round.h"
#include "store/usage/totals.h"

#define BATCH 1000
#define CHAINS_EACH 10

static struct office office;
static struct error error;
static int64_t longest_us[3]; /* of staging a block, of writing a round, of counting a block */
enum { STAGING, WRITING };

int __real_store_stage_block(struct store *store, const struct round_block *block,
                             const struct segment_record *segments, size_t count,
                             size_t *ret_failed, struct error *why);
int __wrap_store_stage_block(struct store *store, const struct round_block *block,
                             const struct segment_record *segments, size_t count,
                             size_t *ret_failed, struct error *why);
int __real_store_write_round(struct store *store, const struct round_record *round,
                             struct error *why);
int __wrap_store_write_round(struct store *store, const struct round_record *round,
                             struct error *why);

static int note(int which, int64_t begin_us, int result)
{
	int64_t spent_us = clock_monotonic_us() - begin_us;
	longest_us[which] = spent_us > longest_us[which] ? spent_us : longest_us[which];
	return result;
}

int __wrap_store_stage_block(struct store *store, const struct round_block *block,
                             const struct segment_record *segments, size_t count,
                             size_t *ret_failed, struct error *why)
{
	int64_t begin_us = clock_monotonic_us();
	return note(STAGING, begin_us,
	            __real_store_stage_block(store, block, segments, count, ret_failed, why));
}

int __wrap_store_write_round(struct store *store, const struct round_record *round,
                             struct error *why)
{
	int64_t begin_us = clock_monotonic_us();
	return note(WRITING, begin_us, __real_store_write_round(store, round, why));
}

static void check(int result)
{
	if (!result)
		return;
	fprintf(stderr, "bench-rounds: %d %s\n", result, error.cause);
	exit(2);
}

/* Of /proc/self/status, in KiB: VmRSS, VmHWM. */
static long memory_kib(const char *name)
{
	char line[256];
	long kib = -1;
	FILE *file = fopen("/proc/self/status", "r");
	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtol(line + strlen(name) + 1, NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

static void forget_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");
	if (file) {
		fputs("5", file);
		fclose(file);
	}
}

static void register_in_each(long count, long accounts)
{
	static struct registration items[BATCH];
	static struct registration *pointers[BATCH];
	static char refs[BATCH][24];
	ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
	for (long done = 0; done < count; done += BATCH) {
		size_t batch = 0;
		for (; batch < BATCH && done + (long)batch < count; batch++) {
			int64_t channel = office.sample.channel + done + (long)batch;
			snprintf(refs[batch], sizeof refs[batch], "ref-%" PRId64, channel);
			items[batch] = (struct registration){
				.account = office.sample.account + (done + (long)batch) % accounts,
				.channel = channel,
				.chain = channel * 2,
				.key = channel,
				.declaration = {.client_ref = slice_of(refs[batch]),
			                    .occurred_at_us = TIME_NONE,
			                    .modality = MODALITY_HASH_ONLY},
				.content_bytes = -1,
				.arena = &arena,
			};
			pointers[batch] = &items[batch];
		}
		struct registration_batch given = {
			.items = pointers,
			.count = batch,
			.clock = {.now_us = clock_now_us(), .bound_us = INT64_MAX},
		};
		check(store_register_batch(office.service.store, 0, &given, &error));
		check(items[0].result);
		check(store_maintain(office.service.store, &error));
		arena_reset(&arena);
	}
}

/* As the sealer's pass. */
static void seal_all(struct sealing *sealing)
{
	static struct unsealed_chain chains[ROUND_BLOCK_SEGMENTS_MAX];
	int64_t account = 0, chain = 0;
	size_t count, taken, segments;
	bool backlog = false, staged, full;
	sealing_begin_pass(sealing);
	for (;;) {
		check(store_list_unsealed(office.service.store, account, chain, ROUND_BLOCK_SEGMENTS_MAX,
		                          chains, &count, &error));
		if (count == 0)
			break;
		check(seal_stage(sealing, chains, count, &taken, &segments, &backlog, &error));
		account = chains[taken - 1].account;
		chain = chains[taken - 1].chain;
		check(store_maintain(office.service.store, &error));
		check(sealing_get_capacity(sealing, &staged, &full, &error));
		if (full)
			check(seal_close(sealing, &error));
	}
	check(seal_close(sealing, &error));
}

int main(int argc, char **argv)
{
	long count = argc == 2 || argc == 3 ? strtol(argv[1], NULL, 10) : 0;
	long accounts = argc == 3 ? strtol(argv[2], NULL, 10) : (count + CHAINS_EACH - 1) / CHAINS_EACH;
	if (count < 1 || accounts < 1 || accounts > count) {
		fprintf(stderr,
		        "usage: CONSTANCIA_RENDERER=PROGRAM bench-rounds CHAINS [ACCOUNTS]\n"
		        "ACCOUNTS: 1 to CHAINS; one for %d chains when it is left out\n",
		        CHAINS_EACH);
		return 2;
	}
	if (office_start_signer(NULL) != 0)
		return 2;
	office_open(&office, MODALITY_HASH_ONLY, INT64_C(1) << 40);
	chains_copy(office.service.store, office.sample.account, office.sample.channel, count,
	            accounts);
	register_in_each(count, accounts);
	struct sealing sealing;
	check(sealing_init(&sealing, &office.service));
	long before_kib = memory_kib("VmRSS:");
	forget_peak();
	int64_t begin_us = clock_monotonic_us();
	seal_all(&sealing);
	int64_t spent_us = clock_monotonic_us() - begin_us;
	struct counters *counters = &office.service.counters;
	printf("%" PRIdFAST64 " segments of %ld chains of %ld accounts in %" PRIdFAST64
	       " timestamps: %.1f s, longest transactions %.0f ms (a block), %.0f ms (a round),"
	       " resident %.1f MiB before, %.1f MiB at most\n",
	       atomic_load(&counters->sealed_segments), count, accounts,
	       atomic_load(&counters->seal_rounds), (double)spent_us / 1e6,
	       (double)longest_us[STAGING] / 1e3, (double)longest_us[WRITING] / 1e3,
	       (double)before_kib / 1024, (double)memory_kib("VmHWM:") / 1024);
	sealing_free(&sealing);
	office_close(&office);
	return office_stop_signer(NULL);
}
