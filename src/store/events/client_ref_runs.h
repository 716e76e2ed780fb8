/* Sorted runs of the client_ref index (client_refs.h), as in a log-structured merge tree: each is
 * written once, in order, and later merged.
 *
 * An entry maps a place, a 64-bit hash of chain and client_ref, to an event. A run is a row of
 * client_ref_runs and its entries in ascending order of places, divided into buckets: bucket b of n
 * holds the places p with floor(p * n / 2^64) = b. A bucket is a row. Each bucket has a Bloom
 * filter of CLIENT_REF_FILTER_SIZE bytes, one processor cache line, which is kept in memory. For a
 * new client_ref, a filter causes an unnecessary read in about 1 of 250 cases per run. Runs of
 * older versions have filters of 40 bytes, with 1 of 40 cases.
 *
 * Runs of level 0 are made from the entries collected in memory. When a level has CLIENT_REF_MERGED
 * complete runs, they are merged into one of the next level, a group of buckets at a time, as part
 * of the registration batches. So an entry is written once for each level, whatever the number of
 * entries. The sources lose each group in the transaction in which the merged run receives it.
 * `filled`, the number of buckets of the merged run that are written, advances with it.
 *
 * All of it is derived from events. Every row has a checksum, except in runs of versions without
 * checksums. The reader of a damaged or missing bucket records it and returns ERR_CORRUPT; merges
 * that need the bucket are suspended. The repair rebuilds it from events (ref_runs_bad and the
 * functions after it).
 *
 * Only the sequencer changes runs, in its transactions. Its changes take effect with
 * ref_runs_committed. */
#ifndef STORE_CLIENT_REF_RUNS_H
#define STORE_CLIENT_REF_RUNS_H

#include "db/db.h"

#define CLIENT_REF_FILTER_SIZE 64
#define CLIENT_REF_MERGED 4
/* Enough for 2^40 events: on each level the runs that wait for a merge, are being merged and are
 * being written. */
#define CLIENT_REF_RUNS_MAX 128
#define CLIENT_REF_BAD_MAX 64

/* Average number of entries per bucket, and number of buckets that are written at once. With 40
 * entries of 16 bytes three buckets fill a page of 2 KiB, and 96 filters of 64 bytes fill three
 * pages. */
struct ref_shape {
	int64_t bucket_entries;
	int64_t group_buckets;
	/* Entries that an unfinished run advances for each new entry, and at least for each batch. With
	 * these values it is complete well before the next run of its level begins. */
	int64_t moved_per_new;
	int64_t moved_at_least;
};

struct ref_entry {
	uint64_t place;
	int64_t event; /* chain and sequence */
};
/* A secret of the store, so that clients cannot choose client_refs that fall into one bucket. */
struct ref_key {
	uint64_t words[2];
};
uint64_t ref_place(const struct ref_key *key, int64_t chain, int64_t ref_hash);
/* Comparison function for qsort: by place, then by event. */
int ref_compare(const void *a, const void *b);

/* Sorted in ascending order where stated. */
struct ref_list {
	struct ref_entry *items;
	size_t count, capacity;
};
int ref_list_add(struct ref_list *list, const struct ref_entry *entry) MUST_CHECK;
void ref_list_sort(struct ref_list *list);

/* Returns the checksum of data that is stored at a place. */
int64_t ref_checksum(int64_t place, const void *data, size_t size);

struct ref_runs;
/* Opens the runs. Returns ERR_CORRUPT when they are inconsistent and have to be rebuilt from
 * events. */
int ref_runs_open(struct db_connection *connection, struct ref_shape shape,
                  struct ref_runs **ret_runs, struct error *error) MUST_CHECK;
void ref_runs_close(struct ref_runs *runs); /* NULL-safe */

/* Lists the rows of buckets that may hold a place, the sources of a merge before the merged run.
 * `others` is true for callers other than the sequencer: entries that the current transaction moves
 * are then searched on both sides. Reads nothing from the database. Callers other than the
 * sequencer and ref_runs_committed use one common lock. */
struct ref_row {
	int64_t row;
	bool checked;  /* it has a checksum */
	bool is_there; /* it must exist, because the sequencer asks */
};
size_t ref_runs_rows(const struct ref_runs *runs, uint64_t place, bool others,
                     struct ref_row rows[CLIENT_REF_RUNS_MAX]);
/* Changes whenever there is a run that an earlier result of ref_runs_rows did not contain. */
uint64_t ref_runs_generation(const struct ref_runs *runs);
/* Adds the sequences of the chain's events at the place, up to `max` in all. A row that has been
 * removed counts as empty, except for the sequencer. Returns ERR_CORRUPT when the row is damaged,
 * and records it. */
int ref_runs_read(struct ref_runs *runs, struct db_connection *connection,
                  const struct ref_row *row, uint64_t place, int64_t chain, int64_t *sequences,
                  size_t max, size_t *count, struct error *error) MUST_CHECK;
void ref_runs_note_bad(struct ref_runs *runs, int64_t row);

/* Returns whether there is room for a run of level 0. There is none while merges are suspended and
 * a large number of runs waits for them. Entries then continue to be collected in memory. */
bool ref_runs_has_room(const struct ref_runs *runs);
/* Begins a run of level 0 for that number of entries. */
int ref_runs_begin_flush(struct ref_runs *runs, struct db_connection *connection, size_t entries,
                         struct error *error) MUST_CHECK;
/* Returns whether a run of level 0 is being written. */
bool ref_runs_is_flushing(const struct ref_runs *runs);
/* Writes some groups of the run of level 0. `sorted` has all of its entries; `added` is the number
 * of new entries in this batch. *ret_done is true when the run is complete. */
int ref_runs_flush(struct ref_runs *runs, struct db_connection *connection,
                   const struct ref_entry *sorted, size_t count, size_t added, bool *ret_done,
                   struct error *error) MUST_CHECK;
/* Returns the number of leading entries that the run being written already contains. */
size_t ref_runs_flushed(const struct ref_runs *runs, const struct ref_entry *sorted, size_t count);
/* Begins merges that are due and continues those in progress. */
int ref_runs_merge(struct ref_runs *runs, struct db_connection *connection, size_t added,
                   struct error *error) MUST_CHECK;
void ref_runs_committed(struct ref_runs *runs);
void ref_runs_rolled_back(struct ref_runs *runs);

/* ---- repair: with the writer, between the sequencer's transactions ---- */

/* A bucket that could not be read, and its range of places, both ends included. */
struct ref_bad {
	int64_t row;
	uint64_t first, last;
};
/* Lists at most `max` damaged buckets that are still in use. */
size_t ref_runs_bad(struct ref_runs *runs, struct ref_bad *ret, size_t max);
/* Adds the entries of the runs in this range of places, except those that cannot be read. */
int ref_runs_read_range(struct ref_runs *runs, struct db_connection *connection, uint64_t first,
                        uint64_t last, struct ref_list *list, struct error *error) MUST_CHECK;
/* Replaces the entries of a bucket, in ascending order, in a transaction. ref_runs_repair_ended
 * reports the end of that transaction, under the lock of ref_runs_rows. */
int ref_runs_repair(struct ref_runs *runs, struct db_connection *connection, int64_t row,
                    const struct ref_entry *entries, size_t count, struct error *error) MUST_CHECK;
void ref_runs_repair_ended(struct ref_runs *runs, bool committed);
/* Returns whether filters were damaged when the runs were opened and rebuilt from the buckets.
 * ref_runs_write_filters writes the filters of one such run, *ret_number; ref_runs_filters_written
 * reports that this is committed. */
bool ref_runs_filters_lost(const struct ref_runs *runs);
int ref_runs_write_filters(struct ref_runs *runs, struct db_connection *connection,
                           int64_t *ret_number, struct error *error) MUST_CHECK;
void ref_runs_filters_written(struct ref_runs *runs, int64_t number);

/* Counts the entries of all runs, each once. Returns ERR_CORRUPT for a damaged block, for an entry
 * in the wrong bucket, in the wrong order or not admitted by its filter, and when filters were
 * damaged. */
int ref_runs_count(struct ref_runs *runs, struct db_connection *connection, int64_t *ret_count,
                   struct error *error) MUST_CHECK;

#endif
