/* The index of client_refs: ours compared with RocksDB, each doing what a batch of registrations
 * needs from it.
 *
 * usage: bench-refs DIRECTORY EVENTS [BATCH]
 * Registers EVENTS events of one chain in the directory, which it makes, once for each way; each
 * way is a process of its own. A batch looks each client_ref up, of which one in 100 is there
 * already, and adds the others with its commit. Events themselves are written the same way by all,
 * in short rows, and "none" writes nothing else: what a way costs is what it takes more than that.
 *
 * RocksDB is without a log of its own, as the index is derived: each write has the place of its
 * last event, and a start adds those events that came behind what is in its files. Its process ends
 * without closing it, so that there are such. It looks a whole batch up at once, has filters of 10
 * bits an entry, and no compression, since hashes cannot be compressed.
 *
 * Processor time is that of all threads of a process; memory is what it has of its own (RssAnon)
 * at the end, and after a start. Rates are by the clock: on a machine with other work to do they
 * say nothing. Starts are of the index alone. */
#include <dirent.h>
#include <errno.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/events/client_ref_events.h"
#include "store/events/client_refs.h"
#include "store/store_internal.h"

#define BATCH_MAX 1024
#define REPEATED 100 /* the interval of repeated references */
#define CHAIN 1
#define CHECKED 2000 /* found again after a start */
#define PLACE_KEY "at"

enum way { NONE, OURS, LEVELS, UNIVERSAL, WAYS };
static const char *const names[WAYS] = {"none", "ours", "RocksDB, levels", "RocksDB, universal"};

struct figures {
	double seconds, processor; /* of registering */
	double written;            /* bytes, by write calls */
	double start_seconds, start_processor;
	double memory, start_memory; /* bytes */
	double file;                 /* bytes on the disk, of RocksDB alone */
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "bench-refs: %s: %s\n", what, why);
	exit(2);
}

static void check(int result, const struct error *error)
{
	if (result)
		fail(error_message(error, LANGUAGE_ENGLISH), error->cause);
}

/* ---- what a process took ---- */

static double number_in_file(const char *path, const char *name)
{
	char line[256];
	double number = 0;
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, name, strlen(name)) == 0)
			number = strtod(line + strlen(name), NULL);
	if (file)
		fclose(file);
	return number;
}

static double own_memory(void)
{
	return number_in_file("/proc/self/status", "RssAnon:") * 1024;
}

static double processor_seconds(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static double directory_size(const char *path)
{
	char name[768];
	double size = 0;
	DIR *directory = opendir(path);
	struct dirent *entry;
	while (directory && (entry = readdir(directory))) {
		struct stat status;
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		if (stat(name, &status) == 0 && S_ISREG(status.st_mode))
			size += (double)status.st_size;
	}
	if (directory)
		closedir(directory);
	return size;
}

/* ---- events ---- */

struct run {
	enum way way;
	char path[256];
	struct store *store;
	struct client_refs *refs;
	rocksdb_t *rocks;
	rocksdb_column_family_handle_t *family;
	rocksdb_readoptions_t *reading;
	rocksdb_writeoptions_t *writing;
	int64_t events; /* registered */
	int64_t found, repeated;
};

static void write_ref(int64_t number, char text[32])
{
	snprintf(text, 32, "order-%012lld", (long long)number);
}

static int64_t hash_of(int64_t number)
{
	char text[32];
	write_ref(number, text);
	return client_ref_hash(slice_of(text));
}

static void write_event(struct db_connection *connection, int64_t number)
{
	char text[32];
	struct error error;
	struct db_query *query =
		db_query(connection, "INSERT INTO events_arrived(arrival, event, account, key, client_ref,"
	                         " received_at, hash, config_version, chain_hash)"
	                         " VALUES ($1, $2, 1, 1, $3, 1, x'', 1, x'')");
	write_ref(number, text);
	db_bind_integer(query, number);
	db_bind_integer(query, event_number(CHAIN, number));
	db_bind_string(query, text);
	check(db_execute(query, NULL, &error), &error);
}

/* What a batch asks for: the next events, and now and then one that is there. */
struct batch {
	int64_t numbers[BATCH_MAX];
	bool is_new[BATCH_MAX];
	size_t count;
};

static void fill(struct batch *batch, struct run *run, size_t count)
{
	static uint64_t state = 1;
	int64_t next = run->events;
	for (size_t i = 0; i < count; i++) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		bool again = run->events > 0 && (state >> 33) % REPEATED == 0;
		batch->numbers[i] = again ? 1 + (int64_t)((state >> 20) % (uint64_t)run->events) : ++next;
		run->repeated += again;
	}
	batch->count = count;
}

/* ---- ours ---- */

static void find_ours(struct run *run, struct db_connection *connection, struct batch *batch)
{
	struct error error;
	for (size_t i = 0; i < batch->count; i++) {
		int64_t found[8];
		size_t count = 0;
		check(client_refs_find(run->refs, connection, 1, CHAIN, hash_of(batch->numbers[i]), found,
		                       8, &count, &error),
		      &error);
		batch->is_new[i] = count == 0;
	}
}

static void add_ours(struct run *run, struct db_connection *connection, const struct batch *batch)
{
	struct error error = {0};
	for (size_t i = 0; i < batch->count; i++)
		if (batch->is_new[i])
			check(
				client_refs_add(run->refs, 1, CHAIN, hash_of(batch->numbers[i]), batch->numbers[i]),
				&error);
	check(client_refs_write(run->refs, connection, &error), &error);
}

/* ---- RocksDB ---- */

static const struct ref_key secret = {{1, 2}};

static void check_rocks(char *error)
{
	if (error)
		fail("RocksDB", error);
}

/* In the order of places, as bytes are compared. */
static uint64_t rocks_key(int64_t number)
{
	return __builtin_bswap64(ref_place(&secret, CHAIN, hash_of(number)));
}

static void open_rocks(struct run *run)
{
	char path[300], *error = NULL;
	const char *family = "default";
	rocksdb_options_t *options = rocksdb_options_create();
	rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
	rocksdb_block_based_options_set_filter_policy(table,
	                                              rocksdb_filterpolicy_create_bloom_full(10));
	rocksdb_options_set_block_based_table_factory(options, table);
	rocksdb_options_set_create_if_missing(options, 1);
	rocksdb_options_set_compression(options, rocksdb_no_compression);
	rocksdb_options_set_write_buffer_size(options, (size_t)8 << 20);
	rocksdb_options_set_max_background_jobs(options, 2);
	rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
	rocksdb_options_set_compaction_style(
		options, run->way == UNIVERSAL ? rocksdb_universal_compaction : rocksdb_level_compaction);
	snprintf(path, sizeof path, "%s/rocks", run->path);
	run->rocks = rocksdb_open_column_families(options, path, 1, &family,
	                                          (const rocksdb_options_t *const *)&options,
	                                          &run->family, &error);
	check_rocks(error);
	run->reading = rocksdb_readoptions_create();
	run->writing = rocksdb_writeoptions_create();
	rocksdb_writeoptions_disable_WAL(run->writing, 1);
}

static void find_rocks(struct run *run, struct batch *batch)
{
	static uint64_t keys[BATCH_MAX];
	static const char *pointers[BATCH_MAX];
	static size_t sizes[BATCH_MAX];
	static rocksdb_pinnableslice_t *values[BATCH_MAX];
	static char *errors[BATCH_MAX];
	for (size_t i = 0; i < batch->count; i++) {
		keys[i] = rocks_key(batch->numbers[i]);
		pointers[i] = (const char *)&keys[i];
		sizes[i] = sizeof keys[i];
	}
	rocksdb_batched_multi_get_cf(run->rocks, run->reading, run->family, batch->count, pointers,
	                             sizes, values, errors, false);
	for (size_t i = 0; i < batch->count; i++) {
		check_rocks(errors[i]);
		batch->is_new[i] = values[i] == NULL;
		if (values[i])
			rocksdb_pinnableslice_destroy(values[i]);
	}
}

static void put_rocks(rocksdb_writebatch_t *writes, int64_t number)
{
	const uint64_t key = rocks_key(number);
	const int64_t event = event_number(CHAIN, number);
	rocksdb_writebatch_put(writes, (const char *)&key, sizeof key, (const char *)&event,
	                       sizeof event);
}

static void write_rocks(struct run *run, rocksdb_writebatch_t *writes, int64_t last)
{
	char *error = NULL;
	rocksdb_writebatch_put(writes, PLACE_KEY, strlen(PLACE_KEY), (const char *)&last, sizeof last);
	rocksdb_write(run->rocks, run->writing, writes, &error);
	check_rocks(error);
}

static void add_rocks(struct run *run, const struct batch *batch)
{
	rocksdb_writebatch_t *writes = rocksdb_writebatch_create();
	for (size_t i = 0; i < batch->count; i++)
		if (batch->is_new[i])
			put_rocks(writes, batch->numbers[i]);
	write_rocks(run, writes, run->events);
	rocksdb_writebatch_destroy(writes);
}

static int add_again(void *context, const struct ref_event *event, struct error *error)
{
	(void)error;
	put_rocks(context, event->event & EVENT_SEQUENCE_MAX);
	return OK;
}

/* What came behind what its files have. */
static void replay_rocks(struct run *run)
{
	char *failed = NULL;
	size_t size = 0;
	bool ended = false;
	struct error error = {0};
	struct ref_events_position position = {0};
	char *value =
		rocksdb_get(run->rocks, run->reading, PLACE_KEY, strlen(PLACE_KEY), &size, &failed);
	check_rocks(failed);
	if (size == sizeof position.arrived)
		memcpy(&position.arrived, value, size);
	free(value);
	struct db_connection *reader = db_take_reader(run->store->db);
	while (!ended) {
		rocksdb_writebatch_t *writes = rocksdb_writebatch_create();
		check(ref_events_read(reader, &position, 10000, add_again, writes, &ended, &error), &error);
		write_rocks(run, writes, position.arrived);
		rocksdb_writebatch_destroy(writes);
	}
	db_give(reader);
}

/* ---- a way ---- */

static void open_index(struct run *run)
{
	struct error error = {0};
	if (run->way == OURS) {
		const struct client_refs_shape shape = client_refs_usual_shape();
		struct db_connection *reader = db_take_reader(run->store->db);
		check(client_refs_open(reader, &shape, &run->refs, &error), &error);
		db_give(reader);
	} else if (run->way != NONE) {
		open_rocks(run);
		replay_rocks(run);
	}
}

static void open_store(struct run *run, bool create)
{
	char url[300];
	struct error error = {0};
	snprintf(url, sizeof url, "sqlite:%s/store.db", run->path);
	check(store_open(&(struct db_options){.url = url, .create = create}, &run->store, &error),
	      &error);
}

static void one_batch(struct run *run, size_t count)
{
	static struct batch batch;
	struct error error = {0};
	fill(&batch, run, count);
	struct db_connection *connection = db_take_registrar(run->store->db, 0, 1);
	check(db_begin(connection, &error), &error);
	if (run->way == OURS)
		find_ours(run, connection, &batch);
	else if (run->way != NONE)
		find_rocks(run, &batch);
	const int64_t before = run->events;
	for (size_t i = 0; i < batch.count; i++) {
		bool is_new = batch.numbers[i] > before;
		if (run->way != NONE && batch.is_new[i] != is_new)
			fail(names[run->way], "what it found is wrong");
		if (is_new)
			write_event(connection, ++run->events);
	}
	if (run->way == OURS)
		add_ours(run, connection, &batch);
	check(db_commit(connection, &error), &error);
	if (run->way == OURS)
		client_refs_committed(run->refs);
	else if (run->way != NONE)
		add_rocks(run, &batch);
	db_give(connection);
	check(db_maintain(run->store->db, &error), &error);
}

static void find_again(struct run *run)
{
	static struct batch batch;
	struct db_connection *reader = db_take_reader(run->store->db);
	for (size_t checked = 0; checked < CHECKED && run->way != NONE; checked += batch.count) {
		batch.count = 100;
		for (size_t i = 0; i < batch.count; i++)
			batch.numbers[i] =
				run->events - (int64_t)((checked + i) * (size_t)run->events / CHECKED);
		if (run->way == OURS)
			find_ours(run, reader, &batch);
		else
			find_rocks(run, &batch);
		for (size_t i = 0; i < batch.count; i++)
			if (batch.is_new[i])
				fail(names[run->way], "an event is not found after a start");
	}
	db_give(reader);
}

/* In a process of its own, which ends as a killed one does. */
static void in_process(void (*function)(struct run *, struct figures *), struct run *run,
                       struct figures *figures)
{
	int ends[2], status;
	fflush(stdout);
	if (pipe(ends))
		fail("pipe", strerror(errno));
	pid_t process = fork();
	if (process == 0) {
		function(run, figures);
		if (write(ends[1], figures, sizeof *figures) != sizeof *figures)
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	bool told = read(ends[0], figures, sizeof *figures) == sizeof *figures;
	close(ends[0]);
	if (waitpid(process, &status, 0) < 0 || status || !told)
		fail(names[run->way], "its process failed");
}

static int64_t wanted;
static size_t batch_size = 256;

static void register_all(struct run *run, struct figures *figures)
{
	open_store(run, true);
	open_index(run);
	const double before = processor_seconds();
	const double wrote = number_in_file("/proc/self/io", "wchar:");
	const int64_t began = clock_monotonic_us();
	while (run->events < wanted)
		one_batch(run, batch_size);
	figures->seconds = (double)(clock_monotonic_us() - began) / 1e6;
	figures->processor = processor_seconds() - before;
	figures->written = number_in_file("/proc/self/io", "wchar:") - wrote;
	figures->memory = own_memory();
}

static void start(struct run *run, struct figures *figures)
{
	char path[300];
	open_store(run, false);
	struct db_connection *reader = db_take_reader(run->store->db);
	struct db_query *query = db_query(reader, "SELECT MAX(arrival) FROM events_arrived");
	run->events = db_step(query) ? db_integer(query, 0) : 0;
	db_release(query);
	db_give(reader);
	const double before = processor_seconds();
	const int64_t began = clock_monotonic_us();
	open_index(run);
	figures->start_seconds = (double)(clock_monotonic_us() - began) / 1e6;
	figures->start_processor = processor_seconds() - before;
	figures->start_memory = own_memory();
	snprintf(path, sizeof path, "%s/rocks", run->path);
	figures->file = directory_size(path);
	find_again(run);
}

static void remove_all(const char *path)
{
	char name[600];
	DIR *directory = opendir(path);
	struct dirent *entry;
	while (directory && (entry = readdir(directory))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		if (unlink(name))
			remove_all(name);
	}
	if (directory)
		closedir(directory);
	rmdir(path);
}

static struct figures measure(const char *directory, enum way way)
{
	struct figures figures = {0};
	struct run run = {.way = way};
	snprintf(run.path, sizeof run.path, "%s/%d", directory, way);
	if (mkdir(run.path, 0700))
		fail(run.path, strerror(errno));
	in_process(register_all, &run, &figures);
	in_process(start, &run, &figures);
	remove_all(run.path);
	return figures;
}

#define MIB (1024.0 * 1024)

static void print(enum way way, const struct figures *figures, const struct figures *none,
                  const struct figures *ours)
{
	const double each = 1e6 / (double)wanted;
	printf(
		"%-20s %9.0f/s %7.2f us %8.0f B %8.1f MiB  start %7.3f s, %6.3f s of processor, %6.1f MiB",
		names[way], (double)wanted / figures->seconds, figures->processor * each,
		figures->written / (double)wanted, figures->memory / MIB, figures->start_seconds,
		figures->start_processor, figures->start_memory / MIB);
	if (way > OURS)
		printf(", %.0f MiB of files", figures->file / MIB);
	printf("\n");
	if (way == NONE)
		return;
	printf("  of the index alone  %7.2f us of processor, %.0f B, %.1f MiB\n",
	       (figures->processor - none->processor) * each,
	       (figures->written - none->written) / (double)wanted,
	       (figures->memory - none->memory) / MIB);
	if (way > OURS)
		printf(
			"  ours to it          processor: of all %.2f, of the index %.2f; memory %.2f; start %.2f;"
			" rate by the clock %.2f\n",
			ours->processor / figures->processor,
			(ours->processor - none->processor) / (figures->processor - none->processor),
			(ours->memory - none->memory) / (figures->memory - none->memory),
			ours->start_processor / figures->start_processor, figures->seconds / ours->seconds);
}

int main(int argc, char **argv)
{
	struct figures figures[WAYS];
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: bench-refs DIRECTORY EVENTS [BATCH]\n");
		return 2;
	}
	wanted = strtoll(argv[2], NULL, 10);
	if (argc == 4)
		batch_size = strtoul(argv[3], NULL, 10);
	if (wanted < 1 || batch_size < 1 || batch_size > BATCH_MAX)
		fail("arguments", "EVENTS is at least 1, BATCH 1 to 1024");
	if (mkdir(argv[1], 0700))
		fail(argv[1], strerror(errno));
	printf(
		"%lld events, %zu a batch; rate, processor time and bytes written for an event, memory\n",
		(long long)wanted, batch_size);
	for (enum way way = NONE; way < WAYS; way++) {
		figures[way] = measure(argv[1], way);
		print(way, &figures[way], &figures[NONE], &figures[OURS]);
	}
	rmdir(argv[1]);
	return 0;
}
