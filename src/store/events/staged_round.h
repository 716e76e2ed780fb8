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

/* For a segment of acts: takes them from those that are unsealed, ERR_REFUSED when it does not
 * continue its chain; and gives them back, the segment with them, which must be the last. */
int take_acts(struct db_connection *connection, const struct segment_record *segment,
              struct error *error) MUST_CHECK;
int give_acts_back(struct db_connection *connection, int64_t account, int64_t chain, int64_t number,
                   int64_t first_sequence, struct error *error) MUST_CHECK;

#endif
