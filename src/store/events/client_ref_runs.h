/* Sorted runs of the index of client_refs (client_refs.h): written once, in order, and merged.
 *
 * An entry leads from a place, 64 evenly spread bits made of chain and client_ref, to an event. A
 * run is a row of client_ref_runs and its entries in ascending order of places, cut into buckets:
 * bucket b of n holds the places p with floor(p * n / 2^64) = b. A bucket is a row, and each has a
 * filter (Bloom) of CLIENT_REF_FILTER_SIZE bytes, a line of the processor's cache, that is kept in
 * memory: that a client_ref is new is known without looking at the disk, but for one in some 250 in
 * each run. Runs of before have filters of 40 bytes, which let one in 40 through.
 *
 * Runs of level 0 are made of what gathered in memory. When a level has CLIENT_REF_MERGED whole
 * ones, they are merged into one of the next level, a group of buckets at a time, with the batches
 * that come: so an entry is written once for each level, whatever the number of entries. The
 * sources lose each group in the transaction in which the merged run gets it, and `filled`, the
 * number of its buckets, moves on.
 *
 * All is derived from events, and every row has a checksum, but for those of runs that were written
 * without. A bucket that is damaged or missing is noted by its reader, and ERR_CORRUPT;
 * merges that need it rest. Who repairs it makes it of events (ref_runs_bad and what follows).
 *
 * Changed by the one sequencer, in its transactions; what these change counts from
 * ref_runs_committed on. */
#ifndef STORE_CLIENT_REF_RUNS_H
#define STORE_CLIENT_REF_RUNS_H

#include "db/db.h"

#define CLIENT_REF_FILTER_SIZE 64
#define CLIENT_REF_MERGED 4
/* Levels that 2^40 events cannot fill, each with runs that wait, are merged and come to be. */
#define CLIENT_REF_RUNS_MAX 128
#define CLIENT_REF_BAD_MAX 64

/* How many entries a bucket has on average, and how many buckets are written at once. With 40
 * entries of 16 bytes three buckets fill a page of 2 KiB, and 96 filters of 64 bytes three. */
struct ref_shape {
	int64_t bucket_entries;
	int64_t group_buckets;
	/* Entries that a run under way gets for each one that comes, and for each batch: it is whole
	 * well before the next one of its level begins. */
	int64_t moved_per_new;
	int64_t moved_at_least;
};

struct ref_entry {
	uint64_t place;
	int64_t event; /* chain and sequence */
};
/* The store's own secret, so that nobody can choose client_refs that fall into one bucket. */
struct ref_key {
	uint64_t words[2];
};
uint64_t ref_place(const struct ref_key *key, int64_t chain, int64_t ref_hash);
/* For qsort: by place, then by event. */
int ref_compare(const void *a, const void *b);

/* In ascending order where that is said. */
struct ref_list {
	struct ref_entry *items;
	size_t count, capacity;
};
int ref_list_add(struct ref_list *list, const struct ref_entry *entry) MUST_CHECK;
void ref_list_sort(struct ref_list *list);

/* Of what stands at a place. */
int64_t ref_checksum(int64_t place, const void *data, size_t size);

struct ref_runs;
/* ERR_CORRUPT: the runs do not fit together, so that all has to be made of events. */
int ref_runs_open(struct db_connection *connection, struct ref_shape shape,
                  struct ref_runs **ret_runs, struct error *error) MUST_CHECK;
void ref_runs_close(struct ref_runs *runs); /* NULL-safe */

/* The buckets that may hold a place, by their rows, sources of a merge before what they are merged
 * into. `others` (not the sequencer): what a transaction under way moves is looked for on both
 * sides. Nothing is read; whoever is not the sequencer calls it, and ref_runs_committed is called,
 * under one lock. */
struct ref_row {
	int64_t row;
	bool checked;  /* it has a checksum */
	bool is_there; /* it must be: the sequencer asks */
};
size_t ref_runs_rows(const struct ref_runs *runs, uint64_t place, bool others,
                     struct ref_row rows[CLIENT_REF_RUNS_MAX]);
/* Changes whenever there is a run that an earlier answer of ref_runs_rows did not know. */
uint64_t ref_runs_generation(const struct ref_runs *runs);
/* Adds the sequences of the chain's events at the place, as long as there are less than `max`. A
 * row that is gone has none, but for the sequencer. ERR_CORRUPT: it is damaged, and noted. */
int ref_runs_read(struct ref_runs *runs, struct db_connection *connection,
                  const struct ref_row *row, uint64_t place, int64_t chain, int64_t *sequences,
                  size_t max, size_t *count, struct error *error) MUST_CHECK;
void ref_runs_note_bad(struct ref_runs *runs, int64_t row);

/* Whether there is room for a run of level 0. There is none while merges rest and very many runs
 * wait for them; what gathers goes on to gather then. */
bool ref_runs_has_room(const struct ref_runs *runs);
/* A run of level 0 for as many entries. */
int ref_runs_begin_flush(struct ref_runs *runs, struct db_connection *connection, size_t entries,
                         struct error *error) MUST_CHECK;
/* Whether one is being written. */
bool ref_runs_is_flushing(const struct ref_runs *runs);
/* Writes some groups of it: `sorted` are all its entries, `added` came in this batch. *ret_done:
 * the run is whole. */
int ref_runs_flush(struct ref_runs *runs, struct db_connection *connection,
                   const struct ref_entry *sorted, size_t count, size_t added, bool *ret_done,
                   struct error *error) MUST_CHECK;
/* How many of these, the first ones, the run that is being written has. */
size_t ref_runs_flushed(const struct ref_runs *runs, const struct ref_entry *sorted, size_t count);
/* Begins merges that are due, and goes on with those that were begun. */
int ref_runs_merge(struct ref_runs *runs, struct db_connection *connection, size_t added,
                   struct error *error) MUST_CHECK;
void ref_runs_committed(struct ref_runs *runs);
void ref_runs_rolled_back(struct ref_runs *runs);

/* ---- repairing: with the writer, between the sequencer's transactions ---- */

/* A bucket that could not be read, and the places that it is of, both included. */
struct ref_bad {
	int64_t row;
	uint64_t first, last;
};
/* At most `max` of those that are needed still. */
size_t ref_runs_bad(struct ref_runs *runs, struct ref_bad *ret, size_t max);
/* Adds what the runs have at these places, but for what cannot be read. */
int ref_runs_read_range(struct ref_runs *runs, struct db_connection *connection, uint64_t first,
                        uint64_t last, struct ref_list *list, struct error *error) MUST_CHECK;
/* The bucket has these entries, in ascending order, and no others; in a transaction, of which
 * ref_runs_repair_ended then tells how it ended, under the lock of ref_runs_rows. */
int ref_runs_repair(struct ref_runs *runs, struct db_connection *connection, int64_t row,
                    const struct ref_entry *entries, size_t count, struct error *error) MUST_CHECK;
void ref_runs_repair_ended(struct ref_runs *runs, bool committed);
/* Whether filters were damaged when the runs were opened, and made of the buckets; writes those of
 * one such run, *ret_number, of which ref_runs_filters_written tells that it is committed. */
bool ref_runs_filters_lost(const struct ref_runs *runs);
int ref_runs_write_filters(struct ref_runs *runs, struct db_connection *connection,
                           int64_t *ret_number, struct error *error) MUST_CHECK;
void ref_runs_filters_written(struct ref_runs *runs, int64_t number);

/* The entries of all runs, each once; ERR_CORRUPT for a damaged block, an entry in the wrong bucket
 * or order, or that its filter does not let through, and where filters were damaged. */
int ref_runs_count(struct ref_runs *runs, struct db_connection *connection, int64_t *ret_count,
                   struct error *error) MUST_CHECK;

#endif
