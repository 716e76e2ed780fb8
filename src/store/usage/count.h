/* Counting of the totals, and the data that they are counted from. Private to src/store. */
#ifndef STORE_USAGE_COUNT_H
#define STORE_USAGE_COUNT_H

#include "store/certifications/certifications.h"
#include "store/store_internal.h"

/* Counts a certification in the transaction that accepts, completes or fails it, according to
 * `status`; at_us is the time. */
int count_certification(struct db_connection *connection, const struct certification *certification,
                        enum certification_status status, int64_t at_us, struct error *error)
	MUST_CHECK;

/* Counts a movement of credits that does not belong to a registration, in its transaction. */
int count_movement(struct db_connection *connection, int64_t account,
                   const struct ledger_entry *entry, int64_t at_us, struct error *error) MUST_CHECK;

/* Computes the expected stored_bytes of an account: the content of its events, by the daily totals,
 * and the objects of its documents. */
int stored_bytes_of(struct db_connection *connection, int64_t account, int64_t *ret_bytes,
                    struct error *error) MUST_CHECK;

/* Fills the tables of a store that had none of these totals. */
int fill_totals(struct db_connection *connection, struct error *error) MUST_CHECK;

#endif
