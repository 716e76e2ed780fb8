/* Shared by the files of src/store/events that stage rounds and write them. */
#ifndef STORE_EVENTS_STAGED_ROUND_H
#define STORE_EVENTS_STAGED_ROUND_H

#include "store/events/segments.h"
#include "store/transaction.h"

/* Moves the row of the round to come on; ERR_REFUSED when it is not that round with as many blocks.
 * It keeps two sealers apart, and one that adds a block from one that writes the round: whoever
 * comes second finds it changed. */
int take_staged(struct db_connection *connection, int64_t round, int64_t blocks, int64_t next_round,
                int64_t next_blocks, struct error *error) MUST_CHECK;
/* ERR_REFUSED when the blocks were changed since round->staged_changes was read; in the transaction
 * that took the row. */
int check_staged_changes(struct db_connection *connection, const struct round_record *round,
                         struct error *error) MUST_CHECK;
/* 0 and an all-zero digest before the first. */
int read_last_round(struct db_connection *connection, int64_t *ret_round,
                    struct sha256 *ret_token_hash, struct error *error) MUST_CHECK;

#endif
