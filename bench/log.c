/* The log of segments at size: its tree in a store, and what is computed from it.
 *
 * usage: bench-log DIRECTORY LEAVES [PROOFS]
 * Appends LEAVES random leaves to a store in DIRECTORY, by blocks of 1,024 in one transaction each,
 * and prints microseconds per leaf; then the microseconds of a root, which a checkpoint needs, and
 * of PROOFS inclusion and consistency proofs at random places (1,000), each with nothing read
 * before. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/digest.h"
#include "sample.h"
#include "store/tlog/append.h"

#define BLOCK 1024

static struct sample sample;
static struct tile_reader reader;
static uint64_t tiles_read;

static void check(int result, const struct error *error)
{
	if (!result)
		return;
	fprintf(stderr, "bench-log: %s (%s)\n", error_message(error, LANGUAGE_ENGLISH), error->cause);
	exit(2);
}

static uint64_t random_below(uint64_t bound)
{
	uint64_t value;
	random_bytes(&value, sizeof value);
	return value % bound;
}

static void append(uint64_t size, size_t count)
{
	static struct sha256 leaves[BLOCK];
	struct error space = {0}, *error = &space;
	random_bytes(leaves, count * sizeof *leaves);
	struct db_connection *connection = begin_write(sample.store, &error);
	check(end_write(connection, log_append(connection, size, leaves, count, error), error), error);
}

static int read_tile(void *context, const struct tile_id *id, struct sha256 *ret_hashes,
                     struct error *error)
{
	tiles_read++;
	return store_read_log_tile(context, id, ret_hashes, error);
}

enum subject { ROOT, INCLUSION, CONSISTENCY };

static void compute(enum subject subject, uint64_t size)
{
	const struct tile_store tiles = {.read = read_tile, .context = sample.store};
	const struct merkle_source source = tile_reader_init(&reader, &tiles, size);
	struct merkle_path path;
	struct sha256 root;
	struct error error = {0};
	if (subject == ROOT)
		check(merkle_root(&source, size, &root, &error), &error);
	else if (subject == INCLUSION)
		check(merkle_prove_inclusion(&source, random_below(size), size, &path, &error), &error);
	else
		check(merkle_prove_consistency(&source, 1 + random_below(size), size, &path, &error),
		      &error);
}

static void measure(const char *name, enum subject subject, uint64_t size, uint64_t count)
{
	int64_t begin_us = clock_monotonic_us(), longest_us = 0;
	tiles_read = 0;
	for (uint64_t i = 0; i < count; i++) {
		int64_t start_us = clock_monotonic_us();
		compute(subject, size);
		int64_t spent_us = clock_monotonic_us() - start_us;
		longest_us = spent_us > longest_us ? spent_us : longest_us;
	}
	printf("%s: %.1f us each, %" PRId64 " us at most, %.1f tiles read\n", name,
	       (double)(clock_monotonic_us() - begin_us) / (double)count, longest_us,
	       (double)tiles_read / (double)count);
}

int main(int argc, char **argv)
{
	struct error error = {0};
	uint64_t leaves = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t proofs = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000;
	if (leaves < 1 || leaves > MERKLE_SIZE_MAX || proofs < 1) {
		fprintf(stderr, "usage: bench-log DIRECTORY LEAVES [PROOFS]\n");
		return 2;
	}
	char url[4096];
	snprintf(url, sizeof url, "sqlite:%s/log.db", argv[1]);
	check(store_open(&(struct db_options){.url = url, .create = true}, &sample.store, &error),
	      &error);
	int64_t begin_us = clock_monotonic_us();
	for (uint64_t size = 0; size < leaves; size += BLOCK)
		append(size, leaves - size < BLOCK ? (size_t)(leaves - size) : BLOCK);
	printf("append: %.2f us per leaf\n",
	       (double)(clock_monotonic_us() - begin_us) / (double)leaves);
	measure("root", ROOT, leaves, proofs);
	measure("inclusion proof", INCLUSION, leaves, proofs);
	measure("consistency proof", CONSISTENCY, leaves, proofs);
	store_close(sample.store);
	return 0;
}
