/* Appends to the log in the transactions of rounds. Private to src/store. */
#ifndef STORE_TLOG_APPEND_H
#define STORE_TLOG_APPEND_H

#include "store/tlog/log_records.h"
#include "store/transaction.h"

/* The log after a round of which only the blocks are known: what a block adds to it. */
struct log_position {
	bool is_open;  /* false: the round has a block without entries, so that it will have none */
	uint64_t size; /* entries before the block */
};
/* Finds where the entries of block `number` of the next round, `round`, begin. */
int log_find_position(struct db_connection *connection, int64_t round, int64_t number,
                      struct log_position *ret, struct error *error) MUST_CHECK;
/* Appends leaves to the tiles. */
int log_append(struct db_connection *connection, uint64_t size, const struct sha256 *leaves,
               size_t count, struct error *error) MUST_CHECK;
/* Computes the root of the tree of the first `size` entries. */
int log_root(struct db_connection *connection, uint64_t size, struct sha256 *ret,
             struct error *error) MUST_CHECK;

#endif
