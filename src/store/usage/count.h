/* How the totals are counted, and what they are counted from; for src/store alone. */
#ifndef STORE_USAGE_COUNT_H
#define STORE_USAGE_COUNT_H

#include "store/certifications/certifications.h"
#include "store/internal.h"

/* In the transaction that accepts, completes or fails a certification, which is told by its status;
 * at_us is when. */
int count_certification(struct db_connection *connection, const struct certification *certification,
                        enum certification_status status, int64_t at_us, struct error *error)
	MUST_CHECK;

/* In the transaction of a movement of credits that is not a registration's. */
int count_movement(struct db_connection *connection, int64_t account,
                   const struct ledger_entry *entry, int64_t at_us, struct error *error) MUST_CHECK;

/* What an account's stored_bytes are to be: the content of its events, by the daily totals, and the
 * objects of its documents. */
int stored_bytes_of(struct db_connection *connection, int64_t account, int64_t *ret_bytes,
                    struct error *error) MUST_CHECK;

/* The tables of a store that had none of these totals. */
int fill_totals(struct db_connection *connection, struct error *error) MUST_CHECK;

#endif
