/* Job claims: rows that are jobs, each with a lease of its own (store/nodes/leases.h), such as
 * certifications, mails and payments. Private to src/store.
 *
 * A due job is found by a read without a lock. It is claimed by an update that requires the row to
 * be unchanged since that read. One of several nodes succeeds; the others get ERR_NOT_FOUND and
 * search again (end_write_of_one). The holder renews, delays and ends the job by updates that
 * require its name in the lease. The statements are kept with their tables, because they have only
 * this protocol in common. */
#ifndef STORE_NODES_JOB_CLAIMS_H
#define STORE_NODES_JOB_CLAIMS_H

#include "store/transaction.h"

/* How many times a holder immediately resumes a job that it held when it ended unexpectedly. After
 * that the job itself may be the cause, and its lease has to expire first. */
#define CLAIM_RESUMED_MAX 5

/* Runs an update that only the holder may make; `id` names the row in the error. Returns
 * ERR_REFUSED when no row was changed: the job has ended or is leased to another holder. */
int job_claim_update(struct db_query *query, const char *id, struct error *error) MUST_CHECK;

#endif
