/* Rows that are pieces of work, each with a lease of its own (store/nodes/leases.h):
 * certifications, mails, payments. Inside src/store only.
 *
 * One that is due is looked for in a read, without a lock, and taken by a change of the row as it
 * was seen then: of several nodes one takes it, and the others find ERR_NOT_FOUND and look again
 * (end_write_of_one). Whoever holds it renews, delays and ends it by changes of the row with his
 * name in its lease. The statements stay with their tables, which have nothing but this in common.
 */
#ifndef STORE_NODES_CLAIMS_H
#define STORE_NODES_CLAIMS_H

#include "store/transaction.h"

/* How often a holder takes up at once what it held when it ended without a word; beyond that the
 * work itself may be what ends it, and its lease has to run out first. */
#define CLAIM_RESUMED_MAX 5

/* Runs a change that only the holder may make; `id` names the row in the cause. ERR_REFUSED when
 * it changed none: the work is over, or another's. */
int claim_change(struct db_query *query, const char *id, struct error *error) MUST_CHECK;

#endif
