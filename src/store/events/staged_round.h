/* Private to the files of src/store/events that stage and write rounds. */
#ifndef STORE_EVENTS_STAGED_ROUND_H
#define STORE_EVENTS_STAGED_ROUND_H

#include "store/events/segments.h"
#include "store/transaction.h"

/* Updates the row of staged_round. Returns ERR_REFUSED when it does not have that round with that
 * number of blocks. This serializes two sealers, and the staging of a block with the writing of the
 * round: the second transaction finds the row changed. */
int take_staged(struct db_connection *connection, int64_t round, int64_t blocks, int64_t next_round,
                int64_t next_blocks, struct error *error) MUST_CHECK;
/* Returns ERR_REFUSED when the blocks were changed since round->staged_changes was read. Called in
 * the transaction that has updated the row. */
int check_staged_changes(struct db_connection *connection, const struct round_record *round,
                         struct error *error) MUST_CHECK;
/* Returns 0 and an all-zero digest when there is no round. */
int read_last_round(struct db_connection *connection, int64_t *ret_round,
                    struct sha256 *ret_token_hash, struct error *error) MUST_CHECK;

/* For a segment of audit records: stage_audit_records removes the records from the unsealed ones
 * and returns ERR_REFUSED when the segment does not continue its chain. unstage_audit_records adds
 * them again and removes the segment, which must be the last one. */
int stage_audit_records(struct db_connection *connection, const struct segment_record *segment,
                        struct error *error) MUST_CHECK;
int unstage_audit_records(struct db_connection *connection, int64_t account, int64_t chain,
                          int64_t number, int64_t first_sequence, struct error *error) MUST_CHECK;

#endif
