/* Sealing alone: what a round over many chains costs.
 *
 * usage: CONSTANCIA_RENDERER=PROGRAM bench-rounds CHAINS
 * Makes a store below /tmp with so many live chains of one event each, and seals them as the sealer
 * does. Tells the timestamps taken, the seconds, the longest transaction, and the resident memory
 * before and at most while it sealed. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "office.h"
#include "service/seal_round.h"
#include "store/internal.h"

#define BATCH 1000

static struct office office;
static struct error error;
static int64_t longest_us;

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

static int note(int64_t begin_us, int result)
{
	int64_t spent_us = clock_monotonic_us() - begin_us;
	longest_us = spent_us > longest_us ? spent_us : longest_us;
	return result;
}

int __wrap_store_stage_block(struct store *store, const struct round_block *block,
                             const struct segment_record *segments, size_t count,
                             size_t *ret_failed, struct error *why)
{
	int64_t begin_us = clock_monotonic_us();
	return note(begin_us, __real_store_stage_block(store, block, segments, count, ret_failed, why));
}

int __wrap_store_write_round(struct store *store, const struct round_record *round,
                             struct error *why)
{
	int64_t begin_us = clock_monotonic_us();
	return note(begin_us, __real_store_write_round(store, round, why));
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

static void run(const char *sql)
{
	struct db_connection *writer = db_take_writer(office.service.store->db);
	check(db_begin(writer, &error));
	check(db_run(writer, sql, &error));
	check(db_commit(writer, &error));
	db_give(writer);
}

/* Copies of the sample's channel: numbers behind its own. */
static void add_channels(long count)
{
	static const char *const copies[] = {
		"INSERT INTO channels SELECT account, channel + n, substr(channel_id, 1, 8) || n, created_at, suspended,"
		" config_version FROM channels, numbers",
		"INSERT INTO channel_configs SELECT account, channel + n, version, sealed_at, modality,"
		" name, description, declarant, supplementary_info, config_hash"
		" FROM channel_configs, numbers",
		"INSERT INTO chains (account, chain, created_at, genesis_hash, last_chain_hash)"
		" SELECT account, chain + 2 * n, created_at, genesis_hash, last_chain_hash"
		" FROM chains, numbers",
	};
	char sql[1024];
	snprintf(sql, sizeof sql,
	         "CREATE TABLE numbers AS WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL"
	         " SELECT n + 1 FROM more WHERE n < %ld) SELECT n FROM more",
	         count - 1);
	run(sql);
	for (size_t i = 0; i < sizeof copies / sizeof *copies && count > 1; i++)
		run(copies[i]);
	run("DROP TABLE numbers");
}

static void register_in_each(long count)
{
	static struct registration items[BATCH];
	static struct registration *pointers[BATCH];
	static char refs[BATCH][24];
	ARENA_AUTO struct arena arena;
	arena_init(&arena, (size_t)16 << 20);
	for (long done = 0; done < count; done += BATCH) {
		size_t batch = 0;
		for (; batch < BATCH && done + (long)batch < count; batch++) {
			int64_t channel = office.sample.channel + done + (long)batch;
			snprintf(refs[batch], sizeof refs[batch], "ref-%" PRId64, channel);
			items[batch] = (struct registration){
				.account = office.sample.account,
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
		check(sealing_room(sealing, &staged, &full, &error));
		if (full)
			check(seal_close(sealing, &error));
	}
	check(seal_close(sealing, &error));
}

int main(int argc, char **argv)
{
	long count = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
	if (count < 1) {
		fprintf(stderr, "usage: CONSTANCIA_RENDERER=PROGRAM bench-rounds CHAINS\n");
		return 2;
	}
	if (office_start_signer(NULL) != 0)
		return 2;
	office_open(&office, MODALITY_HASH_ONLY, INT64_C(1) << 40);
	add_channels(count);
	register_in_each(count);
	struct sealing sealing;
	check(sealing_init(&sealing, &office.service));
	long before_kib = memory_kib("VmRSS:");
	forget_peak();
	int64_t begin_us = clock_monotonic_us();
	seal_all(&sealing);
	int64_t spent_us = clock_monotonic_us() - begin_us;
	struct counters *counters = &office.service.counters;
	printf("%" PRIdFAST64 " segments of %ld chains in %" PRIdFAST64
	       " timestamps: %.1f s, longest transaction %.0f ms, resident %.1f MiB before, %.1f MiB"
	       " at most\n",
	       atomic_load(&counters->sealed_segments), count, atomic_load(&counters->seal_rounds),
	       (double)spent_us / 1e6, (double)longest_us / 1e3, (double)before_kib / 1024,
	       (double)memory_kib("VmHWM:") / 1024);
	sealing_free(&sealing);
	office_close(&office);
	return office_stop_signer(NULL);
}
