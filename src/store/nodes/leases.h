/* Leases: which of several nodes does a job that only one may do at a time.
 *
 * A lease belongs to its holder until it expires by the clock shared by all nodes (store_now_us).
 * The holder renews it by taking it again. Another node can take it after it has expired or was
 * released. Holder names do not change with a restart, so that a node resumes its own leases. A
 * holder that was suspended can lose its lease in the middle of its work. So everything done under
 * a lease must be harmless when done twice, or be refused the second time.
 *
 * Jobs that run in parallel (certifications, mails, payments) have a lease of the same kind in the
 * row of each job (store/nodes/job_claims.h). Thread safe. */
#ifndef STORE_NODES_LEASES_H
#define STORE_NODES_LEASES_H

#include "store/store.h"

enum lease_name {
	LEASE_SEALER,
	LEASE_DELIVERER,
	LEASE_SWEEP,
	LEASE_RENEWER,
	LEASE_SIGNER_LIST,
	LEASE_DIGESTS,
	LEASE_LOG
};

/* Takes or renews a lease until now_us + duration_us. *ret_taken is true when the lease was free,
 * had expired or already belonged to `holder`. */
int store_take_lease(struct store *store, enum lease_name name, const char *holder, int64_t now_us,
                     int64_t duration_us, bool *ret_taken, struct error *error) MUST_CHECK;
/* Releases the lease early; a lease of another holder is not changed. */
int store_end_lease(struct store *store, enum lease_name name, const char *holder,
                    struct error *error) MUST_CHECK;

#endif
