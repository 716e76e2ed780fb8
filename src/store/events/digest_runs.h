/* Runs of the index of digests (digest_index.h). Private to src/store.
 *
 * A run has an entry for each event of a range of positions of its series: a keyed hash of the
 * chain and the digest, and the position. Its entries are sorted by both and divided into blocks,
 * of which each is a row. Entries never change. Runs of one level are merged into one of the next
 * level, as in a log-structured merge tree, so a lookup reads few of them and an entry is written
 * once for each level.
 *
 * The key is a secret of the store. A client chooses digests, but not entries with equal hashes: so
 * different digests practically never have to be compared, whatever is registered.
 *
 * Each block names the first entry of the next one and has a checksum, so that a damaged or missing
 * block is detected. */
#ifndef STORE_DIGEST_RUNS_H
#define STORE_DIGEST_RUNS_H

#include "db/db.h"
#include "store/store.h"

#define DIGEST_ENTRY_SIZE 10
#define DIGEST_BLOCK_MAX 190 /* entries of a block: a row fills a page of 2 KiB */
#define DIGEST_FANOUT 16     /* runs that are merged into one */
#define DIGEST_LEVELS 5      /* with the usual sizes a run of the last level has 2^30 entries */
#define DIGEST_RUNS_MAX 1024 /* runs of a series */
#define DIGEST_POSITIONS_MAX ((int64_t)UINT32_MAX) /* of a run */

struct digest_key {
	uint64_t words[2];
};
struct digest_entry {
	uint64_t hash; /* 48 bits */
	int64_t position;
};
/* SipHash-2-4 of the chain and the digest, shortened. */
uint64_t digest_hash(const struct digest_key *key, int64_t chain, const void *digest, size_t size);
/* Compares by hash, then by position. */
int digest_entry_compare(const struct digest_entry *left, const struct digest_entry *right);
/* Sorts entries, whose positions are in ascending order. `other` has room for as many. */
void digest_entries_sort(struct digest_entry *entries, struct digest_entry *other, size_t count);

enum digest_run_state { DIGEST_RUN_USED, DIGEST_RUN_MERGING, DIGEST_RUN_DELETED };
struct digest_run {
	int64_t run, level, first, last, entries;
	enum digest_run_state state;
};
struct digest_series {
	int64_t account, chain; /* of its rows */
	int64_t version, indexed, last_run, key_check;
	bool exists; /* has a row */
	size_t count;
	struct digest_run runs[DIGEST_RUNS_MAX]; /* by first position */
};
/* Reads a series, whose account and chain are set. ERR_CORRUPT: its runs do not cover the events up
 * to `indexed`, or were made with another key. */
int digest_series_read(struct db_connection *connection, const struct digest_key *key,
                       struct digest_series *series, struct error *error) MUST_CHECK;
/* Locks the row of a series, which it creates if there is none, until the end of the transaction.
 * *ret_same false: another process has changed it since it was read. */
int digest_series_lock(struct db_connection *connection, const struct digest_key *key,
                       const struct digest_series *series, bool *ret_same, struct error *error)
	MUST_CHECK;
/* Writes the row with a new version. */
int digest_series_write(struct db_connection *connection, const struct digest_key *key,
                        const struct digest_series *series, struct error *error) MUST_CHECK;

/* Reads the entries of a run, forwards and backwards. */
struct digest_cursor {
	struct db_connection *connection;
	const struct digest_series *series;
	const struct digest_run *run;
	int result; /* first error; ERR_CORRUPT for a damaged block, with the cause in `error` */
	struct error *error;
	uint8_t low[DIGEST_ENTRY_SIZE], high[DIGEST_ENTRY_SIZE];
	size_t low_size, high_size;
	uint8_t entries[DIGEST_BLOCK_MAX * DIGEST_ENTRY_SIZE];
	size_t count, at; /* at == count: no entry */
	bool at_end;
};
/* Goes to the first entry that is not before `entry`. */
void digest_cursor_seek(struct digest_cursor *cursor, const struct digest_entry *entry);
/* Goes to the last entry that is not after `entry`. */
void digest_cursor_seek_back(struct digest_cursor *cursor, const struct digest_entry *entry);
/* Gets the present entry and moves to the next, or the previous one. false: at the end, or failed.
 */
bool digest_cursor_peek(const struct digest_cursor *cursor, struct digest_entry *ret);
void digest_cursor_next(struct digest_cursor *cursor);
void digest_cursor_previous(struct digest_cursor *cursor);

/* Writes entries in ascending order as blocks of a run. */
struct digest_writer {
	struct db_connection *connection;
	const struct digest_series *series;
	const struct digest_run *run;
	int result;
	struct error *error;
	uint8_t low[DIGEST_ENTRY_SIZE];
	size_t low_size;
	uint8_t entries[DIGEST_BLOCK_MAX * DIGEST_ENTRY_SIZE];
	size_t count, block_max;
	int64_t written; /* entries in written blocks */
	size_t blocks;
};
struct digest_writer digest_writer_make(struct db_connection *connection,
                                        const struct digest_series *series,
                                        const struct digest_run *run, struct error *error);
void digest_writer_add(struct digest_writer *writer, const struct digest_entry *entry);
/* Writes the last block. */
void digest_writer_finish(struct digest_writer *writer);

/* Inserts the row of a run, or changes its state and the number of its entries. */
int digest_run_write(struct db_connection *connection, const struct digest_series *series,
                     const struct digest_run *run, struct error *error) MUST_CHECK;
/* Continues the merge of a run by about `blocks` blocks; *ret_done: it is complete. */
int digest_run_merge(struct db_connection *connection, const struct digest_series *series,
                     struct digest_run *run, size_t blocks, bool *ret_done, struct error *error)
	MUST_CHECK;
/* Deletes about `blocks` blocks, and the row of the run once it has none. */
int digest_run_delete(struct db_connection *connection, const struct digest_series *series,
                      const struct digest_run *run, int64_t blocks, struct error *error) MUST_CHECK;

#endif
