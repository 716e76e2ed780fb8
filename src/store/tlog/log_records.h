/* The transparency log of segments: its entries and the tiles of its tree (src/tlog). A block's
 * entries are appended when it is staged; they belong to the log from the moment in which its round
 * is written (store/events/segments.h), in the same transaction. Rounds of older versions
 * have no entries. Blocks that such a version staged have none either; seal_close
 * (evidence/seal_round.h) unstages them. Thread safe. */
#ifndef STORE_LOG_RECORDS_H
#define STORE_LOG_RECORDS_H

#include "store/store.h"
#include "tlog/entry.h"
#include "tlog/tiles.h"

struct log_head {
	uint64_t size;      /* entries */
	struct sha256 root; /* of the tree of that size */
	int64_t round;      /* the last one; 0: none */
};
/* Reads the log after its last round. */
int store_get_log_head(struct store *store, struct log_head *ret, struct error *error) MUST_CHECK;
/* Reads the log after a round. ERR_NOT_FOUND: the round does not exist or precedes the log. */
int store_get_log_head_of(struct store *store, int64_t round, struct log_head *ret,
                          struct error *error) MUST_CHECK;

/* Reads the first id->width hashes of a tile, all of which must be of the log. ERR_CORRUPT: they
 * are missing. */
int store_read_log_tile(struct store *store, const struct tile_id *id, struct sha256 *ret_hashes,
                        struct error *error) MUST_CHECK;
/* Reads the entries from index `first`, at most `limit` of them and TILE_WIDTH at least one of the
 * log. ERR_NOT_FOUND: the log ends before. */
int store_read_log_entries(struct store *store, uint64_t first, size_t limit,
                           struct tlog_entry *ret_entries, size_t *ret_count, struct error *error)
	MUST_CHECK;
/* Finds the index of a segment's entry by its round and its place there; a negative place has none.
 * ERR_NOT_FOUND: the segment's round precedes the log. */
int store_find_log_index(struct store *store, int64_t round, int64_t place, uint64_t *ret_index,
                         struct error *error) MUST_CHECK;

#endif
