#include "store/events/client_ref_runs.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <zlib.h>

#include "base/tuned.h"
#include "store/store_internal.h"

#define LEVELS_MAX 32
#define MERGE_RUNS_RESERVED 16 /* runs that flushes leave for merges while some are suspended */
#define RUN_BITS 32            /* row of a bucket or of a group of filters: run << 32 | number */
/* The row number after the last row of a run must also be valid. Numbers of removed runs are
 * reused. */
#define RUN_MAX ((INT64_MAX >> RUN_BITS) - 1)
/* Memory that is no longer read is released in multiples of this size, which are whole pages of up
 * to 64 KiB. Releasing a part of a page would discard the whole page. */
#define RELEASED_AT_ONCE ((size_t)1 << 16)

struct run {
	int64_t number, level, entries, buckets;
	int64_t filled;           /* buckets written; all of them: the run is complete */
	int64_t into;             /* number of the run that it is being merged into; 0: none */
	const struct run *merged; /* the run with number `into` */
	int64_t filter_size;      /* bytes per bucket */
	unsigned char *filter;    /* of all buckets, each at a multiple of its size */
	size_t released;          /* bytes at the start of `filter` that are released */
	int64_t owed;             /* entries that still have to be advanced */
	bool stuck;               /* a source could not be read; until a repair */
	bool checked;             /* its blocks have checksums */
	bool filters_lost;        /* damaged and rebuilt from the buckets, but not yet written */
	/* State of the current transaction. */
	bool gone;
	int64_t filled_next, into_next, owed_next;
};

struct ref_runs {
	struct ref_shape shape;
	struct run items[CLIENT_REF_RUNS_MAX]; /* in order of level */
	size_t count;
	struct run fresh[CLIENT_REF_RUNS_MAX]; /* begun by the current transaction */
	size_t fresh_count;
	int64_t last_number;
	uint64_t generation;
	pthread_mutex_t bad_lock;
	struct ref_bad bad[CLIENT_REF_BAD_MAX];
	size_t bad_count;
	struct {             /* by the current transaction */
		struct run *run; /* NULL: none */
		int64_t bucket;
		unsigned char filter[CLIENT_REF_FILTER_SIZE];
	} repaired;
	struct ref_list group; /* being assembled */
};

/* ---- places ---- */

static uint64_t mix(uint64_t mixed)
{
	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ mixed >> 31;
}

uint64_t ref_place(const struct ref_key *key, int64_t chain, int64_t ref_hash)
{
	uint64_t mixed = (uint64_t)ref_hash ^ (uint64_t)chain * UINT64_C(0x9e3779b97f4a7c15);
	return mix(mix(mixed ^ key->words[0]) + key->words[1]);
}

int ref_compare(const void *a, const void *b)
{
	const struct ref_entry *left = a;
	const struct ref_entry *right = b;
	if (left->place != right->place)
		return left->place < right->place ? -1 : 1;
	return (left->event > right->event) - (left->event < right->event);
}

int ref_list_add(struct ref_list *list, const struct ref_entry *entry)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 4096;
		struct ref_entry *items = reallocarray(list->items, capacity, sizeof *items);
		if (!items)
			return ERR_NO_MEMORY;
		list->items = items;
		list->capacity = capacity;
	}
	list->items[list->count++] = *entry;
	return OK;
}

void ref_list_sort(struct ref_list *list)
{
	if (list->count > 0)
		qsort(list->items, list->count, sizeof *list->items, ref_compare);
}

static int64_t bucket_of(int64_t buckets, uint64_t place)
{
	return (int64_t)((unsigned __int128)place * (uint64_t)buckets >> 64);
}

/* Returns the first place of a bucket; not defined for the bucket after the last one. */
static uint64_t first_place(int64_t buckets, int64_t bucket)
{
	assert(bucket >= 0 && bucket < buckets);
	unsigned __int128 scaled = (unsigned __int128)bucket << 64;
	return (uint64_t)((scaled + (uint64_t)buckets - 1) / (uint64_t)buckets);
}

static int64_t row_of(int64_t run, int64_t number)
{
	return run << RUN_BITS | number;
}

static int64_t run_of(int64_t row)
{
	return row >> RUN_BITS;
}

static int64_t number_in(int64_t row)
{
	return row & (((int64_t)1 << RUN_BITS) - 1);
}

/* ---- checksums ---- */

int64_t ref_checksum(int64_t place, const void *data, size_t size)
{
	unsigned long sum = crc32_z(0, (const unsigned char *)&place, sizeof place);
	return (int64_t)crc32_z(sum, data, size);
}

/* Returns the checksum after the commit of the current transaction. */
static int64_t checksum_of_run(const struct run *run)
{
	const int64_t columns[] = {run->level,     run->entries,     run->buckets, run->filled_next,
	                           run->into_next, run->filter_size, run->checked};
	return ref_checksum(run->number, columns, sizeof columns);
}

/* ---- filters ---- */

#define FILTER_PROBES 5

/* The places of a bucket share their upper bits, so the lower bits determine the product. */
static unsigned filter_bit(const struct run *run, uint64_t place, int probe)
{
	uint64_t mixed = place * UINT64_C(0xd6e8feb86659fd93);
	return (unsigned)((mixed >> (4 + probe * 12) & 0xfff) * (uint64_t)(8 * run->filter_size) >> 12);
}

static unsigned char *filter_of(const struct run *run, int64_t bucket)
{
	assert(bucket >= 0 && bucket <= run->buckets); /* or the end of them */
	return run->filter + bucket * run->filter_size;
}

static void filter_put(const struct run *run, unsigned char *filter, uint64_t place)
{
	for (int i = 0; i < FILTER_PROBES; i++) {
		unsigned bit = filter_bit(run, place, i);
		filter[bit / 8] |= (unsigned char)(1 << bit % 8);
	}
}

static void filter_add(const struct run *run, int64_t bucket, uint64_t place)
{
	filter_put(run, filter_of(run, bucket), place);
}

static bool filter_has(const struct run *run, int64_t bucket, uint64_t place)
{
	const unsigned char *filter = filter_of(run, bucket);
	for (int i = 0; i < FILTER_PROBES; i++) {
		unsigned bit = filter_bit(run, place, i);
		if (!(filter[bit / 8] >> bit % 8 & 1))
			return false;
	}
	return true;
}

static bool filter_is_empty(const struct run *run, int64_t bucket)
{
	const unsigned char *filter = filter_of(run, bucket);
	for (int64_t i = 0; i < run->filter_size; i++)
		if (filter[i])
			return false;
	return true;
}

static size_t filter_bytes(const struct run *run)
{
	return (size_t)(run->buckets * run->filter_size);
}

static void free_filter(struct run *run)
{
	if (run->filter)
		munmap(run->filter, filter_bytes(run));
}

/* ---- the list ---- */

static bool is_whole(const struct run *run)
{
	return run->filled == run->buckets;
}

static struct run *find_run(struct ref_runs *runs, int64_t number)
{
	for (size_t i = 0; i < runs->count; i++)
		if (runs->items[i].number == number)
			return &runs->items[i];
	return NULL;
}

static void link_runs(struct ref_runs *runs)
{
	for (size_t i = 0; i < runs->count; i++)
		runs->items[i].merged = find_run(runs, runs->items[i].into);
}

static size_t room_of(const struct ref_runs *runs)
{
	return CLIENT_REF_RUNS_MAX - runs->count - runs->fresh_count;
}

static int make_filter(const struct ref_runs *runs, struct run *run, struct error *error)
{
	if (room_of(runs) == 0)
		return error_cause(error, ERR_CORRUPT, "the client_ref index has too many runs");
	void *memory =
		mmap(NULL, filter_bytes(run), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	run->filter = memory == MAP_FAILED ? NULL : memory;
	return run->filter ? OK : ERR_NO_MEMORY;
}

/* Inserts after the runs of its level, so that the sources of a merge come before the merged
 * run. */
static void add_run(struct ref_runs *runs, struct run run)
{
	assert(runs->count < CLIENT_REF_RUNS_MAX);
	size_t at = runs->count++;
	for (; at > 0 && runs->items[at - 1].level > run.level; at--)
		runs->items[at] = runs->items[at - 1];
	runs->items[at] = run;
	runs->last_number = run.number;
}

static void remove_run(struct ref_runs *runs, size_t at)
{
	free_filter(&runs->items[at]);
	runs->count--;
	for (; at < runs->count; at++)
		runs->items[at] = runs->items[at + 1];
}

static void forget_fresh(struct ref_runs *runs)
{
	for (size_t i = 0; i < runs->fresh_count; i++)
		free_filter(&runs->fresh[i]);
	runs->fresh_count = 0;
}

/* ---- opening ---- */

/* Returns the bucket of a source in which the merged run's bucket begins. */
static int64_t source_bucket(const struct run *source, const struct run *merged, int64_t bucket)
{
	return bucket == merged->buckets
	           ? source->buckets
	           : bucket_of(source->buckets, first_place(merged->buckets, bucket));
}

static int corrupt_bucket(int64_t row, struct error *error)
{
	return error_cause(error, ERR_CORRUPT, "client_ref index: run %lld, bucket %lld is damaged",
	                   (long long)run_of(row), (long long)number_in(row));
}

static struct ref_entry entry_at(struct slice entries, size_t number)
{
	struct ref_entry entry;
	memcpy(&entry, entries.data + number * sizeof entry, sizeof entry);
	return entry;
}

/* Checks the order of entries that were written without a checksum. */
static bool is_in_order(const struct run *run, int64_t bucket, struct slice entries)
{
	for (size_t i = 0; i < entries.size / sizeof(struct ref_entry); i++) {
		struct ref_entry entry = entry_at(entries, i);
		struct ref_entry before = {0};
		if (i > 0)
			before = entry_at(entries, i - 1);
		if (entry.event <= 0 || ref_compare(&before, &entry) >= 0 ||
		    bucket_of(run->buckets, entry.place) != bucket)
			return false;
	}
	return true;
}

static bool is_sound_bucket(const struct run *run, int64_t row, struct slice entries,
                            int64_t checksum)
{
	if (entries.size == 0 || entries.size % sizeof(struct ref_entry) ||
	    number_in(row) >= run->buckets)
		return false;
	return run->checked ? checksum == ref_checksum(row, entries.data, entries.size)
	                    : is_in_order(run, number_in(row), entries);
}

/* Selects the buckets of a run from `first` to `last`, both included: place, entries, checksum. */
static struct db_query *select_buckets(struct db_connection *connection, const struct run *run,
                                       int64_t first, int64_t last)
{
	struct db_query *query =
		db_query(connection, "SELECT place, entries, checksum FROM client_ref_buckets"
	                         " WHERE place >= $1 AND place <= $2 ORDER BY place");
	db_bind(query, row_of(run->number, first), row_of(run->number, last));
	return query;
}

/* Iteration over buckets of a run, with the next expected bucket and the number of unreadable
 * ones. */
struct bucket_iterator {
	struct ref_runs *runs;
	const struct run *run;
	struct db_query *query;
	int64_t next, last;
	int64_t row;          /* of the current bucket */
	struct slice entries; /* of the current bucket */
	size_t bad;
};

static struct bucket_iterator begin_buckets(struct ref_runs *runs, struct db_connection *connection,
                                            const struct run *run, int64_t first, int64_t last)
{
	const int64_t end = run->buckets - 1;
	last = last < end ? last : end;
	return (struct bucket_iterator){.runs = runs,
	                                .run = run,
	                                .query = select_buckets(connection, run, first, last),
	                                .next = first,
	                                .last = last};
}

static void note_bad(struct bucket_iterator *bucket_iterator, int64_t bucket)
{
	bucket_iterator->bad++;
	ref_runs_note_bad(bucket_iterator->runs, row_of(bucket_iterator->run->number, bucket));
}

/* Records as missing the buckets before this one, except empty ones, which have no row and an empty
 * filter. */
static void note_missing(struct bucket_iterator *bucket_iterator, int64_t bucket)
{
	for (; bucket_iterator->next < bucket; bucket_iterator->next++)
		if (!filter_is_empty(bucket_iterator->run, bucket_iterator->next))
			note_bad(bucket_iterator, bucket_iterator->next);
}

/* Advances to the next readable bucket. */
static bool next_bucket(struct bucket_iterator *bucket_iterator)
{
	while (db_step(bucket_iterator->query)) {
		bucket_iterator->row = db_integer(bucket_iterator->query, 0);
		bucket_iterator->entries = db_blob(bucket_iterator->query, 1);
		note_missing(bucket_iterator, number_in(bucket_iterator->row));
		bucket_iterator->next = number_in(bucket_iterator->row) + 1;
		if (is_sound_bucket(bucket_iterator->run, bucket_iterator->row, bucket_iterator->entries,
		                    db_integer(bucket_iterator->query, 2)))
			return true;
		note_bad(bucket_iterator, number_in(bucket_iterator->row));
	}
	return false;
}

static int end_buckets(struct bucket_iterator *bucket_iterator, struct error *error)
{
	int result = db_end(bucket_iterator->query, error);
	if (!result)
		note_missing(bucket_iterator, bucket_iterator->last + 1);
	return result;
}

/* Rebuilds the filters from the buckets. The filter of an unreadable bucket admits everything, so
 * that readers detect the damage. With large buckets a missing bucket is not an empty one. */
static int rebuild_filters(struct ref_runs *runs, struct db_connection *connection, struct run *run,
                           int64_t first, struct error *error)
{
	const bool may_be_empty = runs->shape.bucket_entries < 16;
	memset(run->filter, 0, filter_bytes(run));
	if (!may_be_empty)
		memset(filter_of(run, first), 0xff, (size_t)((run->filled - first) * run->filter_size));
	struct db_query *query = select_buckets(connection, run, first, run->filled - 1);
	while (db_step(query)) {
		const int64_t row = db_integer(query, 0);
		const int64_t bucket = number_in(row);
		struct slice entries = db_blob(query, 1);
		bool sound = is_sound_bucket(run, row, entries, db_integer(query, 2));
		if (!sound)
			ref_runs_note_bad(runs, row);
		memset(filter_of(run, bucket), sound ? 0 : 0xff, (size_t)run->filter_size);
		for (size_t i = 0; i < entries.size / sizeof(struct ref_entry) && sound; i++)
			filter_add(run, bucket, entry_at(entries, i).place);
	}
	run->filters_lost = true;
	return db_end(query, error);
}

/* Loads the filters. A source no longer has the groups that the merged run has completely. */
static int load_filters(struct ref_runs *runs, struct db_connection *connection, struct run *run,
                        struct error *error)
{
	const int64_t group = runs->shape.group_buckets;
	const int64_t kept = run->merged ? source_bucket(run, run->merged, run->merged->filled) : 0;
	int64_t loaded = kept / group * group; /* in buckets */
	struct db_query *query =
		db_query(connection, "SELECT place, filter, checksum FROM client_ref_filters"
	                         " WHERE place >= $1 AND place < $2 ORDER BY place");
	db_bind(query, row_of(run->number, 0), row_of(run->number + 1, 0));
	while (db_step(query)) {
		int64_t first = (db_integer(query, 0) - row_of(run->number, 0)) * group;
		struct slice filter = db_blob(query, 1);
		int64_t count = (int64_t)filter.size / run->filter_size;
		if (first != loaded || first + count > run->buckets ||
		    (int64_t)filter.size % run->filter_size)
			break;
		if (run->checked &&
		    db_integer(query, 2) != ref_checksum(db_integer(query, 0), filter.data, filter.size))
			break;
		memcpy(filter_of(run, first), filter.data, filter.size);
		loaded = first + count;
	}
	int result = db_end(query, error);
	if (result || loaded == run->filled)
		return result;
	return rebuild_filters(runs, connection, run, kept, error);
}

static bool is_sound(const struct run *run)
{
	return run->number > 0 && run->number <= RUN_MAX && run->buckets > 0 && run->filled >= 0 &&
	       run->filled <= run->buckets && run->entries >= 0 && run->level >= 0 &&
	       run->level < LEVELS_MAX && run->buckets >> RUN_BITS == 0 &&
	       run->buckets <= run->entries + 1 && run->filter_size > 0 &&
	       run->filter_size <= CLIENT_REF_FILTER_SIZE;
}

static bool has_valid_target(const struct run *run)
{
	return run->into == 0 || (run->merged && run->merged->level == run->level + 1 && is_whole(run));
}

/* Checks that every bucket belongs to a run, which shows that no row of a run is missing. */
static int check_owners(const struct ref_runs *runs, struct db_connection *connection,
                        struct error *error)
{
	int64_t next = 0;
	bool more = true;
	int result = OK;
	while (more && !result) {
		struct db_query *query =
			db_query(connection, "SELECT MIN(place) FROM client_ref_buckets WHERE place >= $1");
		db_bind_integer(query, next);
		more = db_step(query) && !db_is_null(query, 0);
		const int64_t run = more ? run_of(db_integer(query, 0)) : 0;
		result = db_end(query, error);
		if (more && !result && !find_run((struct ref_runs *)runs, run))
			result = error_cause(error, ERR_CORRUPT, "client_ref index: run %lld does not exist",
			                     (long long)run);
		next = row_of(run + 1, 0);
	}
	return result;
}

static int load_runs(struct ref_runs *runs, struct db_connection *connection, struct error *error)
{
	int result = OK;
	struct db_query *query =
		db_query(connection, "SELECT run, level, entries, buckets, filled, goes_into, filter_size,"
	                         " checked, checksum FROM client_ref_runs ORDER BY run");
	while (!result && db_step(query)) {
		struct run run = {.number = db_integer(query, 0),
		                  .level = db_integer(query, 1),
		                  .entries = db_integer(query, 2),
		                  .buckets = db_integer(query, 3),
		                  .filled = db_integer(query, 4),
		                  .into = db_integer(query, 5),
		                  .filter_size = db_integer(query, 6),
		                  .checked = db_integer(query, 7) != 0};
		run.filled_next = run.filled;
		run.into_next = run.into;
		const bool may_lack_checksum = !run.checked && db_is_null(query, 8);
		if (!is_sound(&run) ||
		    (!may_lack_checksum && db_integer(query, 8) != checksum_of_run(&run)))
			result = error_cause(error, ERR_CORRUPT, "client_ref index: run %lld is damaged",
			                     (long long)run.number);
		else
			result = make_filter(runs, &run, error);
		if (!result)
			add_run(runs, run);
	}
	int ended = db_end(query, error);
	result = ended ? ended : result;
	link_runs(runs);
	for (size_t i = 0; i < runs->count && !result; i++)
		if (!has_valid_target(&runs->items[i]))
			result = error_cause(error, ERR_CORRUPT,
			                     "client_ref index: run %lld has an invalid merge target",
			                     (long long)runs->items[i].number);
	if (!result)
		result = check_owners(runs, connection, error);
	for (size_t i = 0; i < runs->count && !result; i++)
		result = load_filters(runs, connection, &runs->items[i], error);
	return result;
}

int ref_runs_open(struct db_connection *connection, struct ref_shape shape,
                  struct ref_runs **ret_runs, struct error *error)
{
	struct ref_runs *runs = calloc(1, sizeof *runs);
	if (!runs)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&runs->bad_lock, NULL);
	runs->shape = shape;
	int result = load_runs(runs, connection, error);
	if (result)
		ref_runs_close(runs);
	else
		*ret_runs = runs;
	return result;
}

void ref_runs_close(struct ref_runs *runs)
{
	if (!runs)
		return;
	while (runs->count > 0)
		remove_run(runs, runs->count - 1);
	forget_fresh(runs);
	free(runs->group.items);
	pthread_mutex_destroy(&runs->bad_lock);
	free(runs);
}

/* ---- finding ---- */

/* Returns whether the place has moved to the merged run. */
static bool has_moved(const struct run *run, uint64_t place)
{
	return run->merged && bucket_of(run->merged->buckets, place) < run->merged->filled;
}

size_t ref_runs_rows(const struct ref_runs *runs, uint64_t place, bool others,
                     struct ref_row rows[CLIENT_REF_RUNS_MAX])
{
	int64_t buckets[CLIENT_REF_RUNS_MAX];
	size_t count = 0;
	/* The filters are far apart in memory: prefetch them together. */
	for (size_t i = 0; i < runs->count; i++) {
		buckets[i] = bucket_of(runs->items[i].buckets, place);
		__builtin_prefetch(filter_of(&runs->items[i], buckets[i]));
	}
	for (size_t i = 0; i < runs->count; i++) {
		const struct run *run = &runs->items[i];
		if (buckets[i] >= run->filled) {
			if (!others)
				continue;
		} else if (has_moved(run, place) || !filter_has(run, buckets[i], place)) {
			continue;
		}
		rows[count++] = (struct ref_row){
			.row = row_of(run->number, buckets[i]), .checked = run->checked, .is_there = !others};
	}
	return count;
}

uint64_t ref_runs_generation(const struct ref_runs *runs)
{
	return runs->generation;
}

int ref_runs_read(struct ref_runs *runs, struct db_connection *connection,
                  const struct ref_row *row, uint64_t place, int64_t chain, int64_t *sequences,
                  size_t max, size_t *count, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT entries, checksum FROM client_ref_buckets WHERE place = $1");
	db_bind_integer(query, row->row);
	bool sound = !row->is_there;
	if (db_step(query)) {
		struct slice entries = db_blob(query, 0);
		sound = entries.size % sizeof(struct ref_entry) == 0 &&
		        (!row->checked ||
		         db_integer(query, 1) == ref_checksum(row->row, entries.data, entries.size));
		for (size_t i = 0; i < entries.size / sizeof(struct ref_entry) && sound; i++) {
			struct ref_entry entry = entry_at(entries, i);
			if (entry.place == place && entry.event >> EVENT_SEQUENCE_BITS == chain && *count < max)
				sequences[(*count)++] = entry.event & EVENT_SEQUENCE_MAX;
		}
	}
	int result = db_end(query, error);
	if (result || sound)
		return result;
	ref_runs_note_bad(runs, row->row);
	return corrupt_bucket(row->row, error);
}

/* ---- unreadable buckets ---- */

void ref_runs_note_bad(struct ref_runs *runs, int64_t row)
{
	pthread_mutex_lock(&runs->bad_lock);
	size_t at = 0;
	while (at < runs->bad_count && runs->bad[at].row != row)
		at++;
	if (at == runs->bad_count && at < CLIENT_REF_BAD_MAX)
		runs->bad[runs->bad_count++] = (struct ref_bad){.row = row};
	pthread_mutex_unlock(&runs->bad_lock);
}

static void forget_bad(struct ref_runs *runs, int64_t row)
{
	pthread_mutex_lock(&runs->bad_lock);
	for (size_t i = 0; i < runs->bad_count; i++)
		if (runs->bad[i].row == row)
			runs->bad[i--] = runs->bad[--runs->bad_count];
	pthread_mutex_unlock(&runs->bad_lock);
}

/* ---- writing a group ---- */

static int64_t group_end(const struct ref_runs *runs, const struct run *run)
{
	int64_t end = run->filled_next + runs->shape.group_buckets;
	return end < run->buckets ? end : run->buckets;
}

static int write_bucket(struct db_connection *connection, const struct run *run, int64_t bucket,
                        const struct ref_entry *entries, size_t count, struct error *error)
{
	assert(bucket < run->buckets);
	if (count == 0)
		return OK;
	for (size_t i = 0; i < count; i++)
		filter_add(run, bucket, entries[i].place);
	struct db_query *query =
		db_query(connection, "INSERT INTO client_ref_buckets(place, entries, checksum)"
	                         " VALUES ($1, $2, $3)");
	const int64_t row = row_of(run->number, bucket);
	db_bind_integer(query, row);
	db_bind_blob(query, entries, count * sizeof *entries);
	db_bind_integer(query, ref_checksum(row, entries, count * sizeof *entries));
	return db_execute(query, NULL, error);
}

static int write_filter(struct db_connection *connection, int64_t row, const void *filter,
                        size_t size, struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO client_ref_filters(place, filter, checksum) VALUES ($1, $2, $3)"
					" ON CONFLICT (place) DO UPDATE SET filter = excluded.filter,"
					" checksum = excluded.checksum");
	db_bind_integer(query, row);
	db_bind_blob(query, filter, size);
	db_bind_integer(query, ref_checksum(row, filter, size));
	return db_execute(query, NULL, error);
}

/* Writes the columns of a run that change. */
static int update_run(struct db_connection *connection, const struct run *run, struct error *error)
{
	struct db_query *query = db_query(
		connection,
		"UPDATE client_ref_runs SET filled = $2, goes_into = $3, checksum = $4 WHERE run = $1");
	db_bind(query, run->number, run->filled_next, run->into_next, checksum_of_run(run));
	return db_execute(query, NULL, error);
}

/* Also updates the filters in memory. They are not read before the buckets take effect, and after a
 * failure the same filters are written again. */
static int write_group(struct ref_runs *runs, struct db_connection *connection, struct run *run,
                       const struct ref_entry *entries, size_t count, struct error *error)
{
	const int64_t first = run->filled_next;
	const int64_t end = group_end(runs, run);
	assert(first < end); /* each group brings the run forward */
	size_t at = 0;
	int result = OK;
	for (int64_t bucket = first; bucket < end && !result; bucket++) {
		size_t from = at;
		while (at < count && bucket_of(run->buckets, entries[at].place) == bucket)
			at++;
		result = write_bucket(connection, run, bucket, entries + from, at - from, error);
	}
	assert(result || at == count);
	if (result)
		return result;
	result = write_filter(connection, row_of(run->number, first / runs->shape.group_buckets),
	                      filter_of(run, first), (size_t)((end - first) * run->filter_size), error);
	if (result)
		return result;
	run->filled_next = end;
	return update_run(connection, run, error);
}

/* A run advances by whole groups. */
static bool is_behind(const struct ref_runs *runs, const struct run *run)
{
	return run->filled_next < run->buckets &&
	       run->owed_next >= runs->shape.bucket_entries * runs->shape.group_buckets;
}

static void add_debt(const struct ref_runs *runs, struct run *run, size_t added)
{
	run->owed_next =
		run->owed + (int64_t)added * runs->shape.moved_per_new + runs->shape.moved_at_least;
}

static void reduce_debt(const struct ref_runs *runs, struct run *run)
{
	run->owed_next -= runs->shape.bucket_entries * runs->shape.group_buckets;
}

static bool is_taken(const struct ref_runs *runs, int64_t number)
{
	for (size_t i = 0; i < runs->fresh_count; i++)
		if (runs->fresh[i].number == number)
			return true;
	return find_run((struct ref_runs *)runs, number) != NULL;
}

/* Ends because there are far fewer runs than numbers. */
static int64_t free_number(const struct ref_runs *runs)
{
	int64_t number = runs->last_number;
	const int64_t most = tuned_up_to("refs_run_max", RUN_MAX);
	assert(most > 2 * CLIENT_REF_RUNS_MAX); /* those that exist, and those that have begun */
	do
		number = number < most ? number + 1 : 1;
	while (is_taken(runs, number));
	return number;
}

static int begin_run(struct ref_runs *runs, struct db_connection *connection, int64_t level,
                     int64_t entries, int64_t *ret_number, struct error *error)
{
	int64_t buckets = entries / runs->shape.bucket_entries + 1;
	struct run run = {.number = free_number(runs),
	                  .level = level,
	                  .entries = entries,
	                  .buckets = buckets,
	                  .filter_size = CLIENT_REF_FILTER_SIZE,
	                  .checked = true};
	int result = make_filter(runs, &run, error);
	if (result)
		return result;
	assert(run.number >= 1 && run.number <= RUN_MAX && run.buckets >> RUN_BITS == 0);
	assert(run.level >= 0 && run.level < LEVELS_MAX && runs->fresh_count < CLIENT_REF_RUNS_MAX);
	runs->fresh[runs->fresh_count++] = run;
	*ret_number = run.number;
	struct db_query *query = db_query(
		connection, "INSERT INTO client_ref_runs(run, level, entries, buckets, filled, goes_into,"
					" filter_size, checked, checksum) VALUES ($1, $2, $3, $4, 0, 0, $5, 1, $6)");
	db_bind(query, run.number, run.level, run.entries, run.buckets, run.filter_size,
	        checksum_of_run(&run));
	return db_execute(query, NULL, error);
}

/* ---- writing a run of level 0 ---- */

bool ref_runs_has_room(const struct ref_runs *runs)
{
	return room_of(runs) > MERGE_RUNS_RESERVED;
}

int ref_runs_begin_flush(struct ref_runs *runs, struct db_connection *connection, size_t entries,
                         struct error *error)
{
	int64_t number;
	return begin_run(runs, connection, 0, (int64_t)entries, &number, error);
}

static struct run *flushed_run(struct ref_runs *runs)
{
	for (size_t i = 0; i < runs->count; i++)
		if (runs->items[i].level == 0 && !is_whole(&runs->items[i]))
			return &runs->items[i];
	return NULL;
}

bool ref_runs_is_flushing(const struct ref_runs *runs)
{
	return flushed_run((struct ref_runs *)runs) != NULL;
}

/* Returns the index of the first sorted entry in this bucket or a later one. */
static size_t first_in(const struct run *run, const struct ref_entry *sorted, size_t count,
                       int64_t bucket)
{
	size_t low = 0;
	size_t high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (bucket_of(run->buckets, sorted[middle].place) < bucket)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t ref_runs_flushed(const struct ref_runs *runs, const struct ref_entry *sorted, size_t count)
{
	const struct run *run = flushed_run((struct ref_runs *)runs);
	return run ? first_in(run, sorted, count, run->filled) : 0;
}

int ref_runs_flush(struct ref_runs *runs, struct db_connection *connection,
                   const struct ref_entry *sorted, size_t count, size_t added, bool *ret_done,
                   struct error *error)
{
	struct run *run = flushed_run(runs);
	int result = OK;
	*ret_done = false;
	if (!run)
		return OK;
	if (run->entries != (int64_t)count)
		return error_cause(error, ERR_CORRUPT,
		                   "client_ref index: the number of entries of run %lld is wrong",
		                   (long long)run->number);
	add_debt(runs, run, added);
	for (; is_behind(runs, run) && !result; reduce_debt(runs, run)) {
		size_t from = first_in(run, sorted, count, run->filled_next);
		size_t to = first_in(run, sorted, count, group_end(runs, run));
		result = write_group(runs, connection, run, sorted + from, to - from, error);
	}
	*ret_done = !result && run->filled_next == run->buckets;
	return result;
}

/* ---- merging ---- */

static int set_merge_target(struct db_connection *connection, struct run *source, int64_t number,
                            struct error *error)
{
	source->into_next = number;
	return update_run(connection, source, error);
}

static bool may_merge(const struct run *run, int64_t level)
{
	return run->level == level && is_whole(run) && run->into_next == 0;
}

/* Begins to merge the oldest CLIENT_REF_MERGED complete runs of the level, unless a merge of the
 * level is in progress. */
static int begin_merge(struct ref_runs *runs, struct db_connection *connection, int64_t level,
                       struct error *error)
{
	int64_t sources[CLIENT_REF_MERGED];
	size_t count = 0;
	int64_t entries = 0;
	for (size_t i = 0; i < runs->count; i++) {
		const struct run *run = &runs->items[i];
		if (run->level == level && run->into_next)
			return OK;
		if (!may_merge(run, level) || count == CLIENT_REF_MERGED)
			continue;
		sources[count++] = run->number;
		entries += run->entries;
	}
	if (count < CLIENT_REF_MERGED || level + 1 == LEVELS_MAX || room_of(runs) == 0)
		return OK;
	if (entries / runs->shape.bucket_entries + 1 >= (int64_t)1 << RUN_BITS)
		return OK; /* too large to merge */
	int64_t number;
	const size_t fresh = runs->fresh_count;
	int result = begin_run(runs, connection, level + 1, entries, &number, error);
	if (result == ERR_NO_MEMORY && runs->fresh_count == fresh)
		return OK; /* retried later */
	for (size_t i = 0; i < count && !result; i++)
		result = set_merge_target(connection, find_run(runs, sources[i]), number, error);
	return result;
}

/* Reads the source's entries for the next group of the merged run. *bad: some could not be read. */
static int read_source(struct ref_runs *runs, struct db_connection *connection,
                       const struct run *source, const struct run *merged, bool *bad,
                       struct error *error)
{
	const int64_t first = merged->filled_next;
	const int64_t end = group_end(runs, merged);
	int result = OK;
	struct bucket_iterator bucket_iterator =
		begin_buckets(runs, connection, source, source_bucket(source, merged, first),
	                  source_bucket(source, merged, end));
	while (!result && next_bucket(&bucket_iterator)) {
		for (size_t i = 0; i < bucket_iterator.entries.size / sizeof(struct ref_entry) && !result;
		     i++) {
			struct ref_entry entry = entry_at(bucket_iterator.entries, i);
			int64_t bucket = bucket_of(merged->buckets, entry.place);
			if (bucket >= first && bucket < end)
				result = ref_list_add(&runs->group, &entry);
		}
	}
	int ended = end_buckets(&bucket_iterator, error);
	*bad = *bad || bucket_iterator.bad > 0;
	return ended ? ended : result;
}

static int delete_before(struct db_connection *connection, const struct run *run, int64_t bucket,
                         int64_t group, struct error *error)
{
	struct db_query *query =
		db_query(connection, "DELETE FROM client_ref_buckets WHERE place >= $1 AND place < $2");
	db_bind(query, row_of(run->number, 0), row_of(run->number, bucket));
	int result = db_execute(query, NULL, error);
	if (result)
		return result;
	query = db_query(connection, "DELETE FROM client_ref_filters WHERE place >= $1 AND place < $2");
	db_bind(query, row_of(run->number, 0), row_of(run->number, group));
	return db_execute(query, NULL, error);
}

/* Deletes from the source what the merged run now contains; at the end the whole source. */
static int trim_source(struct ref_runs *runs, struct db_connection *connection, struct run *source,
                       const struct run *merged, struct error *error)
{
	assert(source->into == merged->number && is_whole(source));
	const int64_t group = runs->shape.group_buckets;
	const bool done = merged->filled_next == merged->buckets;
	int64_t bucket = source_bucket(source, merged, merged->filled_next);
	int result =
		delete_before(connection, source, bucket,
	                  done ? (source->buckets + group - 1) / group : bucket / group, error);
	if (result || !done)
		return result;
	source->gone = true;
	struct db_query *query = db_query(connection, "DELETE FROM client_ref_runs WHERE run = $1");
	db_bind_integer(query, source->number);
	return db_execute(query, NULL, error);
}

static int merge_group(struct ref_runs *runs, struct db_connection *connection, struct run *merged,
                       struct error *error)
{
	runs->group.count = 0;
	int result = OK;
	bool bad = false;
	for (size_t i = 0; i < runs->count && !result; i++)
		if (runs->items[i].into == merged->number)
			result = read_source(runs, connection, &runs->items[i], merged, &bad, error);
	merged->stuck = bad || result == ERR_CORRUPT || result == ERR_IO;
	if (!result && bad)
		return OK; /* suspended until the buckets are repaired */
	ref_list_sort(&runs->group);
	if (!result)
		result = write_group(runs, connection, merged, runs->group.items, runs->group.count, error);
	for (size_t i = 0; i < runs->count && !result; i++)
		if (runs->items[i].into == merged->number)
			result = trim_source(runs, connection, &runs->items[i], merged, error);
	return result;
}

int ref_runs_merge(struct ref_runs *runs, struct db_connection *connection, size_t added,
                   struct error *error)
{
	int result = OK;
	int64_t highest = -1;
	for (size_t i = 0; i < runs->count && !result; i++) {
		struct run *run = &runs->items[i];
		highest = run->level;
		if (run->level == 0 || is_whole(run) || run->stuck)
			continue;
		add_debt(runs, run, added);
		for (; is_behind(runs, run) && !result && !run->stuck; reduce_debt(runs, run))
			result = merge_group(runs, connection, run, error);
	}
	for (int64_t level = 0; level <= highest && !result; level++)
		result = begin_merge(runs, connection, level, error);
	return result;
}

/* ---- the end of a transaction ---- */

/* Releases the filters of a source that the merged run has replaced. */
static void release_merged(struct run *run)
{
	const int64_t bucket = source_bucket(run, run->merged, run->merged->filled);
	const size_t lost = (size_t)(bucket * run->filter_size) / RELEASED_AT_ONCE * RELEASED_AT_ONCE;
	if (lost > run->released)
		(void)madvise(run->filter + run->released, lost - run->released, MADV_DONTNEED);
	run->released = lost;
}

void ref_runs_committed(struct ref_runs *runs)
{
	bool changed = runs->fresh_count > 0;
	runs->generation += changed;
	for (size_t i = 0; i < runs->count;) {
		struct run *run = &runs->items[i];
		changed = changed || run->gone || run->into != run->into_next;
		assert(run->filled <= run->filled_next && run->filled_next <= run->buckets);
		assert(!run->gone || run->into_next); /* only what was merged goes */
		run->filled = run->filled_next;
		run->into = run->into_next;
		run->owed = run->owed_next;
		if (run->gone)
			remove_run(runs, i);
		else
			i++;
	}
	for (size_t i = 0; i < runs->fresh_count; i++)
		add_run(runs, runs->fresh[i]);
	runs->fresh_count = 0;
	if (changed)
		link_runs(runs);
	for (size_t i = 0; i < runs->count; i++)
		if (runs->items[i].merged)
			release_merged(&runs->items[i]);
}

void ref_runs_rolled_back(struct ref_runs *runs)
{
	forget_fresh(runs);
	for (size_t i = 0; i < runs->count; i++) {
		struct run *run = &runs->items[i];
		run->gone = false;
		run->filled_next = run->filled;
		run->into_next = run->into;
		run->owed_next = run->owed;
	}
}

/* ---- repairing ---- */

static void set_range(const struct run *run, struct ref_bad *bad)
{
	const int64_t bucket = number_in(bad->row);
	bad->first = first_place(run->buckets, bucket);
	bad->last = bucket + 1 == run->buckets ? UINT64_MAX : first_place(run->buckets, bucket + 1) - 1;
}

/* Returns whether lookups use the bucket: written, and not moved to another run. */
static bool is_used(const struct run *run, int64_t bucket)
{
	return bucket < run->filled &&
	       (!run->merged || bucket >= source_bucket(run, run->merged, run->merged->filled));
}

size_t ref_runs_bad(struct ref_runs *runs, struct ref_bad *ret, size_t max)
{
	size_t count = 0;
	pthread_mutex_lock(&runs->bad_lock);
	for (size_t i = 0; i < runs->bad_count; i++) {
		struct ref_bad *bad = &runs->bad[i];
		const struct run *run = find_run(runs, run_of(bad->row));
		if (!run || !is_used(run, number_in(bad->row))) {
			runs->bad[i--] = runs->bad[--runs->bad_count];
			continue;
		}
		set_range(run, bad);
		if (count < max)
			ret[count++] = *bad;
	}
	pthread_mutex_unlock(&runs->bad_lock);
	return count;
}

int ref_runs_read_range(struct ref_runs *runs, struct db_connection *connection, uint64_t first,
                        uint64_t last, struct ref_list *list, struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < runs->count && !result; i++) {
		const struct run *run = &runs->items[i];
		struct db_query *query = select_buckets(connection, run, bucket_of(run->buckets, first),
		                                        bucket_of(run->buckets, last));
		while (!result && db_step(query)) {
			const int64_t row = db_integer(query, 0);
			struct slice entries = db_blob(query, 1);
			if (!is_used(run, number_in(row)) ||
			    !is_sound_bucket(run, row, entries, db_integer(query, 2)))
				continue;
			for (size_t j = 0; j < entries.size / sizeof(struct ref_entry) && !result; j++) {
				struct ref_entry entry = entry_at(entries, j);
				if (entry.place >= first && entry.place <= last && !has_moved(run, entry.place))
					result = ref_list_add(list, &entry);
			}
		}
		int ended = db_end(query, error);
		result = ended ? ended : result;
	}
	return result;
}

static int replace_bucket(struct db_connection *connection, int64_t row,
                          const struct ref_entry *entries, size_t count, struct error *error)
{
	if (count == 0) {
		struct db_query *query =
			db_query(connection, "DELETE FROM client_ref_buckets WHERE place = $1");
		db_bind_integer(query, row);
		return db_execute(query, NULL, error);
	}
	struct db_query *query = db_query(
		connection, "INSERT INTO client_ref_buckets(place, entries, checksum) VALUES ($1, $2, $3)"
					" ON CONFLICT (place) DO UPDATE SET entries = excluded.entries,"
					" checksum = excluded.checksum");
	db_bind_integer(query, row);
	db_bind_blob(query, entries, count * sizeof *entries);
	db_bind_integer(query, ref_checksum(row, entries, count * sizeof *entries));
	return db_execute(query, NULL, error);
}

/* Writes the group of filters that contains the bucket's filter as in memory, with `filter` for
 * this bucket unless it is NULL. */
static int write_filter_group(const struct ref_runs *runs, struct db_connection *connection,
                              const struct run *run, int64_t bucket, const unsigned char *filter,
                              struct error *error)
{
	const int64_t group = bucket / runs->shape.group_buckets;
	const int64_t first = group * runs->shape.group_buckets;
	int64_t end = first + runs->shape.group_buckets;
	end = end < run->filled ? end : run->filled;
	const size_t size = (size_t)((end - first) * run->filter_size);
	unsigned char *filters = malloc(size);
	if (!filters)
		return ERR_NO_MEMORY;
	memcpy(filters, filter_of(run, first), size);
	if (filter)
		memcpy(filters + (bucket - first) * run->filter_size, filter, (size_t)run->filter_size);
	int result = write_filter(connection, row_of(run->number, group), filters, size, error);
	free(filters);
	return result;
}

int ref_runs_repair(struct ref_runs *runs, struct db_connection *connection, int64_t row,
                    const struct ref_entry *entries, size_t count, struct error *error)
{
	struct run *run = find_run(runs, run_of(row));
	const int64_t bucket = number_in(row);
	if (!run || !is_used(run, bucket))
		return OK;
	unsigned char *filter = runs->repaired.filter;
	memset(filter, 0, sizeof runs->repaired.filter);
	for (size_t i = 0; i < count; i++)
		filter_put(run, filter, entries[i].place);
	runs->repaired.run = run;
	runs->repaired.bucket = bucket;
	int result = replace_bucket(connection, row, entries, count, error);
	return result ? result : write_filter_group(runs, connection, run, bucket, filter, error);
}

void ref_runs_repair_ended(struct ref_runs *runs, bool committed)
{
	struct run *run = runs->repaired.run;
	runs->repaired.run = NULL;
	if (!run || !committed)
		return;
	memcpy(filter_of(run, runs->repaired.bucket), runs->repaired.filter, (size_t)run->filter_size);
	forget_bad(runs, row_of(run->number, runs->repaired.bucket));
	for (size_t i = 0; i < runs->count; i++)
		runs->items[i].stuck = false;
}

static struct run *run_without_filters(const struct ref_runs *runs)
{
	for (size_t i = 0; i < runs->count; i++)
		if (runs->items[i].filters_lost)
			return (struct run *)&runs->items[i];
	return NULL;
}

bool ref_runs_filters_lost(const struct ref_runs *runs)
{
	return run_without_filters(runs) != NULL;
}

int ref_runs_write_filters(struct ref_runs *runs, struct db_connection *connection,
                           int64_t *ret_number, struct error *error)
{
	const struct run *run = run_without_filters(runs);
	if (!run)
		return OK;
	*ret_number = run->number;
	const int64_t kept = run->merged ? source_bucket(run, run->merged, run->merged->filled) : 0;
	struct db_query *query =
		db_query(connection, "DELETE FROM client_ref_filters WHERE place >= $1 AND place < $2");
	db_bind(query, row_of(run->number, 0), row_of(run->number + 1, 0));
	int result = db_execute(query, NULL, error);
	const int64_t group = runs->shape.group_buckets;
	for (int64_t bucket = kept / group * group; bucket < run->filled && !result; bucket += group)
		result = write_filter_group(runs, connection, run, bucket, NULL, error);
	return result;
}

void ref_runs_filters_written(struct ref_runs *runs, int64_t number)
{
	struct run *run = find_run(runs, number);
	if (run)
		run->filters_lost = false;
}

/* ---- checking ---- */

/* Checks that each entry is in its bucket, in order and admitted by its filter. Entries that a
 * merged run already has are not counted again. */
static bool count_bucket(const struct run *run, int64_t row, struct slice entries, int64_t *count)
{
	const int64_t bucket = number_in(row);
	if (!is_in_order(run, bucket, entries))
		return false;
	for (size_t i = 0; i < entries.size / sizeof(struct ref_entry); i++) {
		const uint64_t place = entry_at(entries, i).place;
		if (!filter_has(run, bucket, place))
			return false;
		*count += !has_moved(run, place);
	}
	return true;
}

static int count_run(struct ref_runs *runs, struct db_connection *connection, const struct run *run,
                     int64_t *total, struct error *error)
{
	const int64_t first = run->merged ? source_bucket(run, run->merged, run->merged->filled) : 0;
	int result = OK;
	/* Includes unwritten buckets: beyond `filled` there must be none. */
	struct bucket_iterator bucket_iterator =
		begin_buckets(runs, connection, run, first, run->buckets - 1);
	while (!result && next_bucket(&bucket_iterator))
		if (number_in(bucket_iterator.row) >= run->filled ||
		    !count_bucket(run, bucket_iterator.row, bucket_iterator.entries, total))
			result = corrupt_bucket(bucket_iterator.row, error);
	int ended = end_buckets(&bucket_iterator, error);
	if (ended || result)
		return ended ? ended : result;
	if (run->filters_lost)
		return error_cause(error, ERR_CORRUPT,
		                   "client_ref index: the filters of run %lld are damaged",
		                   (long long)run->number);
	return OK;
}

int ref_runs_count(struct ref_runs *runs, struct db_connection *connection, int64_t *ret_count,
                   struct error *error)
{
	int64_t total = 0;
	int result = OK;
	for (size_t i = 0; i < runs->count && !result; i++)
		result = count_run(runs, connection, &runs->items[i], &total, error);
	struct ref_bad bad;
	if (!result && ref_runs_bad(runs, &bad, 1) > 0)
		result = corrupt_bucket(bad.row, error);
	*ret_count = total;
	return result;
}
